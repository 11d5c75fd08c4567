//! The check of a file, all of it, at every open: lengths, then checksums, then structure.
//!
//! Checksums find accidents; only the structural pass gives safety, because whoever can write a
//! file can also write its checksums. Both are cheap: a file of a million leaves takes a fraction
//! of a second.

use super::checksum;
use super::format::{
    ALIGNMENT, AskedRecord, BLOCK, BYTE_ORDER_MARK, Header, KNOWN_FLAGS, MAGIC, MAJOR, Meta, NONE,
    SECTION_LEAF, SectionRecord, TEMPLATE_SPECIAL, TableEntry, TextRef, TrieNode, kind,
};
use crate::error::{Error, Result};
use std::collections::HashSet;
use std::ops::Range;

/// Where everything lies in a checked file, in bytes from its start.
#[derive(Debug)]
pub(super) struct Layout {
    pub version: (u16, u16),
    pub vocab_size: u32,
    pub fingerprint: u64,
    pub strings: Range<usize>,
    pub sections: Range<usize>,
    pub prefix: Range<usize>,
    pub trie: Range<usize>,
    pub text: Option<Range<usize>>,
    /// Records, and their texts.
    pub asked: Option<(Range<usize>, Range<usize>)>,
}

/// Checks the whole of `file`, which starts at an address that is a multiple of [`ALIGNMENT`].
pub(super) fn all(file: &[u8]) -> Result<(Layout, Meta)> {
    let header = header(file)?;
    body_checksums(file, &header)?;
    let (layout, meta, meta_at) = lay_out(file, &header)?;
    let view = View {
        file,
        layout: &layout,
        meta: &meta,
        meta_at,
    };
    view.template()?;
    view.prefix()?;
    view.sections()?;
    view.asked()?;
    view.trie()?;
    Ok((layout, meta))
}

/// Checks header and table, and believes the rest.
pub(super) fn peek(file: &[u8]) -> Result<(Layout, Meta)> {
    let header = header(file)?;
    let (layout, meta, _) = lay_out(file, &header)?;
    Ok((layout, meta))
}

/// Where everything lies, META, and where that lies.
fn lay_out(file: &[u8], header: &Header) -> Result<(Layout, Meta, usize)> {
    let table = Table::read(file, header)?;
    let meta = table.required::<Meta>(kind::META)?;
    let meta_at = meta.start;
    if meta.len() != size_of::<Meta>() {
        return Err(corrupt(meta_at, "there is not exactly one META record"));
    }
    let meta: Meta = bytemuck::pod_read_unaligned(&file[meta]);
    let asked = table.optional::<AskedRecord>(kind::ASKED)?;
    let asked = match (asked, table.optional::<u8>(kind::ASKED_TEXT)?) {
        (Some(records), Some(texts)) => Some((records, texts)),
        (None, None) => None,
        (one, other) => {
            let at = one.or(other).map_or(0, |range| range.start);
            return Err(corrupt(
                at,
                "there are records of questions without their texts, or the reverse",
            ));
        }
    };
    let layout = Layout {
        version: (header.major, header.minor),
        vocab_size: header.vocab_size,
        fingerprint: header.fingerprint,
        strings: table.required::<u8>(kind::STRINGS)?,
        sections: table.required::<SectionRecord>(kind::SECTIONS)?,
        prefix: table.required::<u32>(kind::PREFIX)?,
        trie: table.required::<TrieNode>(kind::TRIE)?,
        text: table.optional::<u8>(kind::TEXT)?,
        asked,
    };
    Ok((layout, meta, meta_at))
}

/// Reads and checks the header alone.
fn header(file: &[u8]) -> Result<Header> {
    let magic = &file[..file.len().min(MAGIC.len())];
    if magic.is_empty() {
        return Err(Error::NotAnIndex("the file is empty".to_owned()));
    }
    if magic != &MAGIC[..magic.len()] {
        // What a transfer in text mode does to the first bytes: CR LF to LF, or the high bit lost.
        let mangled = magic.get(1..4) == Some(b"STR");
        let why = match mangled {
            true => "its first bytes were changed as if it were text; transfer it in binary mode",
            false => "it does not start with the magic of a .stair file",
        };
        return Err(Error::NotAnIndex(why.to_owned()));
    }
    let Some(bytes) = file.get(..size_of::<Header>()) else {
        let what = format!(
            "the file ends here, inside the header of {} bytes",
            size_of::<Header>()
        );
        return Err(corrupt(file.len(), what));
    };
    let header: Header = bytemuck::pod_read_unaligned(bytes);
    if header.byte_order != BYTE_ORDER_MARK {
        return Err(match header.byte_order.swap_bytes() {
            BYTE_ORDER_MARK => {
                Error::NotAnIndex("it was written in big-endian byte order".to_owned())
            }
            _ => corrupt(12, "the byte-order mark is wrong"),
        });
    }
    // The version decides how the rest of the header reads, so it comes before the checksum.
    let unknown_flags = header.required_flags & !KNOWN_FLAGS;
    if header.major != MAJOR || unknown_flags != 0 {
        let intact = checksum::of(&bytes[..56]) == header.header_checksum;
        if header.major == MAJOR && !intact {
            return Err(corrupt(34, "the header's checksum is wrong"));
        }
        return Err(Error::IndexVersion {
            found_major: header.major,
            found_minor: header.minor,
            unknown_flags: if header.major == MAJOR {
                unknown_flags
            } else {
                0
            },
            supported: MAJOR,
        });
    }
    if checksum::of(&bytes[..56]) != header.header_checksum {
        return Err(corrupt(0, "the header's checksum is wrong"));
    }
    if header.file_len != file.len() as u64 {
        let what = format!(
            "the file has {} bytes and should have {}",
            file.len(),
            header.file_len
        );
        return Err(corrupt(file.len().min(header.file_len as usize), what));
    }
    Ok(header)
}

/// Compares every block of the body with its checksum.
fn body_checksums(file: &[u8], header: &Header) -> Result<()> {
    let start = size_of::<Header>();
    let sums_len = checksum::block_count(header.body_len).and_then(|n| n.checked_mul(8));
    let total = sums_len
        .and_then(|sums| sums.checked_add(header.body_len))
        .and_then(|len| len.checked_add(start as u64));
    if total != Some(header.file_len) || !header.body_len.is_multiple_of(ALIGNMENT as u64) {
        return Err(corrupt(24, "the length of the body does not fit the file"));
    }
    // The sum above equals the length of a slice, so it fits.
    let (body, sums) = file[start..].split_at(header.body_len as usize);
    if checksum::of(sums) != header.body_checksum {
        return Err(corrupt(
            start + body.len(),
            "the checksum of the checksums is wrong",
        ));
    }
    for (block, sum) in checksum::blocks(body).enumerate() {
        let stored = &sums[block * 8..][..8];
        if stored != sum.to_le_bytes() {
            let at = start + block * BLOCK;
            let end = (at + BLOCK).min(start + body.len());
            return Err(corrupt(
                at,
                format!("bytes {at} to {} do not match their checksum", end - 1),
            ));
        }
    }
    Ok(())
}

/// The section table, with every entry inside the body.
struct Table<'a> {
    entries: &'a [TableEntry],
    body_end: usize,
}

impl<'a> Table<'a> {
    fn read(file: &'a [u8], header: &Header) -> Result<Self> {
        let start = size_of::<Header>();
        let body_end = usize::try_from(header.body_len)
            .ok()
            .and_then(|len| len.checked_add(start))
            .filter(|&end| end <= file.len())
            .ok_or_else(|| corrupt(24, "the length of the body does not fit the file"))?;
        let end = start + usize::from(header.table_len) * size_of::<TableEntry>();
        if end > body_end {
            return Err(corrupt(start, "the section table is longer than the body"));
        }
        let entries = bytemuck::try_cast_slice(&file[start..end])
            .map_err(|_| corrupt(start, "the section table is misaligned"))?;
        let table = Self { entries, body_end };
        let mut kinds = HashSet::with_capacity(entries.len());
        for (at, entry) in table.entries.iter().enumerate() {
            let at = start + at * size_of::<TableEntry>();
            if !kinds.insert(entry.kind) {
                return Err(corrupt(
                    at,
                    format!("there are two sections of kind {}", entry.kind),
                ));
            }
            let range = table.range(entry).ok_or_else(|| {
                corrupt(
                    at,
                    format!("the section of kind {} lies outside the body", entry.kind),
                )
            })?;
            if range.start < end {
                return Err(corrupt(
                    at,
                    format!("the section of kind {} lies in the table", entry.kind),
                ));
            }
        }
        Ok(table)
    }

    fn range(&self, entry: &TableEntry) -> Option<Range<usize>> {
        let start = usize::try_from(entry.offset).ok()?;
        let len = usize::try_from(entry.count)
            .ok()?
            .checked_mul(entry.record_size as usize)?;
        let end = start.checked_add(len)?;
        (start % ALIGNMENT == 0 && end <= self.body_end).then_some(start..end)
    }

    /// The section of this kind, whose records are `T`s.
    fn optional<T>(&self, kind: u32) -> Result<Option<Range<usize>>> {
        let Some((at, entry)) = self
            .entries
            .iter()
            .enumerate()
            .find(|(_, e)| e.kind == kind)
        else {
            return Ok(None);
        };
        let at = size_of::<Header>() + at * size_of::<TableEntry>();
        if entry.record_size as usize != size_of::<T>() {
            let what = format!(
                "records of kind {kind} have {} bytes and should have {}",
                entry.record_size,
                size_of::<T>()
            );
            return Err(corrupt(at, what));
        }
        // The range of every entry was found to be inside the body when the table was read.
        Ok(self.range(entry))
    }

    fn required<T>(&self, kind: u32) -> Result<Range<usize>> {
        self.optional::<T>(kind)?.ok_or_else(|| {
            corrupt(
                size_of::<Header>(),
                format!("there is no section of kind {kind}"),
            )
        })
    }
}

/// A file whose sections are in place; each method checks what one of them says.
struct View<'a> {
    file: &'a [u8],
    layout: &'a Layout,
    meta: &'a Meta,
    meta_at: usize,
}

impl<'a> View<'a> {
    fn records<T: bytemuck::Pod>(&self, range: &Range<usize>) -> Result<&'a [T]> {
        bytemuck::try_cast_slice(&self.file[range.clone()]).map_err(|_| {
            corrupt(
                range.start,
                "the section's length is not a multiple of its records",
            )
        })
    }

    /// The blob `range` as UTF-8.
    fn utf8(&self, range: &Range<usize>) -> Result<&'a str> {
        std::str::from_utf8(&self.file[range.clone()])
            .map_err(|e| corrupt(range.start + e.valid_up_to(), "the text is not UTF-8"))
    }

    fn template(&self) -> Result<()> {
        let strings = self.utf8(&self.layout.strings)?;
        let meta = self.meta;
        let texts = [
            meta.title,
            meta.anchor,
            meta.before_question,
            meta.after_question,
            meta.before_title,
        ];
        if texts.iter().any(|text| slice(strings, *text).is_none()) {
            return Err(corrupt(
                self.meta_at,
                "a text of META lies outside the strings",
            ));
        }
        if meta.template_flags & !TEMPLATE_SPECIAL != 0 {
            return Err(corrupt(
                self.meta_at,
                "META has template flags that do not exist",
            ));
        }
        if meta.terminator >= self.layout.vocab_size {
            return Err(corrupt(
                self.meta_at,
                "the terminator is outside the vocabulary",
            ));
        }
        Ok(())
    }

    fn prefix(&self) -> Result<()> {
        let tokens = self.records::<u32>(&self.layout.prefix)?;
        let at = self.layout.prefix.start;
        if tokens.is_empty() {
            return Err(corrupt(at, "the prompt has no tokens"));
        }
        match tokens
            .iter()
            .position(|&token| token >= self.layout.vocab_size)
        {
            Some(bad) => Err(corrupt(
                at + bad * 4,
                "a token of the prompt is outside the vocabulary",
            )),
            None => Ok(()),
        }
    }

    fn sections(&self) -> Result<()> {
        let sections = self.records::<SectionRecord>(&self.layout.sections)?;
        let at = |id: usize| self.layout.sections.start + id * size_of::<SectionRecord>();
        if sections.len() != self.meta.sections as usize || sections.is_empty() {
            return Err(corrupt(
                at(0),
                "the number of sections is not what META says",
            ));
        }
        let strings = self.utf8(&self.layout.strings)?;
        let text = match &self.layout.text {
            Some(range) => self.utf8(range)?,
            None => "",
        };
        let mut leaves = 0;
        for (id, section) in sections.iter().enumerate() {
            let fail = |what| Err(corrupt(at(id), format!("section {id}: {what}")));
            let depth = match section.parent {
                NONE => 0,
                // Parents stand before their children, so a walk upwards ends.
                parent if (parent as usize) < id => match sections[parent as usize] {
                    parent if parent.flags & SECTION_LEAF != 0 => {
                        return fail("its parent is a leaf");
                    }
                    parent => parent.depth.saturating_add(1),
                },
                _ => return fail("its parent does not stand before it"),
            };
            if section.depth != depth {
                return fail("its depth is not its parent's and one");
            }
            if section.flags & !SECTION_LEAF != 0 || section.reserved != 0 {
                return fail("it has flags that do not exist");
            }
            if section.span_start > section.span_end {
                return fail("its span ends before it starts");
            }
            match slice(strings, section.title) {
                None | Some("") => {
                    return fail("its title is empty, outside the strings, or no NUL follows it");
                }
                Some(_) => (),
            }
            if slice(strings, section.number).is_none() {
                return fail("its number is outside the strings, or no NUL follows it");
            }
            if self.layout.text.is_none() {
                if (section.text_offset, section.text_len) != (0, 0) {
                    return fail("it has a text in an index without texts");
                }
            } else if terminated(text, section.text_offset, section.text_len).is_none() {
                return fail("its text is outside the texts, or no NUL follows it");
            }
            leaves += u32::from(section.flags & SECTION_LEAF != 0);
        }
        match leaves == self.meta.leaves {
            true => Ok(()),
            false => Err(corrupt(
                self.meta_at,
                "the number of leaves is not what META says",
            )),
        }
    }

    /// Leaves once each, in document order, so that a search by halves finds them.
    fn asked(&self) -> Result<()> {
        let Some((records, texts)) = &self.layout.asked else {
            return Ok(());
        };
        let sections = self.records::<SectionRecord>(&self.layout.sections)?;
        let text = self.utf8(texts)?;
        let mut before = None;
        for (number, record) in self.records::<AskedRecord>(records)?.iter().enumerate() {
            let at = records.start + number * size_of::<AskedRecord>();
            let fail = |what: &str| Err(corrupt(at, format!("questions {number}: {what}")));
            let leaf = sections.get(record.section as usize);
            if leaf.is_none_or(|section| section.flags & SECTION_LEAF == 0) {
                return fail("they are of a section that is no leaf");
            }
            if before.is_some_and(|before| before >= record.section) {
                return fail("they are not in the order of the sections");
            }
            before = Some(record.section);
            if terminated(text, record.offset, record.len.into()).is_none() {
                return fail("they are outside the texts, or no NUL follows them");
            }
        }
        Ok(())
    }

    /// One pass in breadth-first order: children after their parents proves that every walk ends,
    /// and consecutive child ranges prove that every node has one parent.
    fn trie(&self) -> Result<()> {
        let nodes = self.records::<TrieNode>(&self.layout.trie)?;
        let at = |node: usize| self.layout.trie.start + node * size_of::<TrieNode>();
        let count = self.meta.nodes as usize;
        if count < 2 || nodes.len() != count + 1 {
            return Err(corrupt(
                at(0),
                "the number of trie nodes is not what META says",
            ));
        }
        let sections = self.records::<SectionRecord>(&self.layout.sections)?;
        let mut seen = Bits::new(sections.len());
        let mut leaves = 0;
        // Nodes of one depth lie together; `level_end` is where the next depth starts.
        let (mut depth, mut level_end) = (0u32, 1usize);
        for node in 0..count {
            let fail = |what: &str| Err(corrupt(at(node), format!("trie node {node}: {what}")));
            let this = nodes[node];
            let (start, end) = (
                this.first_child as usize,
                nodes[node + 1].first_child as usize,
            );
            if node == 0 && (start != 1 || this.token != NONE) {
                return fail("the root is not followed by its children");
            }
            if start > end || end > count || (start < end && start <= node) {
                return fail("its children do not follow it in order");
            }
            if node == level_end {
                depth += 1;
                level_end = start;
            }
            let mut last = None;
            for child in &nodes[start..end] {
                if last >= Some(child.token) {
                    return fail("its children are not sorted by token");
                }
                last = Some(child.token);
            }
            if node > 0 && this.token >= self.layout.vocab_size {
                return fail("its token is outside the vocabulary");
            }
            let ends_title = node > 0 && this.token == self.meta.terminator;
            if ends_title != (start == end) || ends_title != (this.section != NONE) {
                return fail("titles end with the terminator, and only there");
            }
            if ends_title {
                let section = this.section as usize;
                match sections.get(section) {
                    Some(record) if record.flags & SECTION_LEAF != 0 => (),
                    _ => return fail("its section is not a leaf"),
                }
                if !seen.insert(section) {
                    return fail("its section has two titles");
                }
                leaves += 1;
            }
        }
        if nodes[count].first_child as usize != count {
            return Err(corrupt(
                at(count),
                "the trie does not end with its last node",
            ));
        }
        if leaves != self.meta.leaves {
            return Err(corrupt(at(0), "a leaf has no title in the trie"));
        }
        if depth != self.meta.longest_title {
            return Err(corrupt(
                self.meta_at,
                "the longest title is not what META says",
            ));
        }
        Ok(())
    }
}

/// One bit a section.
struct Bits(Vec<u64>);

impl Bits {
    fn new(len: usize) -> Self {
        Self(vec![0; len.div_ceil(64)])
    }

    /// Sets bit `at`, which is below the length; whether it was clear.
    fn insert(&mut self, at: usize) -> bool {
        let (word, bit) = (&mut self.0[at / 64], 1 << (at % 64));
        let clear = *word & bit == 0;
        *word |= bit;
        clear
    }
}

fn slice(strings: &str, text: TextRef) -> Option<&str> {
    terminated(strings, text.offset.into(), text.len.into())
}

/// The text at `offset`, if it lies in `texts` and a NUL follows it.
fn terminated(texts: &str, offset: u64, len: u64) -> Option<&str> {
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(usize::try_from(len).ok()?)?;
    let text = texts.get(start..end)?;
    (texts.as_bytes().get(end) == Some(&0)).then_some(text)
}

fn corrupt(at: usize, what: impl Into<String>) -> Error {
    Error::IndexCorrupt {
        at: at as u64,
        what: what.into(),
    }
}
