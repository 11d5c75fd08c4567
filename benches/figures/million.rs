//! A document of a million leaves: built with a real vocabulary, opened, and checked.

use crate::heap;
use crate::report::{Anything, Report};
use bytemuck::pod_read_unaligned;
use stair::index::format::{Header, TableEntry, kind};
use stair::index::{BuildOptions, build};
use stair::toc::{self, ReadOptions};
use stair::{Index, Model, ModelOptions, files};
use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

const CHAPTERS: u32 = 1000;
const SECTIONS: u32 = 1000;
const OPENINGS: usize = 5;

/// - `build_1m_leaves_s` is what `stair build` does with a table of contents: checking it,
///   tokenising the prompt, which names every section, and every title, the trie, the checksums,
///   and writing the file and flushing it to the disk. Reading the document, which depends on its
///   format and its text, is printed beside it. The sections have no text.
/// - `open_1m_leaves_s` is `Index::open`, which maps the file and checks every byte and every
///   record. The best of five counts, with the file in the page cache: a cold disk is the disk's
///   figure.
/// - `open_1m_leaves_heap_mb` is by how much the heap ever grew while it was opened, in units of
///   10^6 bytes; the most of five.
/// - `trie_bytes_per_node` is the trie's part of the file over the number of its nodes.
pub fn measure(model: &Path, report: &mut Report) -> Anything {
    let mut options = ModelOptions::default();
    options.vocabulary_only = true;
    let vocabulary = Model::open(model, &options)?;
    let source = document();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let path = folder.path().join("million.stair");

    let started = Instant::now();
    let toc = toc::read(
        source.as_bytes(),
        Path::new("million.md"),
        &ReadOptions::default(),
    )?;
    let read = started.elapsed();
    let started = Instant::now();
    let (bytes, built) = build(&toc, &vocabulary, &BuildOptions::default(), &|_| ())?;
    let encoded = started.elapsed().as_secs_f64();
    files::write_atomically(&path, &bytes)?;
    let written = started.elapsed().as_secs_f64();
    assert_eq!(built.leaves, CHAPTERS * SECTIONS);
    report.note(format!(
        "million: read in {:.1} s, built in {encoded:.1} s, written in {:.1} s; {} nodes, {:.0} MB",
        read.as_secs_f64(),
        written - encoded,
        built.nodes,
        built.bytes as f64 / 1e6,
    ));
    report.at_most("build_1m_leaves_s", written, 30.0);
    let in_trie = trie_len(&bytes).ok_or("the file has no trie")? as f64;
    let per_node = in_trie / f64::from(built.nodes);
    report.at_most("trie_bytes_per_node", per_node, 16.0);
    drop((toc, bytes));

    let (mut fastest, mut growth) = (f64::INFINITY, 0);
    for _ in 0..OPENINGS {
        let started = Instant::now();
        let (index, grown) = heap::growth(|| Index::open(&path));
        fastest = fastest.min(started.elapsed().as_secs_f64());
        growth = growth.max(grown);
        assert_eq!(index?.leaves(), built.leaves);
    }
    report.at_most("open_1m_leaves_s", fastest, 0.5);
    report.at_most("open_1m_leaves_heap_mb", growth as f64 / 1e6, 1.0);
    Ok(())
}

/// Bytes of the trie in the file, the end marker included.
fn trie_len(file: &[u8]) -> Option<u64> {
    let (header, rest) = file.split_at_checked(size_of::<Header>())?;
    let header: Header = pod_read_unaligned(header);
    rest.chunks_exact(size_of::<TableEntry>())
        .take(usize::from(header.table_len))
        .map(pod_read_unaligned::<TableEntry>)
        .find(|entry| entry.kind == kind::TRIE)
        .map(|entry| entry.count * u64::from(entry.record_size))
}

/// A Markdown document: chapters, sections, titles of two to five words.
fn document() -> String {
    const WORDS: [&str; 32] = [
        "annual",
        "leave",
        "travel",
        "expenses",
        "approval",
        "of",
        "remote",
        "work",
        "safety",
        "training",
        "supplier",
        "contracts",
        "for",
        "quality",
        "control",
        "returns",
        "and",
        "warranty",
        "data",
        "protection",
        "machine",
        "maintenance",
        "records",
        "in",
        "the",
        "warehouse",
        "customer",
        "complaints",
        "overtime",
        "pay",
        "insurance",
        "exceptions",
    ];
    let mut text = "# A million sections\n\n".to_owned();
    let mut random = 1u32;
    let mut next = |below: u32| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 16) % below
    };
    let mut title = |text: &mut String| {
        for _ in 0..2 + next(4) {
            text.push(' ');
            text.push_str(WORDS[next(WORDS.len() as u32) as usize]);
        }
        text.push_str("\n\n");
    };
    for chapter in 1..=CHAPTERS {
        // Writing to a String cannot fail.
        let _ = write!(text, "## {chapter}");
        title(&mut text);
        for section in 1..=SECTIONS {
            let _ = write!(text, "### {chapter}.{section}");
            title(&mut text);
        }
    }
    text
}
