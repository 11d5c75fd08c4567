//! From a table of contents to a file and back; what the builder refuses ([`building`]), what the
//! check refuses ([`structure`]), and files that somebody damaged, cut, forged or changed
//! ([`damage`]).

mod building;
mod damage;
mod structure;

use super::checksum;
use super::format::{BLOCK, Header, TableEntry};
use super::{BuildOptions, Index, NodeId, build};
use crate::prompt::Template;
use crate::toc::{Notes, Section, Toc};
use crate::tokens::testing::Bytes;
use bytemuck::{Pod, bytes_of, pod_read_unaligned};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;

const HEADER: usize = size_of::<Header>();

/// A table of contents from `(level, title, text, page)`; numbers are counted, spans nest.
fn toc(title: &str, entries: &[(u16, &str, &str, Option<u32>)]) -> Toc {
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
    BuildOptions {
        template,
        text,
        ..BuildOptions::default()
    }
}

fn bytes_of_toc(toc: &Toc, text: bool) -> Vec<u8> {
    build(toc, &Bytes, &options(text), &|_| ())
        .expect("builds")
        .0
}

/// A file of about a kilobyte with a bit of everything: three levels, a leaf without a number, a
/// page, a shared first word, letters of several bytes.
fn small() -> Vec<u8> {
    let entries = [
        (0, "A", "aé", None),
        (1, "Ab", "", Some(7)),
        (2, "Ac", "手", None),
        (0, "Ad", "z", Some(0)),
    ];
    bytes_of_toc(&toc("T", &entries), true)
}

/// The small file with questions for two of its three leaves.
fn small_asked() -> Vec<u8> {
    let entries = [
        (0, "A", "aé", None),
        (1, "Ab", "", Some(7)),
        (2, "Ac", "手", None),
        (0, "Ad", "z", Some(0)),
    ];
    let mut options = options(true);
    let asked = [(3, "Wo?"), (2, "Who\n is\0it?"), (3, "é")];
    options.asked = asked.map(|(id, text)| (id, text.to_owned())).into();
    build(&toc("T", &entries), &Bytes, &options, &|_| ())
        .expect("builds")
        .0
}

#[test]
fn questions_come_back_a_line_each_with_their_leaves() {
    let index = Index::from_bytes(&small_asked()).expect("opens");
    let asked: Vec<&str> = (0..5).map(|id| index.asked(id)).collect();
    assert_eq!(asked, ["", "", "Who  is it?", "Wo?\né", ""]);
    assert_eq!((index.info().asked, index.info().version), (2, (1, 1)));
    let without = Index::from_bytes(&small()).expect("opens");
    assert_eq!((without.asked(2), without.info().asked), ("", 0));
    assert_eq!(without.info().version, (1, 0));
    let mut wrong = options(true);
    wrong.asked = vec![(0, "Why?".to_owned())];
    let toc = toc("T", &[(0, "A", "", None), (1, "B", "", None)]);
    let error = build(&toc, &Bytes, &wrong, &|_| ()).expect_err("refused");
    assert!(error.to_string().contains("section 0"), "{error}");
}

fn header_of(bytes: &[u8]) -> Header {
    pod_read_unaligned(&bytes[..HEADER])
}

/// What whoever changes a file can also do: makes all checksums right again, as far as the header
/// says where they are.
fn forge(bytes: &mut [u8]) {
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
fn seal(header: &Header, body: &[u8]) -> Vec<u8> {
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
fn patch<T: Pod>(bytes: &mut [u8], at: usize, change: impl FnOnce(&mut T)) {
    let place = &mut bytes[at..][..size_of::<T>()];
    let mut record: T = pod_read_unaligned(place);
    change(&mut record);
    place.copy_from_slice(bytes_of(&record));
}

/// Where the records of a kind lie.
fn place(bytes: &[u8], kind: u32) -> Range<usize> {
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
        let asked = index.asked(id);
        assert!(section.leaf || asked.is_empty());
        all += &format!("{section:?} {path:?} {asked:?}\n");
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
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 128 }))]

    #[test]
    fn any_table_of_contents_comes_back(toc in any_toc(), text: bool) {
        round_trips(&toc, text);
    }

    #[test]
    fn the_same_input_gives_the_same_bytes(toc in any_toc(), text: bool) {
        prop_assert_eq!(bytes_of_toc(&toc, text), bytes_of_toc(&toc.clone(), text));
    }
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
#[cfg_attr(miri, ignore = "large inputs take Miri hours")]
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
