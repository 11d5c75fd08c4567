//! What the warm file saves.

use crate::handbook::{self, QUESTIONS};
use crate::report::{Anything, Report, median};
use stair::{
    CancelToken, Index, KvType, Model, ModelOptions, RetrieveOptions, Retriever, RetrieverOptions,
};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;

/// - `warm_open_over_prefill` opens model, index and retriever and asks one question with the warm
///   file there, and compares the time with what a start without it spends before it comes to the
///   question: opening the model and decoding the table of contents. The question itself costs the
///   same in both, and most of what the warm start takes.
/// - `warm_restore_over_prefill` compares the reading of the file alone with the decoding. Medians of
///   five rounds, against one prefill. The files are in the page cache.
///
/// Beside them: the same for a cache of 8-bit blocks, and how many of sixteen questions have another
/// best section there.
pub fn measure(model: &Path, report: &mut Report) -> Anything {
    let index = Arc::new(handbook::index(&Model::open(
        model,
        &ModelOptions::default(),
    )?)?);
    let folder = tempfile::tempdir()?;
    let f16 = Kind::measure(model, &index, folder.path(), KvType::F16)?;
    let q8_0 = Kind::measure(model, &index, folder.path(), KvType::Q8_0)?;
    for (name, kind) in [("F16", &f16), ("Q8_0", &q8_0)] {
        report.note(format!(
            "warm file, {name}: {:.1} MB for {} tokens; prefill {:.0} ms, restored in {:.1} ms; the \
             model opens in {:.0} ms, from there to the first answer {:.0} ms",
            kind.bytes as f64 / 1e6,
            index.prefix().len(),
            ms(kind.prefill),
            kind.restore,
            kind.open,
            kind.to_answer - kind.open,
        ));
    }
    let changed = f16.best.iter().zip(&q8_0.best).filter(|(a, b)| a != b);
    report.note(format!(
        "warm file: {} of {} questions have another best section with Q8_0",
        changed.count(),
        QUESTIONS.len()
    ));
    let cold = ms(f16.prefill) + f16.open;
    report.at_most("warm_open_over_prefill", f16.to_answer / cold, 0.02);
    let restore = f16.restore / ms(f16.prefill);
    report.at_most("warm_restore_over_prefill", restore, 0.02);
    Ok(())
}

/// One number type, in milliseconds.
struct Kind {
    bytes: u64,
    prefill: Duration,
    open: f64,
    restore: f64,
    /// From opening the model to its first answer.
    to_answer: f64,
    /// The best section of each question.
    best: Vec<u32>,
}

impl Kind {
    fn measure(path: &Path, index: &Arc<Index>, folder: &Path, kv_type: KvType) -> Anything<Self> {
        let mut options = RetrieverOptions::default();
        options.kv_type = kv_type;
        options.cache_dir = Some(folder.to_path_buf());
        let open = || Model::open(path, &ModelOptions::default()).map(Arc::new);
        let new = |model| Retriever::new(model, Arc::clone(index), &options);

        let retriever = new(open()?)?;
        let prefill = retriever.warm(&CancelToken::new())?.prefill;
        let file = retriever.warm_file().ok_or("no warm file")?.to_path_buf();
        // The end of it is the end of the writing.
        drop(retriever);

        let mut times = [const { Vec::new() }; 3];
        for _ in 0..ROUNDS {
            let started = Instant::now();
            let model = open()?;
            let opened = started.elapsed();
            let stats = new(model)?
                .retrieve(QUESTIONS[0], &RetrieveOptions::default())?
                .stats;
            let answered = started.elapsed();
            if stats.restored_tokens == 0 {
                return Err("the warm file was not used".into());
            }
            for (times, time) in times.iter_mut().zip([opened, stats.prefill, answered]) {
                times.push(ms(time));
            }
        }
        let [open_ms, restore, to_answer] = times.each_mut().map(|times| median(times));
        let retriever = new(open()?)?;
        let best = QUESTIONS.iter().map(|question| {
            let hits = retriever.retrieve(question, &RetrieveOptions::default())?;
            stair::Result::Ok(hits.hits[0].section)
        });
        Ok(Self {
            bytes: std::fs::metadata(file)?.len(),
            prefill,
            open: open_ms,
            restore,
            to_answer,
            best: best.collect::<stair::Result<_>>()?,
        })
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
