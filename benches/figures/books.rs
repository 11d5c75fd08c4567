//! Many books on one model, with memory for a few of them.

use crate::handbook::QUESTIONS;
use crate::memory::anonymous;
use crate::report::{Anything, Report};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use stair::index::{BuildOptions, build};
use stair::toc::{self, ReadOptions, read_markdown};
use stair::{Hits, Index, Model, ModelOptions, RetrieveOptions, Retriever, RetrieverOptions};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

const BOOKS: usize = 100;

/// Contexts of the largest book that the budget has room for.
const CONTEXTS: u64 = 4;

const CALLERS: usize = 4;

/// Questions, unless `STAIR_BOOKS` says otherwise.
const ASKED: usize = 500;

/// The book of rank r is asked in proportion to r to the power of minus this.
const ZIPF: f64 = 1.1;

/// Different questions of each book.
const OF_EACH: usize = 2;

/// A hundred retrievers with one model and a cache folder that is empty at first, asked by four
/// callers, some books far more often than others. Every answer is compared, to the bit, with that of
/// a retriever that is alone and has memory enough.
///
/// - `books_memory_over_budget` is by how much the process's own memory (RssAnon) grew at most, from
///   before the first retriever on, over `context_memory`. Threads and the bytes of warm files on
///   their way are in it.
/// - `books_warm_share` is the share, of the answers of books that had been decoded and had given
///   way, that came from the warm file and not from a second prefill.
/// - `books_wrong_answers` is how many differed.
pub fn measure(model: &Path, report: &mut Report) -> Anything {
    let asked = match std::env::var("STAIR_BOOKS") {
        Ok(number) => number.parse()?,
        Err(_) => ASKED,
    };
    let free = Arc::new(Model::open(model, &ModelOptions::default())?);
    let books = books(&free)?;
    let mut options = RetrieverOptions::default();
    options.max_question_tokens = 64;
    options.deterministic = true;

    let (mut alone, mut largest) = (Vec::new(), 0);
    for (number, book) in books.iter().enumerate() {
        let retriever = Retriever::new(Arc::clone(&free), Arc::clone(book), &options)?;
        largest = largest.max(free.context_memory_used());
        let answers = (0..OF_EACH).map(|which| Ok(ranking(&ask(&retriever, number, which)?)));
        alone.push(answers.collect::<stair::Result<Vec<_>>>()?);
    }
    drop(free);

    let folder = tempfile::tempdir()?;
    options.cache_dir = Some(folder.path().to_path_buf());
    let budget = CONTEXTS * largest;
    let mut tight = ModelOptions::default();
    tight.context_memory = Some(budget);
    let tight = Arc::new(Model::open(model, &tight)?);
    let before = anonymous()?;
    let peak = Peak::default();
    let (next, wrong, over) = (
        AtomicUsize::new(0),
        AtomicUsize::new(0),
        AtomicUsize::new(0),
    );
    let calls = calls(asked);
    let answers = std::thread::scope(|scope| -> Anything<Vec<Answer>> {
        let _end = peak.watch(scope);
        let new =
            |book: &Arc<Index>| Retriever::new(Arc::clone(&tight), Arc::clone(book), &options);
        let retrievers = books.iter().map(new).collect::<stair::Result<Vec<_>>>()?;
        let caller = || -> stair::Result<Vec<Answer>> {
            let mut answers = Vec::new();
            while let Some(&(book, which)) = calls.get(next.fetch_add(1, Relaxed)) {
                let hits = ask(&retrievers[book], book, which)?;
                wrong.fetch_add(usize::from(ranking(&hits) != alone[book][which]), Relaxed);
                let used = tight.context_memory_used();
                over.fetch_add(usize::from(used > budget), Relaxed);
                answers.push(Answer::new(book, &hits));
            }
            Ok(answers)
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..CALLERS).map(|_| scope.spawn(caller)).collect();
            let ended = threads
                .into_iter()
                .map(|thread| thread.join().expect("a caller panicked"));
            Ok(ended.collect::<stair::Result<Vec<_>>>()?.concat())
        })
    })?;

    if over.into_inner() > 0 {
        return Err("more memory was given out than the budget has".into());
    }
    let growth = peak.0.into_inner() as f64 - before;
    report.note(format!(
        "books: {} questions about {BOOKS} books from {CALLERS} callers; {:.0} MB allowed, room for \
         {CONTEXTS} of {:.0} MB; memory grew by {:.0} MB at most",
        answers.len(),
        budget as f64 / 1e6,
        largest as f64 / 1e6,
        growth / 1e6,
    ));
    table(&answers, report);
    let of = |source| answers.iter().filter(move |answer| answer.source == source);
    let back = of(Source::WarmFile).count();
    let again = decoded_again(of(Source::Prefill).collect());
    report.at_most("books_memory_over_budget", growth / budget as f64, 1.0);
    let share = back as f64 / (back + again) as f64;
    report.at_least("books_warm_share", share, 1.0);
    report.at_most("books_wrong_answers", wrong.into_inner() as f64, 0.0);
    Ok(())
}

/// Where the contents came from that an answer needed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Source {
    Memory,
    WarmFile,
    Prefill,
}

#[derive(Clone)]
struct Answer {
    book: usize,
    source: Source,
    ended: Instant,
    took: Duration,
}

impl Answer {
    fn new(book: usize, hits: &Hits) -> Self {
        let stats = &hits.stats;
        let source = match (stats.prefix_tokens, stats.restored_tokens) {
            (0, 0) => Source::Memory,
            (0, _) => Source::WarmFile,
            _ => Source::Prefill,
        };
        Self {
            book,
            source,
            ended: Instant::now(),
            took: stats.total,
        }
    }

    fn began(&self) -> Instant {
        self.ended - self.took
    }
}

/// How many prefills were not their book's first. Answers of one book that were waited for at the same
/// time waited for the same prefill.
fn decoded_again(mut answers: Vec<&Answer>) -> usize {
    answers.sort_by_key(|answer| (answer.book, answer.began()));
    let again = |pair: &&[&Answer]| pair[0].book == pair[1].book && pair[1].began() > pair[0].ended;
    answers.windows(2).filter(again).count()
}

fn table(answers: &[Answer], report: &Report) {
    report.note(format!(
        "{:<12} {:>8} {:>8} {:>9} {:>9}",
        "from", "answers", "share", "p50 ms", "p95 ms"
    ));
    let sources = [
        ("memory", Source::Memory),
        ("warm file", Source::WarmFile),
        ("prefill", Source::Prefill),
    ];
    for (name, source) in sources {
        let of = answers.iter().filter(|answer| answer.source == source);
        let mut times: Vec<f64> = of.map(|answer| answer.took.as_secs_f64() * 1e3).collect();
        times.sort_by(f64::total_cmp);
        let at = |percent: usize| {
            let rank = (times.len() * percent).div_ceil(100);
            times.get(rank.max(1) - 1).copied().unwrap_or(f64::NAN)
        };
        report.note(format!(
            "{name:<12} {:>8} {:>7.1}% {:>9.0} {:>9.0}",
            times.len(),
            times.len() as f64 / answers.len() as f64 * 100.0,
            at(50),
            at(95),
        ));
    }
}

/// The largest RssAnon that was seen.
#[derive(Default)]
struct Peak(AtomicUsize);

/// Ends the watching when it is dropped.
struct Watch(Arc<AtomicBool>);

impl Peak {
    fn watch<'scope>(&'scope self, scope: &'scope std::thread::Scope<'scope, '_>) -> Watch {
        let end = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&end);
        scope.spawn(move || {
            while !seen.load(Relaxed) {
                if let Ok(bytes) = anonymous() {
                    self.0.fetch_max(bytes as usize, Relaxed);
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        Watch(end)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Which book is asked which of its questions, by Zipf's law and the same in every run.
fn calls(count: usize) -> Vec<(usize, usize)> {
    let mut chance = ChaCha8Rng::seed_from_u64(1);
    let mut sum = 0.0;
    let until: Vec<f64> = (1..=BOOKS)
        .map(|rank| {
            sum += (rank as f64).powf(-ZIPF);
            sum
        })
        .collect();
    (0..count)
        .map(|_| {
            let drawn = chance.random_range(0.0..sum);
            let rank = until.partition_point(|&until| until <= drawn);
            // Ranks are not in the order in which the books were opened.
            (rank * 37 % BOOKS, chance.random_range(0..OF_EACH))
        })
        .collect()
}

fn ask(retriever: &Retriever, book: usize, which: usize) -> stair::Result<Hits> {
    let question = QUESTIONS[(book + 5 * which) % QUESTIONS.len()];
    retriever.retrieve(question, &RetrieveOptions::default())
}

fn ranking(hits: &Hits) -> Vec<(u32, f64)> {
    let of = |hit: &stair::Hit| (hit.section, hit.score);
    hits.hits.iter().map(of).collect()
}

/// Two or three chapters of the handbook each, and a title of its own.
fn books(model: &Model) -> Anything<Vec<Arc<Index>>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/handbook/handbook.md");
    let source = std::fs::read(&path)?;
    let whole = toc::read(&source, &path, &ReadOptions::default())?;
    let top = whole.sections.iter().filter(|section| section.depth == 0);
    let chapters: Vec<&[u8]> = top
        .map(|chapter| {
            let Range { start, end } = chapter.span;
            &source[start as usize..end as usize]
        })
        .collect();
    let count = chapters.len();
    let mut choices = Vec::new();
    for first in 0..count {
        for second in first + 1..count {
            choices.push(vec![first, second]);
            choices.extend((second + 1..count).map(|third| vec![first, second, third]));
        }
    }
    // From all over the list, so that no chapter is in all of them.
    let chosen = (0..BOOKS).map(|number| &choices[number * choices.len() / BOOKS]);
    let book = |(number, chosen): (usize, &Vec<usize>)| -> Anything<Arc<Index>> {
        let mut text = format!("# Handbook of site {number}\n\n").into_bytes();
        for &chapter in chosen {
            text.extend_from_slice(chapters[chapter]);
        }
        let toc = read_markdown(&text, "Handbook", &ReadOptions::default())?;
        let (bytes, _) = build(&toc, model, &BuildOptions::default(), &|_| ())?;
        Ok(Arc::new(Index::from_bytes(&bytes)?))
    };
    chosen.enumerate().map(book).collect()
}
