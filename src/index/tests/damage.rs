//! Files that were damaged, cut, mangled or forged, or that change under the map.

use super::super::format::{BLOCK, Header, NONE, TableEntry, kind};
use super::super::{Index, NodeId};
use super::{HEADER, answers, bytes_of_toc, forge, header_of, patch, place, seal, small, toc};
use crate::error::{Code, Error, Result};
use bytemuck::bytes_of;
use proptest::prelude::*;

fn corrupt_at(result: Result<Index>) -> (u64, String) {
    match result.expect_err("is damaged") {
        Error::IndexCorrupt { at, what } => (at, what),
        error => panic!("not damage: {error}"),
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

/// Every bit and every length; under Miri, which is slow, a few of them.
const STRIDE: usize = if cfg!(miri) { 1009 } else { 1 };

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 128 }))]

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
    #[cfg_attr(miri, ignore = "Miri maps no files")]
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

#[test]
fn a_file_cut_anywhere_is_refused() {
    let whole = small();
    let texts_end = place(&whole, kind::TEXT).end;
    for len in (0..whole.len()).step_by(STRIDE) {
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
    for bit in (0..bytes.len() * 8).step_by(STRIDE) {
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
    for bit in (0..whole.len() * 8).step_by(STRIDE) {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        forge(&mut bytes);
        if let Ok(index) = Index::from_bytes(&bytes) {
            answers(&index);
            opened += 1;
        }
    }
    // Letters of a title, texts, spans, pages: most of a file may say something else.
    assert!(opened > 500 / STRIDE, "forging has no effect");
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
