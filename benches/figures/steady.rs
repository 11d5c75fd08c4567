//! What does not grow: allocations a question, and memory over many.

use crate::handbook::{self, QUESTIONS};
use crate::heap;
use crate::report::{Anything, Report};
use stair::{CancelToken, Model, ModelOptions, RetrieveOptions, Retriever, RetrieverOptions};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const CALLERS: usize = 8;

/// Questions of the soak, unless `STAIR_SOAK` says otherwise. It takes a quarter of a second for each.
const SOAK: usize = 1_500;

/// - `allocations_per_query` is how often the Rust side asks for memory for a question with three
///   hits, once everything has been asked before. The hits own their texts, so it is not 0.
/// - `soak_rss_growth` asks many questions from eight callers, each answer compared with the first
///   that its question got, and says by what fraction the process's own memory (RssAnon) grew in the
///   second half.
pub fn measure(model: &Path, report: &mut Report) -> Anything {
    let model = Arc::new(Model::open(model, &ModelOptions::default())?);
    let index = Arc::new(handbook::index(&model)?);
    let retriever = Retriever::new(model, index, &RetrieverOptions::default())?;
    retriever.warm(&CancelToken::new())?;
    let best = |question: &str, k| {
        let mut options = RetrieveOptions::default();
        options.k = Some(k);
        let hits = retriever.retrieve(question, &options)?;
        stair::Result::Ok(hits.hits[0].section)
    };
    let mut first = Vec::new();
    for question in QUESTIONS {
        first.push(best(question, 3)?);
    }

    let before = heap::calls();
    for question in QUESTIONS {
        best(question, 3)?;
    }
    let calls = (heap::calls() - before) as f64 / QUESTIONS.len() as f64;
    report.at_most("allocations_per_query", calls, 0.0);

    let all = match std::env::var("STAIR_SOAK") {
        Ok(number) => number.parse()?,
        Err(_) => SOAK,
    };
    let (next, wrong) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let run = |until: usize| -> stair::Result<()> {
        std::thread::scope(|scope| {
            let caller = || {
                loop {
                    let number = next.fetch_add(1, Relaxed);
                    if number >= until {
                        return Ok(());
                    }
                    let place = number % QUESTIONS.len();
                    if best(QUESTIONS[place], 1)? != first[place] {
                        wrong.fetch_add(1, Relaxed);
                    }
                }
            };
            let threads: Vec<_> = (0..CALLERS).map(|_| scope.spawn(caller)).collect();
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().expect("a caller panicked"))
        })
    };
    run(all / 2)?;
    let half = anonymous()?;
    next.store(all / 2, Relaxed);
    run(all)?;
    let end = anonymous()?;
    report.note(format!(
        "soak: {all} questions from {CALLERS} callers, none lost; {} had another best section than \
         when asked alone (scores move with what shares a decode); {:.1} MB after half, {:.1} MB after \
         all",
        wrong.load(Relaxed),
        half / 1e6,
        end / 1e6,
    ));
    report.at_most("soak_rss_growth", end / half - 1.0, 0.01);
    Ok(())
}

/// Bytes of the process's memory that no file backs.
fn anonymous() -> Anything<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    Ok(kilobytes.ok_or("no RssAnon")?.trim().parse::<f64>()? * 1024.0)
}
