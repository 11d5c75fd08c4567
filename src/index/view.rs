//! An open index: the bytes of a file, checked as a whole, and typed access to them.

use super::format::{
    AskedRecord, Meta, SECTION_LEAF, SectionRecord, TEMPLATE_SPECIAL, TextRef, TrieNode,
};
use super::question::QuestionTemplate;
use super::trie::Trie;
use super::validate::{self, Layout};
use crate::error::{Error, Result};
use memmap2::Mmap;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::Path;

/// An open index. It never changes, and any number of threads may use it at once.
pub struct Index {
    bytes: Bytes,
    layout: Layout,
    /// Copied out of the file, so that what a retriever was made with cannot change under it.
    meta: Meta,
}

/// What an index says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// The document's title.
    pub title: String,
    /// Version of the format: major and minor.
    pub version: (u16, u16),
    /// Length of the file in bytes.
    pub bytes: u64,
    /// Number of sections, leaves included.
    pub sections: u32,
    /// Number of leaves.
    pub leaves: u32,
    /// Number of trie nodes.
    pub nodes: u32,
    /// Number of tokens in the longest title, its terminator included.
    pub longest_title: u32,
    /// Number of tokens of the prompt up to the question.
    pub prefix_tokens: u32,
    /// Whether the sections' texts are in the file.
    pub has_text: bool,
    /// Number of leaves with questions that they are known to answer.
    pub asked: u32,
    /// Number of tokens in the vocabulary that the index was built for.
    pub vocab_size: u32,
    /// Fingerprint of that vocabulary.
    pub fingerprint: u64,
}

/// One section of the document. Its texts live as long as the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section<'a> {
    /// Position in document order, from 0.
    pub id: u32,
    /// Its number, `"4.2"`; empty when it has none.
    pub number: &'a str,
    /// Its title.
    pub title: &'a str,
    /// 0 for a top-level section.
    pub depth: u16,
    /// The section it belongs to.
    pub parent: Option<u32>,
    /// Whether it has no subsection.
    pub leaf: bool,
    /// Bytes of the original document.
    pub span: Range<u64>,
    /// Page in the original.
    pub page: Option<u32>,
    /// Its text; `None` when the index was built without text.
    pub text: Option<&'a str>,
}

impl Section<'_> {
    /// `number title`: what identifies a leaf in its document.
    pub fn identifier(&self) -> String {
        match self.number {
            "" => self.title.to_owned(),
            number => [number, " ", self.title].concat(),
        }
    }
}

impl Index {
    /// Maps the index at `path` and checks all of it.
    ///
    /// The file must not be truncated while it is open: touching a page that is gone ends the
    /// process (SIGBUS). Replacing it by a rename, as [`crate::files::write_atomically`] does, is
    /// safe. On a network drive use [`Index::open_copy`].
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::NotAFile`], [`Error::NotAnIndex`], [`Error::IndexVersion`] or
    /// [`Error::IndexCorrupt`] with the first byte that is wrong.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::new(Bytes::Mapped(map(path)?)).map_err(|error| in_file(error, path))
    }

    /// Reads the index at `path` into memory and checks all of it: for files that may change or
    /// vanish while they are used.
    ///
    /// # Errors
    ///
    /// As [`Index::open`].
    pub fn open_copy(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let mut bytes = Vec::new();
        open_file(path)?
            .read_to_end(&mut bytes)
            .map_err(|e| Error::io("read", path, e))?;
        Self::from_bytes(&bytes).map_err(|error| in_file(error, path))
    }

    /// Copies an index out of memory and checks all of it.
    ///
    /// # Errors
    ///
    /// As [`Index::open`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::new(Bytes::owned(bytes))
    }

    fn new(bytes: Bytes) -> Result<Self> {
        let (layout, meta) = validate::all(bytes.as_slice())?;
        Ok(Self {
            bytes,
            layout,
            meta,
        })
    }

    /// What the file at `path` says of itself, from its header alone: cheap, and not checked as
    /// [`Index::open`] checks. The title is left empty.
    ///
    /// # Errors
    ///
    /// As [`Index::open`], as far as the header shows it.
    pub fn peek(path: impl AsRef<Path>) -> Result<Info> {
        let path = path.as_ref();
        let map = map(path)?;
        let (layout, meta) = validate::peek(&map).map_err(|error| in_file(error, path))?;
        Ok(info(&map, &layout, &meta, String::new()))
    }

    /// What the index says of itself.
    pub fn info(&self) -> Info {
        info(
            self.bytes(),
            &self.layout,
            &self.meta,
            self.title().to_owned(),
        )
    }

    /// The bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.as_slice()
    }

    /// XXH3-64 of the file's bytes: which index this is.
    pub fn checksum(&self) -> u64 {
        xxhash_rust::xxh3::xxh3_64(self.bytes())
    }

    /// The document's title.
    pub fn title(&self) -> &str {
        self.string(self.meta.title)
    }

    /// Number of sections, leaves included. Ids go from 0 to this.
    pub fn sections(&self) -> u32 {
        self.meta.sections
    }

    /// Number of leaves.
    pub fn leaves(&self) -> u32 {
        self.meta.leaves
    }

    /// Number of tokens in the longest title, its terminator included.
    pub fn longest_title(&self) -> u32 {
        self.meta.longest_title
    }

    /// The token that ends every title.
    pub fn terminator(&self) -> u32 {
        self.meta.terminator
    }

    /// Number of tokens in the vocabulary that the index was built for.
    pub fn vocab_size(&self) -> u32 {
        self.layout.vocab_size
    }

    /// Fingerprint of that vocabulary.
    pub fn fingerprint(&self) -> u64 {
        self.layout.fingerprint
    }

    /// The tokens of the prompt up to the question.
    pub fn prefix(&self) -> &[u32] {
        self.records(&self.layout.prefix)
    }

    /// XXH3-64 of these tokens, 32-bit and little-endian: which table of contents a model reads.
    pub fn prefix_checksum(&self) -> u64 {
        let bytes = self.layout.prefix.clone();
        xxhash_rust::xxh3::xxh3_64(self.bytes().get(bytes).unwrap_or_default())
    }

    /// The template of everything after them.
    pub fn question(&self) -> QuestionTemplate<'_> {
        QuestionTemplate {
            anchor: self.string(self.meta.anchor),
            before_question: self.string(self.meta.before_question),
            after_question: self.string(self.meta.after_question),
            before_title: self.string(self.meta.before_title),
            special: self.meta.template_flags & TEMPLATE_SPECIAL != 0,
        }
    }

    /// The token trie.
    pub fn trie(&self) -> Trie<'_> {
        Trie::new(self.records::<TrieNode>(&self.layout.trie))
    }

    /// The section `id`; `None` when there is no such section.
    pub fn section(&self, id: u32) -> Option<Section<'_>> {
        let record = *self.section_records().get(id as usize)?;
        Some(Section {
            id,
            number: self.string(record.number),
            title: self.string(record.title),
            depth: record.depth,
            parent: self.parent(id, &record),
            leaf: record.flags & SECTION_LEAF != 0,
            span: record.span_start..record.span_end,
            page: (record.page != super::format::NONE).then_some(record.page),
            text: self.layout.text.as_ref().map(|text| {
                let start = record.text_offset as usize;
                let end = start.saturating_add(record.text_len as usize);
                utf8(self.records::<u8>(text).get(start..end))
            }),
        })
    }

    /// Questions that the leaf `id` is known to answer, a line each; empty when there are none.
    pub fn asked(&self, id: u32) -> &str {
        let Some((records, texts)) = &self.layout.asked else {
            return "";
        };
        let records = self.records::<AskedRecord>(records);
        let Ok(place) = records.binary_search_by_key(&id, |record| record.section) else {
            return "";
        };
        let record = records[place];
        let start = record.offset as usize;
        let end = start.saturating_add(record.len as usize);
        utf8(self.records::<u8>(texts).get(start..end))
    }

    /// The ids from the top-level section to `id`, both included.
    pub fn path(&self, id: u32) -> Vec<u32> {
        let mut path: Vec<u32> = self.upwards(id).map(|section| section.id).collect();
        path.reverse();
        path
    }

    /// The sections from `id` to the top-level one, both included.
    pub fn upwards(&self, id: u32) -> impl Iterator<Item = Section<'_>> {
        std::iter::successors(self.section(id), |section| self.section(section.parent?))
    }

    /// Only a parent that stands before its child counts, so that a walk upwards ends even in a
    /// file that changed after it was checked. `record` is a copy, so that it is read once.
    fn parent(&self, id: u32, record: &SectionRecord) -> Option<u32> {
        (record.parent < id).then_some(record.parent)
    }

    fn section_records(&self) -> &[SectionRecord] {
        self.records(&self.layout.sections)
    }

    fn string(&self, text: TextRef) -> &str {
        let start = text.offset as usize;
        let end = start.saturating_add(text.len as usize);
        utf8(self.records::<u8>(&self.layout.strings).get(start..end))
    }

    fn records<T: bytemuck::Pod>(&self, range: &Range<usize>) -> &[T] {
        let bytes = self.bytes.as_slice().get(range.clone()).unwrap_or_default();
        bytemuck::try_cast_slice(bytes).unwrap_or_default()
    }
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Index").field(&self.info()).finish()
    }
}

/// Text that was valid when the file was checked. If the file changed since, it is empty rather
/// than undefined.
fn utf8(bytes: Option<&[u8]>) -> &str {
    bytes
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
        .unwrap_or_default()
}

fn info(file: &[u8], layout: &Layout, meta: &Meta, title: String) -> Info {
    Info {
        title,
        version: layout.version,
        bytes: file.len() as u64,
        sections: meta.sections,
        leaves: meta.leaves,
        nodes: meta.nodes,
        longest_title: meta.longest_title,
        // Counts in the file are 32-bit, and so is this one in practice: a prefix is a prompt.
        prefix_tokens: (layout.prefix.len() / size_of::<u32>()) as u32,
        has_text: layout.text.is_some(),
        asked: layout.asked.as_ref().map_or(0, |(records, _)| {
            (records.len() / size_of::<AskedRecord>()) as u32
        }),
        vocab_size: layout.vocab_size,
        fingerprint: layout.fingerprint,
    }
}

/// `error`, which says what is wrong with an index, with the file that it was read from.
fn in_file(error: Error, path: &Path) -> Error {
    let named = |why: String| format!("{}: {why}", path.display());
    match error {
        Error::NotAnIndex(why) => Error::NotAnIndex(named(why)),
        Error::IndexCorrupt { at, what } => Error::IndexCorrupt {
            at,
            what: format!("{what} (in {})", path.display()),
        },
        other => other,
    }
}

fn map(path: &Path) -> Result<Mmap> {
    let file = open_file(path)?;
    if file
        .metadata()
        .map_err(|e| Error::io("read", path, e))?
        .len()
        == 0
    {
        // Mapping nothing is an error on some systems, and it is no index anyway.
        let error = Error::NotAnIndex("the file is empty".to_owned());
        return Err(in_file(error, path));
    }
    // SAFETY: the map is read-only. Another process may still write to the file: every read of it
    // is bounds-checked, and texts are checked again each time.
    unsafe { Mmap::map(&file) }.map_err(|e| Error::io("map", path, e))
}

fn open_file(path: &Path) -> Result<File> {
    let fail = |error| Error::io("read", path, error);
    // Before it is opened, because opening a named pipe waits for a writer; and after, because
    // another file may have taken its place.
    if !std::fs::metadata(path).map_err(fail)?.is_file() {
        return Err(Error::NotAFile(path.to_path_buf()));
    }
    let file = File::open(path).map_err(fail)?;
    match file.metadata().map_err(fail)?.is_file() {
        true => Ok(file),
        false => Err(Error::NotAFile(path.to_path_buf())),
    }
}

/// The bytes of a file, at an address that is a multiple of eight.
enum Bytes {
    Mapped(Mmap),
    Owned { words: Vec<u64>, len: usize },
}

impl Bytes {
    fn owned(bytes: &[u8]) -> Self {
        let mut words = vec![0u64; bytes.len().div_ceil(8)];
        bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..bytes.len()].copy_from_slice(bytes);
        Self::Owned {
            words,
            len: bytes.len(),
        }
    }

    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Owned { words, len } => &bytemuck::cast_slice(words)[..*len],
        }
    }
}
