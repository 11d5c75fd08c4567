//! From a table of contents to a file and back; and files that somebody damaged or forged.

use super::checksum;
use super::format::{BLOCK, Header, NONE, TableEntry, kind};
use super::{BuildOptions, Index, NodeId, build};
use crate::error::{Code, Error, Result};
use crate::prompt::Template;
use crate::toc::{Notes, Section, Toc};
use crate::tokens::testing::Bytes;
use bytemuck::{Pod, bytes_of, pod_read_unaligned};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;

const HEADER: usize = size_of::<Header>();

/// A table of contents from `(level, title, text, page)`; numbers are counted, spans nest.
pub(super) fn toc(title: &str, entries: &[(u16, &str, &str, Option<u32>)]) -> Toc {
    let mut sections: Vec<Section> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut offset = 0;
    for (i, &(level, title, text, page)) in entries.iter().enumerate() {
        open.truncate(usize::from(level));
        let parent = open.last().copied();
        let start = offset;
        offset += 1 + text.len() as u64;
        for &above in &open {
            sections[above].leaf = false;
            sections[above].span.end = offset;
        }
        sections.push(Section {
            number: if i % 3 == 2 {
                String::new()
            } else {
                format!("{}.{i}", open.len())
            },
            title: title.to_owned(),
            depth: open.len() as u16,
            parent: parent.map(|parent| parent as u32),
            leaf: true,
            span: start..offset,
            page,
            text: text.to_owned(),
        });
        open.push(i);
    }
    Toc {
        title: title.to_owned(),
        sections,
        notes: Notes::default(),
    }
}

fn options(text: bool) -> BuildOptions {
    let template = Template {
        head: "H".to_owned(),
        ..Template::default()
    };
    BuildOptions { template, text }
}

pub(super) fn bytes_of_toc(toc: &Toc, text: bool) -> Vec<u8> {
    build(toc, &Bytes, &options(text), &|_| ())
        .expect("builds")
        .0
}

/// A file of about a kilobyte with a bit of everything: three levels, a leaf without a number, a
/// page, a shared first word, letters of several bytes.
pub(super) fn small() -> Vec<u8> {
    let entries = [
        (0, "A", "aé", None),
        (1, "Ab", "", Some(7)),
        (2, "Ac", "手", None),
        (0, "Ad", "z", Some(0)),
    ];
    bytes_of_toc(&toc("T", &entries), true)
}

fn header_of(bytes: &[u8]) -> Header {
    pod_read_unaligned(&bytes[..HEADER])
}

/// What whoever changes a file can also do: makes all checksums right again, as far as the header
/// says where they are.
pub(super) fn forge(bytes: &mut [u8]) {
    let body_len = header_of(bytes).body_len;
    let sums_at = usize::try_from(body_len)
        .ok()
        .and_then(|len| len.checked_add(HEADER));
    if let Some(sums_at) = sums_at.filter(|&at| at <= bytes.len()) {
        let (body, sums) = bytes.split_at_mut(sums_at);
        for (sum, slot) in checksum::blocks(&body[HEADER..]).zip(sums.chunks_exact_mut(8)) {
            slot.copy_from_slice(&sum.to_le_bytes());
        }
        let sum = checksum::of(sums);
        bytes[48..56].copy_from_slice(&sum.to_le_bytes());
    }
    let sum = checksum::of(&bytes[..56]);
    bytes[56..64].copy_from_slice(&sum.to_le_bytes());
}

/// A file of `body`, cut to a multiple of eight bytes, under a header and checksums that fit it.
pub(super) fn seal(header: &Header, body: &[u8]) -> Vec<u8> {
    let body = &body[..body.len() / 8 * 8];
    let sums = body.len().div_ceil(BLOCK) * 8;
    let header = Header {
        body_len: body.len() as u64,
        file_len: (HEADER + body.len() + sums) as u64,
        ..*header
    };
    let mut bytes = [bytes_of(&header), body, &vec![0; sums]].concat();
    forge(&mut bytes);
    bytes
}

/// Changes the record at byte `at`.
pub(super) fn patch<T: Pod>(bytes: &mut [u8], at: usize, change: impl FnOnce(&mut T)) {
    let place = &mut bytes[at..][..size_of::<T>()];
    let mut record: T = pod_read_unaligned(place);
    change(&mut record);
    place.copy_from_slice(bytes_of(&record));
}

/// Where the records of a kind lie.
pub(super) fn place(bytes: &[u8], kind: u32) -> Range<usize> {
    (0..usize::from(header_of(bytes).table_len))
        .map(|i| pod_read_unaligned::<TableEntry>(&bytes[HEADER + i * 24..][..24]))
        .find(|entry| entry.kind == kind)
        .map(|entry| {
            let start = entry.offset as usize;
            start..start + entry.count as usize * entry.record_size as usize
        })
        .expect("the file has it")
}

/// Everything that `index` answers, as text; and everything that a checked file promises.
fn answers(index: &Index) -> String {
    let mut all = format!(
        "{:?} {:?} {:?}\n",
        index.info(),
        index.question(),
        index.prefix()
    );
    assert!(
        index
            .prefix()
            .iter()
            .all(|&token| token < index.vocab_size())
    );
    let mut leaves = 0;
    for id in 0..index.sections() {
        let section = index.section(id).expect("ids go from 0 to sections()");
        let path = index.path(id);
        leaves += u32::from(section.leaf);
        assert!(!section.title.is_empty());
        assert!(section.span.start <= section.span.end);
        assert_eq!(section.text.is_some(), index.info().has_text);
        assert_eq!(path.len(), usize::from(section.depth) + 1);
        assert_eq!(path.last(), Some(&id));
        all += &format!("{section:?} {path:?}\n");
    }
    assert_eq!(leaves, index.leaves());
    assert!(index.section(index.sections()).is_none());

    let trie = index.trie();
    let titles = titles(index);
    let mut sections: Vec<u32> = titles.values().copied().collect();
    sections.sort_unstable();
    sections.dedup();
    assert_eq!(sections.len(), titles.len());
    assert_eq!(titles.len() as u32, index.leaves());
    let longest = titles.keys().map(Vec::len).max();
    assert_eq!(longest, Some(index.longest_title() as usize));
    for (tokens, &section) in &titles {
        assert_eq!(
            trie.find(tokens).and_then(|node| trie.section(node)),
            Some(section)
        );
        assert!(index.section(section).expect("exists").leaf);
    }
    all + &format!("{titles:?}")
}

/// The title's tokens and the section of every leaf, by walking the trie.
fn titles(index: &Index) -> BTreeMap<Vec<u32>, u32> {
    let trie = index.trie();
    let mut titles = BTreeMap::new();
    let mut visited = 0;
    let mut stack = vec![(NodeId::ROOT, Vec::new())];
    while let Some((node, tokens)) = stack.pop() {
        visited += 1;
        assert!(visited <= trie.len(), "a node has two parents");
        let children: Vec<_> = trie.children(node).collect();
        assert!(children.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(children.len(), trie.degree(node));
        assert_eq!(children.is_empty(), trie.section(node).is_some());
        for &(token, child) in &children {
            assert!(token < index.vocab_size());
            stack.push((child, [&tokens[..], &[token]].concat()));
        }
        if let Some(section) = trie.section(node) {
            assert_eq!(tokens.last(), Some(&index.terminator()));
            titles.insert(tokens, section);
        }
    }
    assert_eq!(visited, trie.len());
    titles
}

fn corrupt_at(result: Result<Index>) -> (u64, String) {
    match result.expect_err("is damaged") {
        Error::IndexCorrupt { at, what } => (at, what),
        error => panic!("not damage: {error}"),
    }
}

/// Sections of any shape with titles of any letters; entry `i`'s title ends with `i`, so that no
/// two are equal.
fn any_toc() -> impl Strategy<Value = Toc> {
    let entry = (
        0u16..6,
        "[a-cé手🙂]{0,3}( [a-c]{1,2}){0,2}",
        ".{0,12}",
        any::<Option<u16>>(),
    );
    (".{0,8}", prop::collection::vec(entry, 1..40)).prop_map(|(title, entries)| {
        let titles: Vec<String> = entries
            .iter()
            .enumerate()
            .map(|(i, e)| format!("{}x{i}", e.1.trim()))
            .collect();
        let entries: Vec<_> = entries
            .iter()
            .zip(&titles)
            .map(|((level, _, text, page), title)| {
                (*level, title.as_str(), text.as_str(), page.map(u32::from))
            })
            .collect();
        toc(&title, &entries)
    })
}

fn round_trips(toc: &Toc, text: bool) {
    let options = options(text);
    let (bytes, report) = build(toc, &Bytes, &options, &|_| ()).expect("builds");
    let index = Index::from_bytes(&bytes).expect("opens");
    answers(&index);

    assert_eq!(index.title(), toc.title);
    assert_eq!(index.question(), options.template.question());
    assert_eq!(index.terminator(), Bytes::END);
    assert_eq!(
        index.prefix(),
        options
            .template
            .encode_prefix(&Bytes, toc)
            .expect("encodes")
    );
    assert_eq!(index.sections() as usize, toc.sections.len());
    let mut expected_titles = BTreeMap::new();
    let encoder = options.template.question();
    let encoder = encoder.titles(&Bytes, Bytes::END).expect("encodes");
    for (id, expected) in (0u32..).zip(&toc.sections) {
        let section = index.section(id).expect("exists");
        assert_eq!(section.id, id);
        assert_eq!(section.number, expected.number);
        assert_eq!(section.title, expected.title);
        assert_eq!(section.identifier(), expected.identifier());
        assert_eq!(section.depth, expected.depth);
        assert_eq!(section.parent, expected.parent);
        assert_eq!(section.leaf, expected.leaf);
        assert_eq!(section.span, expected.span);
        assert_eq!(section.page, expected.page);
        assert_eq!(section.text, text.then_some(expected.text.as_str()));
        assert_eq!(index.path(id), toc.path(id));
        if expected.leaf {
            expected_titles.insert(encoder.encode(&expected.identifier()).expect("encodes"), id);
        }
    }
    assert_eq!(titles(&index), expected_titles);
    // The nodes of a trie are the prefixes of what is in it.
    let mut prefixes: Vec<&[u32]> = expected_titles
        .keys()
        .flat_map(|title| (0..=title.len()).map(|n| &title[..n]))
        .collect();
    prefixes.sort_unstable();
    prefixes.dedup();

    let info = index.info();
    assert_eq!(info.nodes as usize, prefixes.len());
    assert_eq!(info.leaves as usize, toc.leaves().count());
    assert_eq!(info.has_text, text);
    assert_eq!(info.vocab_size, 257);
    let longest = expected_titles.keys().map(Vec::len).max().expect("a leaf") as u32;
    assert_eq!(info.longest_title, longest);
    let first = toc
        .leaves()
        .find(|leaf| encoder.encode(&leaf.identifier()).expect("encodes").len() as u32 == longest);
    assert_eq!(
        report.longest_title,
        first.expect("it is one of them").identifier()
    );
    assert_eq!(report.longest_title_tokens, longest);
    assert_eq!((report.leaves, report.nodes), (info.leaves, info.nodes));
    assert_eq!(report.leaves + report.interiors, info.sections);
    assert_eq!(report.prefix_tokens, info.prefix_tokens);
    assert_eq!(
        (report.bytes, info.bytes),
        (bytes.len() as u64, bytes.len() as u64)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_table_of_contents_comes_back(toc in any_toc(), text: bool) {
        round_trips(&toc, text);
    }

    #[test]
    fn the_same_input_gives_the_same_bytes(toc in any_toc(), text: bool) {
        prop_assert_eq!(bytes_of_toc(&toc, text), bytes_of_toc(&toc.clone(), text));
    }

    /// Several bytes changed at once, to values that mean something somewhere in the format.
    #[test]
    fn a_forged_file_is_refused_or_safe(
        changes in prop::collection::vec((any::<prop::sample::Index>(), value()), 1..4),
    ) {
        let mut bytes = small();
        let body = HEADER..HEADER + header_of(&bytes).body_len as usize;
        for (at, value) in changes {
            let at = body.start + at.index(body.len() / 4) * 4;
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        forge(&mut bytes);
        if let Ok(index) = Index::from_bytes(&bytes) {
            answers(&index);
        }
    }

    /// The bytes under a map may change after they were checked. Answers are then wrong, but they
    /// come, and walks end.
    #[test]
    fn a_file_that_changes_under_the_map_never_panics(
        changes in prop::collection::vec((any::<prop::sample::Index>(), value()), 1..200),
    ) {
        let mut bytes = small();
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.stair");
        std::fs::write(&path, &bytes).expect("writes");
        let index = Index::open(&path).expect("opens");
        for (at, value) in changes {
            let at = at.index(bytes.len() / 4) * 4;
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        // Written in place: the same file, and so the same pages.
        std::fs::write(&path, &bytes).expect("writes");
        for id in (0..index.sections() + 2).chain([NONE - 1, NONE]) {
            if let Some(section) = index.section(id) {
                let _ = section.identifier();
            }
            prop_assert!(index.path(id).len() <= index.sections() as usize);
        }
        let _ = (index.info(), index.question(), index.prefix());
        let trie = index.trie();
        for from in (0..trie.len() as u32 + 2).chain([NONE - 1, NONE]) {
            for last in [false, true] {
                let (mut node, mut steps) = (NodeId(from), 0);
                loop {
                    let mut children = trie.children(node);
                    let child = if last { children.last() } else { children.next() };
                    let Some((token, child)) = child else { break };
                    let _ = (trie.section(child), trie.only_child(node), trie.degree(node));
                    let _ = trie.child(node, token);
                    node = child;
                    steps += 1;
                    prop_assert!(steps <= trie.len());
                }
            }
        }
    }
}

/// Values at the borders of what a field may hold.
fn value() -> impl Strategy<Value = u32> {
    prop_oneof![
        0u32..40,
        Just(NONE),
        Just(NONE - 1),
        Just(256),
        Just(1 << 31),
        any::<u32>()
    ]
}

#[test]
fn a_table_of_contents_of_one_section_comes_back() {
    round_trips(&toc("", &[(0, "A", "", None)]), true);
    round_trips(&toc("", &[(0, "A", "", None)]), false);
}

#[test]
fn titles_that_begin_and_go_on_alike_come_back() {
    let entries = [
        (0, "aa", "", None),
        (0, "aaa", "", None),
        (0, "a", "", None),
    ];
    let mut toc = toc("T", &entries);
    for section in &mut toc.sections {
        section.number.clear();
    }
    round_trips(&toc, true);
}

#[test]
fn a_thousand_children_and_a_deep_chain_come_back() {
    let titles: Vec<String> = (0..1000)
        .map(|i| char::from_u32(0x4E00 + i).expect("a letter").to_string())
        .collect();
    let mut entries: Vec<_> = titles
        .iter()
        .map(|title| (0, title.as_str(), "", None))
        .collect();
    let deep: Vec<(u16, String)> = (0..300).map(|i| (i, format!("d{i}"))).collect();
    entries.extend(
        deep.iter()
            .map(|(level, title)| (*level, title.as_str(), "x", None)),
    );
    round_trips(&toc("T", &entries), true);
}

#[test]
fn more_titles_than_one_thread_takes_come_back() {
    let titles: Vec<String> = (0..10_000).map(|i| format!("t{i}")).collect();
    let entries: Vec<_> = titles
        .iter()
        .map(|title| (0, title.as_str(), "", None))
        .collect();
    let toc = toc("T", &entries);
    round_trips(&toc, false);
    assert_eq!(bytes_of_toc(&toc, false), bytes_of_toc(&toc, false));
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let whole = small();
    let texts_end = place(&whole, kind::TEXT).end;
    for len in 0..whole.len() {
        let cut = &whole[..len];
        let error = Index::from_bytes(cut).expect_err("is cut");
        match len {
            0 => assert_eq!(error.code(), Code::NotAnIndex),
            _ => match error {
                Error::IndexCorrupt { at, .. } => assert_eq!(at, len as u64),
                error => panic!("cut at {len}: {error}"),
            },
        }
        // With a header and checksums that fit, only the structure tells.
        if len >= HEADER {
            match Index::from_bytes(&seal(&header_of(&whole), &cut[HEADER..])) {
                Ok(index) => {
                    assert!(len >= texts_end, "cut at {len}");
                    answers(&index);
                }
                Err(error) => assert_eq!(error.code(), Code::IndexCorrupt, "{error}"),
            }
        }
    }
    let longer = [&whole[..], &[0]].concat();
    assert_eq!(corrupt_at(Index::from_bytes(&longer)).0, whole.len() as u64);
}

#[test]
fn every_flipped_bit_is_found() {
    let mut bytes = small();
    for bit in 0..bytes.len() * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(
            Index::from_bytes(&bytes).is_err(),
            "bit {} of byte {}",
            bit % 8,
            bit / 8
        );
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    Index::from_bytes(&bytes).expect("every bit was flipped back");
}

#[test]
fn every_flipped_bit_with_forged_checksums_is_refused_or_safe() {
    let whole = small();
    let mut opened = 0;
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        forge(&mut bytes);
        if let Ok(index) = Index::from_bytes(&bytes) {
            answers(&index);
            opened += 1;
        }
    }
    // Letters of a title, texts, spans, pages: most of a file may say something else.
    assert!(opened > 500, "forging has no effect");
}

#[test]
fn damage_is_placed() {
    let text = "0123456789".repeat(2_000);
    let whole = bytes_of_toc(&toc("T", &[(0, "A", &text, None)]), true);
    let body_end = HEADER + header_of(&whole).body_len as usize;
    assert!(body_end > 4 * BLOCK);
    for byte in (HEADER..body_end).step_by(509) {
        let mut bytes = whole.clone();
        bytes[byte] ^= 4;
        let block = HEADER + (byte - HEADER) / BLOCK * BLOCK;
        let (at, what) = corrupt_at(Index::from_bytes(&bytes));
        assert_eq!(at, block as u64);
        let end = (block + BLOCK).min(body_end) - 1;
        assert!(what.contains(&format!("bytes {block} to {end}")), "{what}");
    }
    // The first of two damaged blocks is named.
    let mut bytes = whole.clone();
    bytes[HEADER + 3 * BLOCK] ^= 1;
    bytes[HEADER + BLOCK] ^= 1;
    assert_eq!(
        corrupt_at(Index::from_bytes(&bytes)).0,
        (HEADER + BLOCK) as u64
    );
    // The checksums themselves.
    let mut bytes = whole;
    bytes[body_end + 8] ^= 1;
    assert_eq!(corrupt_at(Index::from_bytes(&bytes)).0, body_end as u64);
}

#[test]
fn text_mode_and_foreign_files_are_said_so() {
    let whole = small();
    let refused = |bytes: &[u8]| match Index::from_bytes(bytes).expect_err("is no index") {
        Error::NotAnIndex(why) => why,
        error => panic!("{error}"),
    };
    let mut unix = whole.clone();
    unix.remove(4);
    let mut seven_bits = whole.clone();
    seven_bits[0] &= 0x7F;
    let mut dos = whole.clone();
    dos.insert(7, b'\r');
    let utf8: Vec<u8> = String::from_utf8_lossy(&whole).into_owned().into_bytes();
    assert!(refused(&unix).contains("binary mode"));
    assert!(refused(&seven_bits).contains("binary mode"));
    assert!(refused(&dos).contains("binary mode"));
    assert!(refused(&utf8).contains("magic"));
    assert!(refused(b"# A document\n").contains("magic"));
    assert!(refused(b"").contains("empty"));

    let mut big = whole;
    patch::<Header>(&mut big, 0, |header| {
        header.byte_order = header.byte_order.swap_bytes()
    });
    assert!(refused(&big).contains("big-endian"));
    forge(&mut big);
    assert!(refused(&big).contains("big-endian"));
}

#[test]
fn versions_and_flags_are_told_apart() {
    let with = |change: fn(&mut Header), forged: bool| {
        let mut bytes = small();
        patch::<Header>(&mut bytes, 0, change);
        if forged {
            forge(&mut bytes);
        }
        Index::from_bytes(&bytes)
    };
    let later = with(|header| header.major = 2, true).expect_err("another format");
    assert_eq!(later.code(), Code::IndexVersion);
    assert!(later.to_string().contains("2.0"), "{later}");
    assert!(later.to_string().contains("update"), "{later}");
    let earlier = with(|header| header.major = 0, true).expect_err("another format");
    assert!(earlier.to_string().contains("rebuild"), "{earlier}");
    // The flags of another major version mean nothing to this one.
    let both = with(|h| (h.major, h.required_flags) = (2, 1), true).expect_err("another format");
    assert!(!both.to_string().contains("features"), "{both}");
    // A header of another version may have its checksum elsewhere.
    let unsummed = with(|header| header.major = 2, false).expect_err("another format");
    assert_eq!(unsummed.code(), Code::IndexVersion);

    let flags = with(|header| header.required_flags = 0x8001, true).expect_err("unknown features");
    assert_eq!(flags.code(), Code::IndexVersion);
    assert!(flags.to_string().contains("0x8001"), "{flags}");
    assert_eq!(
        corrupt_at(with(|header| header.required_flags = 1, false)).0,
        34
    );
    assert_eq!(corrupt_at(with(|header| header.byte_order = 1, true)).0, 12);

    let minor = with(|header| header.minor = 9, true).expect("a later minor version opens");
    assert_eq!(minor.info().version, (1, 9));
    assert_eq!(corrupt_at(with(|header| header.minor = 9, false)).0, 0);
}

/// A later minor version may add sections, which this one skips.
#[test]
fn a_section_of_an_unknown_kind_is_skipped() {
    let whole = small();
    let before = answers(&Index::from_bytes(&whole).expect("opens"));
    // One more entry, in front of everything: every section moves by the entry's length.
    let header = header_of(&whole);
    let body_len = header.body_len as usize;
    let entry = TableEntry {
        kind: 99,
        record_size: 8,
        offset: (HEADER + 24 * (usize::from(header.table_len) + 1)) as u64,
        count: 1,
    };
    let mut body = [bytes_of(&entry), &whole[HEADER..HEADER + body_len]].concat();
    for i in 1..=usize::from(header.table_len) {
        patch::<TableEntry>(&mut body, 24 * i, |entry| entry.offset += 24);
    }
    let header = Header {
        table_len: header.table_len + 1,
        minor: 1,
        ..header
    };
    let bytes = seal(&header, &body);
    let after = answers(&Index::from_bytes(&bytes).expect("opens"));
    let same = |answers: &str| {
        answers
            .split_once("sections:")
            .map(|(_, rest)| rest.to_owned())
    };
    assert_eq!(same(&after), same(&before));
}
