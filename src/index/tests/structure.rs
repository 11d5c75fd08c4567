//! What the structural check refuses, and where it says that the fault is. Checksums are right in
//! every one of these files.

use super::super::Index;
use super::super::format::{
    AskedRecord, Header, Meta, NONE, SectionRecord, TableEntry, TextRef, TrieNode, kind,
};
use super::{bytes_of_toc, forge, patch, place, seal, small, small_asked, toc};
use crate::error::Error;

const TABLE: usize = size_of::<Header>();

/// What is wrong with the small file after `change`, under checksums that are right.
fn refusal(change: impl FnOnce(&mut Vec<u8>)) -> (u64, String) {
    let mut words = small();
    change(&mut words);
    forge(&mut words);
    let index = Index::from_bytes(&words);
    match index.expect_err("is damaged") {
        Error::IndexCorrupt { at, what } => (at, what),
        error => panic!("not damage: {error}"),
    }
}

/// Changes one record of the small file; the error must name it by its offset and say `why`.
#[track_caller]
fn record<T: bytemuck::Pod>(kind: u32, i: usize, why: &str, change: impl FnOnce(&mut T)) {
    let at = place(&small(), kind).start + i * size_of::<T>();
    let (found, what) = refusal(|bytes| patch(bytes, at, change));
    assert!(what.contains(why), "{what}");
    assert_eq!(found, at as u64, "{what}");
}

#[track_caller]
fn entry(i: usize, why: &str, change: impl FnOnce(&mut TableEntry)) {
    let at = TABLE + i * size_of::<TableEntry>();
    let (found, what) = refusal(|bytes| patch(bytes, at, change));
    assert!(what.contains(why), "{what}");
    assert_eq!(found, at as u64, "{what}");
}

#[test]
fn the_lengths_in_the_header_must_fit() {
    let header = |change: fn(&mut Header)| refusal(|bytes| patch(bytes, 0, change));
    let len = small().len() as u64;
    assert_eq!(header(|h| h.file_len += 8).0, len);
    assert_eq!(header(|h| h.file_len = u64::MAX).0, len);
    assert_eq!(header(|h| h.file_len = 64).0, 64);
    for change in [
        (|h| h.body_len += 8) as fn(&mut Header),
        |h| h.body_len -= 1,
        |h| h.body_len = 0,
        |h| h.body_len = u64::MAX,
        |h| h.body_len = u64::MAX - 7,
        |h| h.body_len = 1 << 63,
    ] {
        assert_eq!(header(change).0, 24);
    }
    let (at, what) = header(|h| h.table_len = u16::MAX);
    assert_eq!(at, TABLE as u64, "{what}");
    let (at, what) = header(|h| h.table_len = 0);
    assert!(at == TABLE as u64 && what.contains("kind 1"), "{what}");
    // One entry more than there are: it lies in what follows the table.
    header(|h| h.table_len += 1);
}

#[test]
fn the_table_must_be_sound() {
    for i in 0..6 {
        entry(i, "outside", |entry| entry.offset = u64::MAX);
        entry(i, "outside", |entry| entry.offset += 1);
        entry(i, "outside", |entry| entry.count = u64::MAX);
        entry(i, "outside", |entry| entry.count = (1 << 62) + 1);
        entry(i, "outside", |entry| {
            (entry.count, entry.record_size) = (1 << 32, u32::MAX)
        });
        entry(i, "in the table", |entry| entry.offset = 64);
        entry(i, "in the table", |entry| entry.offset = 0);
        entry(i, "should have", |entry| {
            (entry.record_size, entry.count) = (2, 0)
        });
    }
    entry(1, "two sections of kind 1", |entry| entry.kind = 1);
    entry(5, "two sections of kind 3", |entry| entry.kind = 3);
    for (i, kind) in [
        (0, "kind 1"),
        (1, "kind 2"),
        (2, "kind 3"),
        (3, "kind 4"),
        (4, "kind 5"),
    ] {
        let at = TABLE + i * size_of::<TableEntry>();
        let (at, what) = refusal(|bytes| patch::<TableEntry>(bytes, at, |entry| entry.kind = 77));
        assert_eq!(at, TABLE as u64);
        assert!(what.contains(&format!("no section of {kind}")), "{what}");
    }
}

/// A table as long as tables get takes no longer than its length.
#[test]
fn a_long_table_takes_linear_time() {
    let whole = small();
    let header: Header = bytemuck::pod_read_unaligned(&whole[..TABLE]);
    let entries: Vec<TableEntry> = (0..u32::from(u16::MAX))
        .map(|kind| TableEntry {
            kind: kind + 100,
            record_size: 1,
            offset: TABLE as u64 + u64::from(u16::MAX) * 24 + 8,
            count: 0,
        })
        .collect();
    let mut body = bytemuck::cast_slice(&entries).to_vec();
    body.resize(body.len() + 64, 0);
    let header = Header {
        table_len: u16::MAX,
        ..header
    };
    let bytes = seal(&header, &body);
    let start = std::time::Instant::now();
    assert!(Index::from_bytes(&bytes).is_err());
    assert!(start.elapsed().as_secs() < 5);
}

#[test]
fn meta_must_be_sound() {
    let meta = |why: &str, change: fn(&mut Meta)| record::<Meta>(kind::META, 0, why, change);
    let texts: [fn(&mut Meta) -> &mut TextRef; 5] = [
        |meta| &mut meta.title,
        |meta| &mut meta.anchor,
        |meta| &mut meta.before_question,
        |meta| &mut meta.after_question,
        |meta| &mut meta.before_title,
    ];
    for text in texts {
        for wrong in [
            (u32::MAX, 0),
            (0, u32::MAX),
            (u32::MAX, u32::MAX),
            (0, 1 << 20),
        ] {
            record::<Meta>(kind::META, 0, "outside the strings", |meta| {
                (text(meta).offset, text(meta).len) = wrong;
            });
        }
    }
    meta("flags", |meta| meta.template_flags = 2);
    meta("terminator", |meta| meta.terminator = 257);
    meta("leaves", |meta| meta.leaves += 1);
    meta("leaves", |meta| meta.leaves = 0);
    meta("longest title", |meta| meta.longest_title += 1);
    meta("longest title", |meta| meta.longest_title = u32::MAX);
    for change in [
        (|meta| meta.sections += 1) as fn(&mut Meta),
        |meta| meta.sections = 0,
        |meta| meta.nodes += 1,
        |meta| meta.nodes = 1,
        |meta| meta.nodes = 0,
        |meta| meta.nodes = u32::MAX,
    ] {
        let at = place(&small(), kind::META).start;
        let (_, what) = refusal(|bytes| patch(bytes, at, change));
        assert!(what.contains("META"), "{what}");
    }
}

#[test]
fn texts_and_the_prompt_must_be_sound() {
    for kind in [kind::STRINGS, kind::TEXT] {
        let at = place(&small(), kind).start + 1;
        let (found, what) = refusal(|bytes| bytes[at] = 0xFF);
        assert!(what.contains("UTF-8"), "{what}");
        assert_eq!(found, at as u64);
    }
    record::<u32>(kind::PREFIX, 1, "outside the vocabulary", |token| {
        *token = 257
    });
    record::<u32>(kind::PREFIX, 0, "outside the vocabulary", |token| {
        *token = NONE
    });
    let empty = TABLE + 3 * size_of::<TableEntry>();
    let (at, what) = refusal(|bytes| patch::<TableEntry>(bytes, empty, |e| e.count = 0));
    assert!(what.contains("no tokens"), "{what}");
    assert_eq!(at, place(&small(), kind::PREFIX).start as u64);
}

#[test]
fn sections_must_be_sound() {
    let section = |i, why: &str, change: fn(&mut SectionRecord)| {
        record::<SectionRecord>(kind::SECTIONS, i, why, change);
    };
    for i in 0..4 {
        section(i, "parent does not stand before", |s| s.parent = 4);
        section(i, "parent does not stand before", |s| s.parent = NONE - 1);
        section(i, "depth", |s| s.depth = 9);
        section(i, "flags", |s| s.flags |= 2);
        section(i, "flags", |s| s.reserved = 1);
        section(i, "span", |s| s.span_start = s.span_end + 1);
        section(i, "title", |s| s.title.len = 0);
        section(i, "title", |s| s.title.len = u32::MAX);
        section(i, "title", |s| s.title.offset = u32::MAX);
        section(i, "number", |s| s.number.offset = u32::MAX);
        section(i, "text", |s| s.text_len = u64::MAX);
        section(i, "text", |s| s.text_offset = u64::MAX);
        section(i, "text", |s| {
            (s.text_offset, s.text_len) = (u64::MAX, u64::MAX)
        });
    }
    section(0, "parent does not stand before", |s| s.parent = 0);
    section(3, "parent is a leaf", |s| s.parent = 2);
    // The middle of a letter of two bytes.
    section(0, "text", |s| s.text_len = 2);
    section(2, "text", |s| s.text_len = 1);
}

#[test]
fn the_trie_must_be_sound() {
    let nodes = place(&small(), kind::TRIE).len() / size_of::<TrieNode>();
    let node =
        |i, why: &str, change: fn(&mut TrieNode)| record::<TrieNode>(kind::TRIE, i, why, change);
    node(0, "root", |n| n.first_child = 0);
    node(0, "root", |n| n.first_child = 2);
    node(0, "root", |n| n.token = 0);
    node(0, "terminator", |n| n.section = 1);
    node(1, "vocabulary", |n| n.token = 257);
    node(1, "terminator", |n| n.section = 1);
    node(nodes - 2, "terminator", |n| n.section = NONE);
    node(nodes - 2, "leaf", |n| n.section = 0);
    node(nodes - 2, "leaf", |n| n.section = 4);
    node(nodes - 2, "leaf", |n| n.section = NONE - 1);
    // A change of one node's first child is also a change of the end of the one before it.
    for i in 2..nodes {
        for first_child in [0, 1, i as u32, nodes as u32, NONE] {
            let at = place(&small(), kind::TRIE).start + i * size_of::<TrieNode>();
            let before: TrieNode = bytemuck::pod_read_unaligned(&small()[at..at + 12]);
            if before.first_child == first_child {
                continue;
            }
            let (found, what) =
                refusal(|bytes| patch::<TrieNode>(bytes, at, |n| n.first_child = first_child));
            let trie = place(&small(), kind::TRIE);
            assert!(trie.contains(&(found as usize)), "node {i}: {what}");
            assert!(found <= at as u64, "node {i}: {what}");
        }
    }
}

#[test]
fn a_section_has_one_title_and_titles_are_sorted() {
    let trie = place(&small(), kind::TRIE);
    let node = |bytes: &[u8], i: usize| -> TrieNode {
        bytemuck::pod_read_unaligned(&bytes[trie.start + i * 12..][..12])
    };
    let bytes = small();
    let ends: Vec<usize> = (0..trie.len() / 12)
        .filter(|&i| node(&bytes, i).section != NONE)
        .collect();
    let section = node(&bytes, ends[0]).section;
    record::<TrieNode>(kind::TRIE, ends[1], "two titles", |n| n.section = section);
    // Two children of one node change places, or are the same.
    let parent = (0..trie.len() / 12 - 1)
        .find(|&i| node(&bytes, i + 1).first_child - node(&bytes, i).first_child == 2)
        .expect("two titles begin alike");
    let child = node(&bytes, parent).first_child as usize;
    let (first, second) = (node(&bytes, child).token, node(&bytes, child + 1).token);
    for tokens in [(second, first), (first, first)] {
        let (at, what) = refusal(|bytes| {
            let at = trie.start + child * 12;
            patch::<TrieNode>(bytes, at, |n| n.token = tokens.0);
            patch::<TrieNode>(bytes, at + 12, |n| n.token = tokens.1);
        });
        assert!(what.contains("not sorted"), "{what}");
        assert_eq!(at, (trie.start + parent * 12) as u64);
    }
}

/// Nodes that are their own children: every other rule holds, and a walk would not end.
#[test]
fn a_trie_with_a_loop_is_refused() {
    let mut bytes = bytes_of_toc(&toc("T", &[(0, "A", "", None)]), false);
    let trie = place(&bytes, kind::TRIE);
    let nodes = trie.len() / size_of::<TrieNode>() - 1;
    let at = |node: usize| trie.start + node * size_of::<TrieNode>();
    let meta = place(&bytes, kind::META).start;
    patch::<Meta>(&mut bytes, meta, |meta| meta.longest_title = 2);
    let end: TrieNode = bytemuck::pod_read_unaligned(&bytes[at(nodes - 1)..at(nodes)]);
    patch::<TrieNode>(&mut bytes, at(1), |node| {
        *node = TrieNode {
            first_child: 2,
            ..end
        };
    });
    for i in 2..nodes {
        patch::<TrieNode>(&mut bytes, at(i), |node| {
            *node = TrieNode {
                token: 5,
                first_child: i as u32,
                section: NONE,
            };
        });
    }
    forge(&mut bytes);
    match Index::from_bytes(&bytes).expect_err("has a loop") {
        Error::IndexCorrupt { at: found, what } => {
            assert!(what.contains("do not follow"), "{what}");
            assert_eq!(found, at(2) as u64);
        }
        error => panic!("not damage: {error}"),
    }
}

/// A node behind the last child: nothing leads to it, but its section would count as answered for.
#[test]
fn a_trie_with_an_orphan_is_refused() {
    let entries = [(0, "A", "", None), (0, "B", "", None)];
    let mut bytes = bytes_of_toc(&toc("T", &entries), false);
    let trie = place(&bytes, kind::TRIE);
    let meta = place(&bytes, kind::META).start;
    let terminator = bytemuck::pod_read_unaligned::<Meta>(&bytes[meta..][..64]).terminator;
    let nodes = [
        (NONE, 1, NONE),
        (terminator, 2, 0),
        (terminator, 2, 1),
        (NONE, 2, NONE),
    ];
    for (i, (token, first_child, section)) in nodes.into_iter().enumerate() {
        patch::<TrieNode>(&mut bytes, trie.start + i * 12, |node| {
            *node = TrieNode {
                token,
                first_child,
                section,
            };
        });
    }
    patch::<TableEntry>(&mut bytes, TABLE + 4 * 24, |entry| entry.count = 4);
    patch::<Meta>(&mut bytes, meta, |meta| {
        meta.nodes = 3;
        meta.longest_title = 2;
    });
    forge(&mut bytes);
    let error = Index::from_bytes(&bytes).expect_err("has an orphan");
    assert!(error.to_string().contains("end with its last"), "{error}");
}

#[test]
fn a_leaf_without_a_title_in_the_trie_is_refused() {
    let (at, what) = refusal(|bytes| {
        let section = |i: usize| place(bytes, kind::SECTIONS).start + i * 64;
        let (first, second) = (section(1), section(2));
        let meta = place(bytes, kind::META).start;
        patch::<SectionRecord>(bytes, first, |section| section.flags = 1);
        patch::<SectionRecord>(bytes, second, |section| {
            section.parent = 0;
            section.depth = 1;
        });
        patch::<Meta>(bytes, meta, |meta| meta.leaves += 1);
    });
    assert!(what.contains("no title in the trie"), "{what}");
    assert_eq!(at, place(&small(), kind::TRIE).start as u64);
}

/// C reads a text up to its NUL: without one it would read on.
#[test]
fn a_text_without_its_nul_is_refused() {
    let record_of = |kind| place(&small(), kind).start as u64;
    let strings = place(&small(), kind::STRINGS);
    let texts = place(&small(), kind::TEXT);
    let nul = |place: &std::ops::Range<usize>, i: usize| {
        let bytes = small();
        let nuls = place.clone().filter(|&at| bytes[at] == 0);
        nuls.collect::<Vec<_>>()[i]
    };
    for (at, record) in [
        (nul(&strings, 0), record_of(kind::META)),
        (nul(&strings, 4), record_of(kind::META)),
        (nul(&strings, 5), record_of(kind::SECTIONS)),
        (nul(&strings, 6), record_of(kind::SECTIONS)),
        (nul(&strings, 8), record_of(kind::SECTIONS) + 64),
        (nul(&texts, 0), record_of(kind::SECTIONS)),
        (nul(&texts, 1), record_of(kind::SECTIONS) + 64),
    ] {
        let (found, what) = refusal(|bytes| bytes[at] = b'x');
        assert_eq!(found, record, "{what}");
    }
}

#[test]
fn questions_must_be_of_leaves_in_order_and_lie_in_their_texts() {
    let refused = |i: usize, change: fn(&mut AskedRecord)| {
        let mut bytes = small_asked();
        let at = place(&bytes, kind::ASKED).start + i * size_of::<AskedRecord>();
        patch(&mut bytes, at, change);
        forge(&mut bytes);
        match Index::from_bytes(&bytes).expect_err("is damaged") {
            Error::IndexCorrupt { at: found, what } => {
                assert_eq!(found, at as u64, "{what}");
                what
            }
            error => panic!("not damage: {error}"),
        }
    };
    for section in [0, 4, NONE] {
        let change: fn(&mut AskedRecord) = match section {
            0 => |r| r.section = 0,
            4 => |r| r.section = 4,
            _ => |r| r.section = NONE,
        };
        assert!(refused(0, change).contains("no leaf"));
    }
    assert!(refused(1, |r| r.section = 2).contains("order"));
    assert!(refused(0, |r| r.len += 1).contains("NUL"));
    assert!(refused(1, |r| r.offset = u64::MAX).contains("outside"));
    assert!(refused(0, |r| r.len = u32::MAX).contains("outside"));

    // The one without the other.
    for kind in [kind::ASKED, kind::ASKED_TEXT] {
        let mut bytes = small_asked();
        let entries = (0..8).map(|i| TABLE + i * size_of::<TableEntry>());
        let entry = entries.into_iter().find(|&at| {
            bytemuck::pod_read_unaligned::<TableEntry>(&bytes[at..][..size_of::<TableEntry>()]).kind
                == kind
        });
        patch(
            &mut bytes,
            entry.expect("an entry"),
            |e: &mut TableEntry| {
                e.kind = 99;
            },
        );
        forge(&mut bytes);
        let error = Index::from_bytes(&bytes).expect_err("is damaged");
        assert!(error.to_string().contains("without their texts"), "{error}");
    }
}
