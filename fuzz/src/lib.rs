//! What the targets share: a tokenizer without a file, a walk over everything an index answers,
//! and the checksums of a file whose bytes were made up.

#[cfg(feature = "engine")]
mod arguments;
#[cfg(feature = "engine")]
pub mod host;
#[cfg(feature = "engine")]
pub mod silence;
#[cfg(feature = "engine")]
pub mod tiny;

use stair::index::format::{BLOCK, BYTE_ORDER_MARK, Header, MAGIC, MAJOR};
use stair::index::{BuildOptions, Index, NodeId};
use stair::toc::Toc;
use stair::tokens::{Special, Tokenizer};
use std::io::Write;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// One token a byte, and a terminator.
pub struct Bytes;

impl Tokenizer for Bytes {
    fn encode(&self, text: &str, _: Special) -> stair::Result<Vec<u32>> {
        Ok(text.bytes().map(u32::from).collect())
    }
    fn vocab_size(&self) -> u32 {
        257
    }
    fn fingerprint(&self) -> u64 {
        1
    }
    fn end_of_text(&self) -> Option<u32> {
        Some(256)
    }
    fn token(&self, text: &str) -> Option<u32> {
        (text == "<end>").then_some(256)
    }
}

/// Asks `index` for all that it has. Everything a checked file promises is asserted.
pub fn walk(index: &Index) {
    let info = index.info();
    assert_eq!(info.prefix_tokens as usize, index.prefix().len());
    assert!(
        index
            .prefix()
            .iter()
            .all(|&token| token < index.vocab_size())
    );
    let question = index.question();
    let _ = question.encode_question(&Bytes, "a question");
    let mut leaves = 0;
    for id in 0..index.sections() {
        let section = index.section(id).expect("ids go from 0 to sections()");
        leaves += u32::from(section.leaf);
        assert!(!section.title.is_empty());
        assert!(!section.identifier().is_empty());
        assert!(section.parent.is_none_or(|parent| parent < id));
        assert!(section.span.start <= section.span.end);
        assert_eq!(section.text.is_some(), info.has_text);
        assert!(section.leaf || index.asked(id).is_empty());
        // Paths up a chain of n sections have n² steps in all.
        if id < 64 || id + 64 > index.sections() {
            let path = index.path(id);
            assert_eq!(path.last(), Some(&id));
            assert_eq!(path.len(), usize::from(section.depth) + 1);
        }
    }
    assert_eq!(leaves, index.leaves());
    assert!(index.section(index.sections()).is_none());

    let trie = index.trie();
    let mut titles = 0;
    let mut visited = 0;
    let mut deepest = 0;
    let mut stack = vec![(NodeId::ROOT, 0)];
    while let Some((node, depth)) = stack.pop() {
        visited += 1;
        assert!(visited <= trie.len(), "a node has two parents");
        let children: Vec<_> = trie.children(node).collect();
        assert_eq!(trie.degree(node), children.len());
        assert_eq!(trie.section(node).is_some(), children.is_empty());
        if let Some(section) = trie.section(node) {
            assert!(index.section(section).expect("exists").leaf);
            titles += 1;
            deepest = deepest.max(depth);
        }
        assert!(children.is_sorted_by(|a, b| a.0 < b.0));
        for &(token, child) in &children {
            assert_eq!(trie.child(node, token), Some(child));
            assert_eq!(trie.only_child(node).is_some(), children.len() == 1);
            stack.push((child, depth + 1));
        }
    }
    assert_eq!(visited, trie.len());
    assert_eq!(titles, index.leaves());
    assert_eq!(deepest, index.longest_title());
}

/// `bytes` with a header and checksums that fit them, whatever they were: what someone with a hex
/// editor and `docs/format.md` can make. A few fields of the header are kept.
pub fn forge(bytes: &[u8]) -> Option<Vec<u8>> {
    let body = bytes.get(size_of::<Header>()..)?;
    let old: Header = bytemuck::pod_read_unaligned(&bytes[..size_of::<Header>()]);
    // A whole file keeps its body; the checksums that follow it are made anew.
    let body = &body[..body.len().min(old.body_len as usize)];
    let body = &body[..body.len() / 8 * 8];
    let sums: Vec<u64> = body.chunks(BLOCK).map(xxh3_64).collect();
    let sums: &[u8] = bytemuck::cast_slice(&sums);
    let mut header = Header {
        magic: MAGIC,
        major: MAJOR,
        byte_order: BYTE_ORDER_MARK,
        file_len: (size_of::<Header>() + body.len() + sums.len()) as u64,
        body_len: body.len() as u64,
        required_flags: 0,
        body_checksum: xxh3_64(sums),
        header_checksum: 0,
        ..old
    };
    header.header_checksum = xxh3_64(&bytemuck::bytes_of(&header)[..56]);
    Some([bytemuck::bytes_of(&header), body, sums].concat())
}

/// Builds and opens an index of `toc`, which a reader made, and compares.
pub fn round_trip(toc: &Toc, options: &BuildOptions) {
    let bytes = match stair::index::build(toc, &Bytes, options, &|_| ()) {
        Ok((bytes, _)) => bytes,
        // A template may make the boundary before a title unstable or end with no tokens.
        Err(stair::Error::UnstableBoundary { .. } | stair::Error::Template(_)) => return,
        // A toc.json may name page 4,294,967,295, which in an index means "no page".
        Err(stair::Error::TooLarge { what: "page", .. }) => return,
        Err(error) => panic!("a reader's table of contents does not build: {error}"),
    };
    let index = Index::from_bytes(&bytes).expect("what was built opens");
    walk(&index);
    assert_eq!(index.title(), toc.title);
    assert_eq!(index.sections() as usize, toc.sections.len());
    for (id, expected) in (0u32..).zip(&toc.sections) {
        let section = index.section(id).expect("exists");
        assert_eq!(section.number, expected.number);
        assert_eq!(section.title, expected.title);
        assert_eq!(section.depth, expected.depth);
        assert_eq!(section.parent, expected.parent);
        assert_eq!(section.leaf, expected.leaf);
        assert_eq!(section.span, expected.span);
        assert_eq!(section.page, expected.page);
        assert_eq!(section.text, options.text.then_some(expected.text.as_str()));
    }
}

/// Runs `body` with the path of a file of these bytes.
pub fn with_file<T>(bytes: &[u8], body: impl FnOnce(&Path) -> T) -> T {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(bytes).expect("writes");
    body(file.path())
}
