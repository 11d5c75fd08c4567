//! A table of contents to the bytes of a `.stair` file. The same input gives the same bytes.

use super::checksum;
use super::format::{
    ALIGNMENT, AskedRecord, BYTE_ORDER_MARK, Header, MAGIC, MAJOR, MINOR, Meta, NONE, SECTION_LEAF,
    SectionRecord, TEMPLATE_SPECIAL, TableEntry, TextRef, TrieNode, kind,
};
use crate::error::{Error, Result};
use crate::prompt::Template;
use crate::toc::{Section, Toc};
use crate::tokens::Tokenizer;
use bytemuck::Zeroable;
use std::collections::VecDeque;
use std::ops::Range;

/// Titles that are not worth a thread of their own.
const SHARE: usize = 4096;

/// How an index is built.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    /// The prompt.
    pub template: Template,
    /// Whether to keep the sections' texts.
    pub text: bool,
    /// Questions that leaves are known to answer, each with the leaf's position in the table of
    /// contents: further words by which a question finds its section. They can be read in the file.
    pub asked: Vec<(u32, String)>,
}

impl Default for BuildOptions {
    fn default() -> Self {
        Self {
            template: Template::default(),
            text: true,
            asked: Vec::new(),
        }
    }
}

/// What was built, for a person to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildReport {
    /// Number of leaves.
    pub leaves: u32,
    /// Number of sections with subsections.
    pub interiors: u32,
    /// Tokens of the prompt up to the question.
    pub prefix_tokens: u32,
    /// Number of trie nodes.
    pub nodes: u32,
    /// Identifier of the leaf whose title has most tokens.
    pub longest_title: String,
    /// Its number of tokens, the terminator included.
    pub longest_title_tokens: u32,
    /// Length of the file in bytes.
    pub bytes: u64,
}

/// Builds an index of `toc` for the vocabulary of `tokenizer`.
///
/// `progress` is called now and then with the number of titles read so far.
///
/// # Errors
///
/// [`Error::NoHeadings`] for an empty table of contents; [`Error::InvalidArgument`] for one made
/// by hand that does not hold what [`Toc::check`] asks; [`Error::UnstableBoundary`],
/// [`Error::Template`] or [`Error::Tokenizer`] when prompt and titles do not go with the
/// vocabulary; [`Error::TooLarge`] past a limit of the format.
pub fn build(
    toc: &Toc,
    tokenizer: &dyn Tokenizer,
    options: &BuildOptions,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<(Vec<u8>, BuildReport)> {
    let leaves: Vec<u32> = (0u32..)
        .zip(&toc.sections)
        .filter(|(_, section)| section.leaf)
        .map(|(id, _)| id)
        .collect();
    if leaves.is_empty() {
        return Err(Error::NoHeadings);
    }
    limit("sections", toc.sections.len() as u64, u64::from(NONE) - 1)?;
    toc.check(u64::MAX).map_err(|error| match error {
        Error::Internal(what) => Error::InvalidArgument(format!("the table of contents: {what}")),
        other => other,
    })?;

    let template = &options.template;
    let terminator = template.terminator(tokenizer)?;
    in_vocabulary(&[terminator], tokenizer)?;
    let encode_prefix = || {
        let prefix = template.encode_prefix(tokenizer, toc)?;
        if prefix.is_empty() {
            return Err(Error::Template("its prompt has no tokens".to_owned()));
        }
        in_vocabulary(&prefix, tokenizer)?;
        Ok(prefix)
    };
    let encode_titles = || Titles::encode(toc, &leaves, tokenizer, template, terminator, progress);
    let (prefix, titles) = match leaves.len() > SHARE {
        // The prompt names every section too, so its tokens take nearly as long as the titles'.
        true => std::thread::scope(|scope| {
            let prefix = scope.spawn(encode_prefix);
            let titles = encode_titles();
            (joined(prefix.join()), titles)
        }),
        false => (encode_prefix(), encode_titles()),
    };
    let (prefix, titles) = (prefix?, titles?);
    let nodes = trie(&titles)?;
    let longest = titles.longest();

    let mut strings = Strings::default();
    let question = template.question();
    let meta = Meta {
        sections: toc.sections.len() as u32,
        leaves: leaves.len() as u32,
        nodes: nodes.len() as u32 - 1,
        longest_title: titles.tokens(longest).len() as u32,
        terminator,
        template_flags: if template.special {
            TEMPLATE_SPECIAL
        } else {
            0
        },
        title: strings.add(&toc.title)?,
        anchor: strings.add(question.anchor)?,
        before_question: strings.add(question.before_question)?,
        after_question: strings.add(question.after_question)?,
        before_title: strings.add(question.before_title)?,
    };
    let mut text = String::new();
    let sections = toc
        .sections
        .iter()
        .map(|section| record(section, &mut strings, options.text.then_some(&mut text)))
        .collect::<Result<Vec<_>>>()?;

    let (asked, asked_text) = asked(toc, &options.asked)?;
    let mut file =
        FileWriter::new(5 + usize::from(options.text) + if asked.is_empty() { 0 } else { 2 });
    file.section(kind::META, &[meta]);
    file.section(kind::STRINGS, strings.0.as_bytes());
    file.section(kind::SECTIONS, &sections);
    file.section(kind::PREFIX, &prefix);
    file.section(kind::TRIE, &nodes);
    if options.text {
        file.section(kind::TEXT, text.as_bytes());
    }
    if !asked.is_empty() {
        file.minor = MINOR;
        file.section(kind::ASKED, &asked);
        file.section(kind::ASKED_TEXT, asked_text.as_bytes());
    }
    let bytes = file.finish(tokenizer.vocab_size(), tokenizer.fingerprint());

    let report = BuildReport {
        leaves: meta.leaves,
        interiors: meta.sections - meta.leaves,
        prefix_tokens: prefix.len() as u32,
        nodes: meta.nodes,
        longest_title: toc.sections[leaves[longest] as usize].identifier(),
        longest_title_tokens: meta.longest_title,
        bytes: bytes.len() as u64,
    };
    Ok((bytes, report))
}

/// The questions leaf by leaf, and their texts, a line each. The same question twice counts twice, as
/// a word does.
fn asked(toc: &Toc, questions: &[(u32, String)]) -> Result<(Vec<AskedRecord>, String)> {
    let mut sorted: Vec<&(u32, String)> = questions.iter().collect();
    // Stable: a leaf's questions keep their order.
    sorted.sort_by_key(|(section, _)| *section);
    let (mut records, mut texts) = (Vec::new(), String::new());
    for of_leaf in sorted.chunk_by(|a, b| a.0 == b.0) {
        let section = of_leaf[0].0;
        if toc.sections.get(section as usize).is_none_or(|s| !s.leaf) {
            return Err(Error::InvalidArgument(format!(
                "section {section}, given for the question {:?}, is not a leaf",
                of_leaf[0].1
            )));
        }
        let offset = texts.len();
        for (line, (_, question)) in of_leaf.iter().enumerate() {
            if line > 0 {
                texts.push('\n');
            }
            // A line is a question, and a NUL an end.
            texts.extend(question.chars().map(|c| match c {
                '\0' | '\n' | '\r' => ' ',
                other => other,
            }));
        }
        let len = texts.len() - offset;
        limit(
            "bytes of questions for one leaf",
            len as u64,
            u64::from(NONE),
        )?;
        records.push(AskedRecord {
            section,
            len: len as u32,
            offset: offset as u64,
        });
        texts.push('\0');
    }
    Ok((records, texts))
}

/// What a thread that tokenised has to say.
fn joined<T>(result: std::thread::Result<Result<T>>) -> Result<T> {
    result.unwrap_or_else(|_| Err(Error::Internal("a tokenizing thread panicked".to_owned())))
}

/// The tokens of every leaf's title, end to end.
struct Titles {
    tokens: Vec<u32>,
    /// Where each title's tokens end.
    ends: Vec<usize>,
    /// The section of each title.
    sections: Vec<u32>,
    /// The titles in the order of their tokens.
    order: Vec<u32>,
}

impl Titles {
    fn encode(
        toc: &Toc,
        leaves: &[u32],
        tokenizer: &dyn Tokenizer,
        template: &Template,
        terminator: u32,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<Self> {
        let done = std::sync::atomic::AtomicUsize::new(0);
        let encode = |leaves: &[u32]| -> Result<Vec<Vec<u32>>> {
            let titles = template.question().titles(tokenizer, terminator)?;
            let encode = |&leaf: &u32| {
                let tokens = titles.encode(&toc.sections[leaf as usize].identifier());
                let count = done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
                if count.is_multiple_of(1024) {
                    progress(count);
                }
                tokens
            };
            leaves.iter().map(encode).collect()
        };
        // Tokenising is nearly all of a large build, and titles do not depend on each other.
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
        let share = leaves.len().div_ceil(threads).max(SHARE);
        let encoded: Vec<Vec<u32>> = std::thread::scope(|scope| {
            if leaves.len() <= share {
                return Ok(vec![encode(leaves)?]);
            }
            let workers: Vec<_> = leaves
                .chunks(share)
                .map(|chunk| scope.spawn(|| encode(chunk)))
                .collect();
            workers
                .into_iter()
                .map(|worker| joined(worker.join()))
                .collect::<Result<Vec<_>>>()
        })?
        .into_iter()
        .flatten()
        .collect();
        progress(leaves.len());

        let mut titles = Self {
            tokens: Vec::with_capacity(encoded.iter().map(Vec::len).sum()),
            ends: Vec::with_capacity(encoded.len()),
            sections: leaves.to_vec(),
            order: (0..leaves.len() as u32).collect(),
        };
        for title in &encoded {
            in_vocabulary(title, tokenizer)?;
            titles.tokens.extend(title);
            titles.ends.push(titles.tokens.len());
        }
        let mut order = std::mem::take(&mut titles.order);
        order.sort_by(|&a, &b| titles.tokens(a as usize).cmp(titles.tokens(b as usize)));
        titles.order = order;
        titles.distinct(toc)?;
        Ok(titles)
    }

    fn tokens(&self, title: usize) -> &[u32] {
        let start = title.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.tokens[start..self.ends[title]]
    }

    /// Identifiers are unique as texts; a tokenizer that folds letters may still not tell two of
    /// them apart.
    fn distinct(&self, toc: &Toc) -> Result<()> {
        for pair in self.order.windows(2) {
            if self.tokens(pair[0] as usize) == self.tokens(pair[1] as usize) {
                let identifier =
                    |title: u32| toc.sections[self.sections[title as usize] as usize].identifier();
                return Err(Error::Tokenizer(format!(
                    "it gives {:?} and {:?} the same tokens, so they could not be told apart: rename one",
                    identifier(pair[0]),
                    identifier(pair[1])
                )));
            }
        }
        Ok(())
    }

    /// The first of the titles with most tokens.
    fn longest(&self) -> usize {
        (0..self.ends.len())
            .rev()
            .max_by_key(|&title| self.tokens(title).len())
            .unwrap_or_default()
    }
}

/// The trie over `titles` in breadth-first order, and its end marker.
fn trie(titles: &Titles) -> Result<Vec<TrieNode>> {
    let mut nodes = vec![TrieNode {
        token: NONE,
        first_child: 0,
        section: NONE,
    }];
    // Titles that share their first `depth` tokens lie together in the order.
    struct Pending {
        range: Range<usize>,
        depth: usize,
        node: usize,
    }
    let mut queue = VecDeque::from([Pending {
        range: 0..titles.order.len(),
        depth: 0,
        node: 0,
    }]);
    while let Some(Pending { range, depth, node }) = queue.pop_front() {
        nodes[node].first_child = nodes.len() as u32;
        let mut at = range.start;
        while at < range.end {
            let title = titles.order[at] as usize;
            let tokens = titles.tokens(title);
            let Some(&token) = tokens.get(depth) else {
                // Only the node of a whole title gets here, and it has no children.
                break;
            };
            let same = |&other: &u32| titles.tokens(other as usize)[depth] == token;
            let end = at
                + titles.order[at..range.end]
                    .iter()
                    .take_while(|t| same(t))
                    .count();
            limit("trie nodes", nodes.len() as u64 + 1, u64::from(NONE) - 1)?;
            let complete = depth + 1 == tokens.len();
            queue.push_back(Pending {
                range: at..end,
                depth: depth + 1,
                node: nodes.len(),
            });
            nodes.push(TrieNode {
                token,
                first_child: 0,
                section: if complete {
                    titles.sections[title]
                } else {
                    NONE
                },
            });
            at = end;
        }
    }
    let end = TrieNode {
        token: NONE,
        first_child: nodes.len() as u32,
        section: NONE,
    };
    nodes.push(end);
    Ok(nodes)
}

fn record(
    section: &Section,
    strings: &mut Strings,
    text: Option<&mut String>,
) -> Result<SectionRecord> {
    let (text_offset, text_len) = match text {
        Some(text) => {
            let offset = text.len() as u64;
            text.push_str(&section.text);
            text.push('\0');
            (offset, section.text.len() as u64)
        }
        None => (0, 0),
    };
    if let Some(page) = section.page {
        limit("page", page.into(), u64::from(NONE) - 1)?;
    }
    Ok(SectionRecord {
        number: strings.add(&section.number)?,
        title: strings.add(&section.title)?,
        parent: section.parent.unwrap_or(NONE),
        page: section.page.unwrap_or(NONE),
        depth: section.depth,
        flags: if section.leaf { SECTION_LEAF } else { 0 },
        reserved: 0,
        span_start: section.span.start,
        span_end: section.span.end,
        text_offset,
        text_len,
    })
}

/// The texts of an index, end to end. A NUL follows each, so that C can use them in place.
#[derive(Default)]
struct Strings(String);

impl Strings {
    fn add(&mut self, text: &str) -> Result<TextRef> {
        let end = self.0.len() as u64 + text.len() as u64 + 1;
        limit("bytes of titles", end, u64::from(u32::MAX))?;
        let offset = self.0.len() as u32;
        self.0.push_str(text);
        self.0.push('\0');
        Ok(TextRef {
            offset,
            len: text.len() as u32,
        })
    }
}

/// Lays sections out one after another and closes the file with its checksums.
struct FileWriter {
    bytes: Vec<u8>,
    table: Vec<TableEntry>,
    table_len: usize,
    minor: u16,
}

impl FileWriter {
    fn new(table_len: usize) -> Self {
        let start = size_of::<Header>() + table_len * size_of::<TableEntry>();
        Self {
            bytes: vec![0; start],
            table: Vec::with_capacity(table_len),
            table_len,
            minor: 0,
        }
    }

    fn section<T: bytemuck::NoUninit>(&mut self, kind: u32, records: &[T]) {
        self.pad();
        self.table.push(TableEntry {
            kind,
            record_size: size_of::<T>() as u32,
            offset: self.bytes.len() as u64,
            count: records.len() as u64,
        });
        self.bytes.extend_from_slice(bytemuck::cast_slice(records));
    }

    fn finish(mut self, vocab_size: u32, fingerprint: u64) -> Vec<u8> {
        debug_assert_eq!(self.table.len(), self.table_len);
        self.pad();
        let start = size_of::<Header>();
        let table = bytemuck::cast_slice(&self.table);
        self.bytes[start..][..table.len()].copy_from_slice(table);
        let body_len = self.bytes.len() - start;
        let sums: Vec<u64> = checksum::blocks(&self.bytes[start..]).collect();
        self.bytes.extend_from_slice(bytemuck::cast_slice(&sums));
        let mut header = Header {
            magic: MAGIC,
            major: MAJOR,
            minor: self.minor,
            byte_order: BYTE_ORDER_MARK,
            file_len: self.bytes.len() as u64,
            body_len: body_len as u64,
            table_len: self.table_len as u16,
            required_flags: 0,
            vocab_size,
            fingerprint,
            body_checksum: checksum::of(bytemuck::cast_slice(&sums)),
            ..Header::zeroed()
        };
        header.header_checksum = checksum::of(&bytemuck::bytes_of(&header)[..56]);
        self.bytes[..start].copy_from_slice(bytemuck::bytes_of(&header));
        self.bytes
    }

    fn pad(&mut self) {
        self.bytes
            .resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0);
    }
}

/// A reader refuses an index with tokens outside its vocabulary, and llama.cpp would end the
/// process on one.
fn in_vocabulary(tokens: &[u32], tokenizer: &dyn Tokenizer) -> Result<()> {
    let size = tokenizer.vocab_size();
    match tokens.iter().find(|&&token| token >= size) {
        Some(bad) => Err(Error::Tokenizer(format!(
            "it gave token {bad} and its vocabulary has {size}"
        ))),
        None => Ok(()),
    }
}

fn limit(what: &'static str, found: u64, limit: u64) -> Result<()> {
    match found > limit {
        true => Err(Error::TooLarge { what, found, limit }),
        false => Ok(()),
    }
}
