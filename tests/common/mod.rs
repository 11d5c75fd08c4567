//! What the tests against a real model share: the model, indexes of real documents, and a lock for
//! what should have the processor to itself.

// Every test binary uses a part of it.
#![allow(dead_code)]

pub mod gguf;

use stair::engine::quantize;
use stair::index::{BuildOptions, build};
use stair::toc::{self, ReadOptions};
use stair::tokens::Tokenizer;
use stair::{Hits, Index, Model, ModelOptions, RetrieveOptions, files};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// Questions that the handbook answers.
pub const QUESTIONS: [&str; 8] = [
    "How long is my notice period?",
    "How many remote days may I work in a month?",
    "Who approves a trip by train?",
    "What does the late shift earn on top of basic pay?",
    "May I swap shifts with a colleague?",
    "What must I do when I lose my badge?",
    "When are salaries paid?",
    "Where do I report an accident?",
];

/// The repository's root.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The model's file. A test without it fails: it would say nothing.
pub fn model_path() -> PathBuf {
    let path = match std::env::var_os("STAIR_TEST_MODEL") {
        Some(path) => PathBuf::from(path),
        None => root().join("models/smollm2-135m-instruct-q8_0.gguf"),
    };
    assert!(
        path.is_file(),
        "{} is missing: run `make model`, or name another model in STAIR_TEST_MODEL",
        path.display()
    );
    path
}

/// The model, loaded once for the test binary.
pub fn model() -> Arc<Model> {
    static MODEL: OnceLock<Arc<Model>> = OnceLock::new();
    let open = || Model::open(model_path(), &ModelOptions::default()).expect("the model opens");
    Arc::clone(MODEL.get_or_init(|| Arc::new(open())))
}

/// The model with 32-bit weights, in which scores do not depend on the order of additions. Made
/// once, and kept for the next run.
pub fn full_precision() -> Arc<Model> {
    static MODEL: OnceLock<Arc<Model>> = OnceLock::new();
    let open = || {
        let name = model_path().with_extension("f32.gguf");
        let path = scratch().join(name.file_name().expect("a name"));
        if !path.is_file() {
            quantize(&model_path(), &path, "f32", 2).expect("converts");
        }
        Model::open(path, &ModelOptions::default()).expect("the model opens")
    };
    Arc::clone(MODEL.get_or_init(|| Arc::new(open())))
}

/// Its vocabulary alone, which loads at once.
pub fn vocabulary() -> &'static Model {
    static VOCABULARY: OnceLock<Model> = OnceLock::new();
    VOCABULARY.get_or_init(|| {
        Model::open(model_path(), &vocabulary_only()).expect("the vocabulary opens")
    })
}

/// Options for a vocabulary without weights.
pub fn vocabulary_only() -> ModelOptions {
    let mut options = ModelOptions::default();
    options.vocabulary_only = true;
    options
}

/// A document of the tests: its bytes and an index of it in a file.
pub struct Document {
    pub source: Vec<u8>,
    pub index: Arc<Index>,
    pub path: PathBuf,
}

/// The demonstration handbook.
pub fn handbook() -> &'static Document {
    static HANDBOOK: OnceLock<Document> = OnceLock::new();
    HANDBOOK.get_or_init(|| document(&handbook_path()))
}

pub fn handbook_path() -> PathBuf {
    root().join("examples/handbook/handbook.md")
}

/// A textbook, if it is on this machine.
pub fn microbiology() -> Option<&'static Document> {
    static BOOK: OnceLock<Option<Document>> = OnceLock::new();
    let book = BOOK.get_or_init(|| {
        let path = root().join("../shared/books/microbiology/book.md");
        path.is_file().then(|| document(&path))
    });
    if book.is_none() {
        eprintln!("left out: ../shared/books/microbiology/book.md is not on this machine");
    }
    book.as_ref()
}

fn document(path: &Path) -> Document {
    let source = std::fs::read(path).expect("a document of the tests");
    let bytes = index_bytes(&source, path, vocabulary());
    let stem = path.file_stem().expect("a name").to_string_lossy();
    // The same place in every run, so that nothing is left behind; one for every test binary.
    let name = format!("{stem}-{}.stair", env!("CARGO_CRATE_NAME"));
    let index_path = scratch().join(name);
    files::write_atomically(&index_path, &bytes).expect("the index is written");
    Document {
        index: Arc::new(Index::open(&index_path).expect("the index opens")),
        path: index_path,
        source,
    }
}

/// The index of a document with the defaults.
pub fn index_bytes(source: &[u8], path: &Path, tokenizer: &dyn Tokenizer) -> Vec<u8> {
    let toc = toc::read(source, path, &ReadOptions::default()).expect("the document reads");
    let (bytes, _) = build(&toc, tokenizer, &BuildOptions::default(), &|_| ()).expect("builds");
    bytes
}

/// A folder for the tests' files, below `target`.
pub fn scratch() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// Held by tests that decode: llama.cpp's threads wait for each other by spinning, and two contexts on
/// the same processors take many times as long as one after the other.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    // A test that failed under it left nothing half-done.
    ALONE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Options for `k` sections.
pub fn top(k: usize) -> RetrieveOptions {
    let mut options = RetrieveOptions::default();
    options.k = Some(k);
    options
}

/// The sections of an answer and their scores.
pub fn ranking(hits: &Hits) -> Vec<(u32, f64)> {
    hits.hits
        .iter()
        .map(|hit| (hit.section, hit.score))
        .collect()
}

/// Compares two rankings of one question whose scores may differ by `epsilon`: sections that stand
/// closer than that may change places. Returns the largest difference of a score.
pub fn assert_close(a: &[(u32, f64)], b: &[(u32, f64)], epsilon: f64, what: &str) -> f64 {
    assert_eq!(a.len(), b.len(), "{what}: {a:?} and {b:?}");
    let mut largest = 0.0f64;
    for (i, (&(section, score), &(other, other_score))) in a.iter().zip(b).enumerate() {
        // The i-th best score is the same to epsilon whichever section has it.
        let difference = (score - other_score).abs();
        assert!(difference <= epsilon, "{what}, rank {i}: {a:?} and {b:?}");
        largest = largest.max(difference);
        if section == other {
            continue;
        }
        // Another section in its place: only as one of a tie, which may reach past the last rank.
        let in_b = b
            .iter()
            .find(|&&(id, _)| id == section)
            .map(|&(_, score)| score);
        let tie = in_b.unwrap_or(b[b.len() - 1].1);
        assert!(
            (score - tie).abs() <= epsilon,
            "{what}, rank {i}: {a:?} and {b:?}"
        );
    }
    largest
}
