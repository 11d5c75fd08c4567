//! Questions after the first, and questions at the same time.

use crate::clock;
use crate::handbook::{self, QUESTIONS};
use crate::report::{Anything, Report, median};
use stair::{Model, ModelOptions, RetrieveOptions, Retriever, RetrieverOptions, Stats};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

const CALLERS: usize = 8;
const MANY: usize = 16;
const ROUNDS: usize = 3;

/// - `second_over_first_query` asks a new retriever the same question twice, and compares the
///   tokens that were decoded. The goal is that the second decodes its own and the search's only.
/// - `qps_8_over_1` asks eight questions one after another, then the same eight at the same time
///   of the same retriever, three times in turn, and compares the medians of the questions
///   answered in a second. Everything is as a host finds it by default. On a busy machine the
///   ratio flatters: the model's threads then wait for each other at every step of a decode, and
///   eight questions share one wait. The processor time beside it tells.
/// - `qps_16_over_1` and `p95_16_over_single` are the same with sixteen questions and callers: the
///   questions answered in a second, and the 95th percentile of the wait over the median of a
///   question alone.
pub fn measure(model: &Path, report: &mut Report) -> Anything {
    let model = Arc::new(Model::open(model, &ModelOptions::default())?);
    let index = Arc::new(handbook::index(&model)?);
    let retriever = Retriever::new(model, index, &RetrieverOptions::default())?;
    let ask = |question| retriever.retrieve(question, &RetrieveOptions::default());

    let first = ask(QUESTIONS[0])?.stats;
    let second = ask(QUESTIONS[0])?.stats;
    report.note(format!(
        "second query: {} tokens after {}, {:.0} ms after {:.0} ms",
        tokens(&second),
        tokens(&first),
        ms(second.total),
        ms(first.total),
    ));
    report.add(
        "second_over_first_query",
        tokens(&second) / tokens(&first),
        "no token of the contents".to_owned(),
        second.prefix_tokens == 0 && first.prefix_tokens > 0,
    );

    let (mut alone, mut together, mut many) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let questions = &QUESTIONS[round * CALLERS % QUESTIONS.len()..][..CALLERS];
        alone.push(run(&retriever, questions, 1)?);
        together.push(run(&retriever, questions, CALLERS)?);
        many.push(run(&retriever, &QUESTIONS, MANY)?);
    }
    let of = |runs: &[Run], what: fn(&Run) -> f64| {
        median(&mut runs.iter().map(what).collect::<Vec<_>>())
    };
    let per_second = |runs: &[Run]| of(runs, |run| run.asked() / run.wall.as_secs_f64());
    let processor = |runs: &[Run]| of(runs, |run| run.processor.as_secs_f64() / run.asked());
    let latency = |runs: &[Run]| of(runs, |run| median(&mut run.waits.clone()));
    report.note(format!(
        "callers: {:.2} questions a second with 1, {:.2} with {CALLERS}; {:.2} and {:.2} s of \
         processor time a question; half of the answers within {:.1} and {:.1} s",
        per_second(&alone),
        per_second(&together),
        processor(&alone),
        processor(&together),
        latency(&alone),
        latency(&together),
    ));
    report.at_least(
        "qps_8_over_1",
        per_second(&together) / per_second(&alone),
        2.0,
    );
    let waits = |runs: &[Run]| {
        runs.iter()
            .flat_map(|run| run.waits.clone())
            .collect::<Vec<_>>()
    };
    let single = median(&mut waits(&alone));
    let mut slow = waits(&many);
    slow.sort_by(f64::total_cmp);
    let slow = slow[(slow.len() * 95).div_ceil(100) - 1];
    report.note(format!(
        "callers: {:.2} questions a second with {MANY}; 95 % of the answers within {slow:.1} s",
        per_second(&many),
    ));
    report.at_least("qps_16_over_1", per_second(&many) / per_second(&alone), 2.5);
    report.at_most("p95_16_over_single", slow / single, 8.0);
    Ok(())
}

struct Run {
    wall: Duration,
    processor: Duration,
    /// Seconds that the callers waited for each answer.
    waits: Vec<f64>,
}

impl Run {
    fn asked(&self) -> f64 {
        self.waits.len() as f64
    }
}

/// Asks `questions` from `callers` threads, each taking the next one that nobody has taken.
fn run(retriever: &Retriever, questions: &[&str], callers: usize) -> Anything<Run> {
    let next = AtomicUsize::new(0);
    let caller = || {
        let mut waits = Vec::new();
        while let Some(question) = questions.get(next.fetch_add(1, Relaxed)) {
            let hits = retriever.retrieve(question, &RetrieveOptions::default())?;
            waits.push(hits.stats.total.as_secs_f64());
        }
        stair::Result::Ok(waits)
    };
    let (started, processor) = (Instant::now(), clock::process());
    let waits = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..callers).map(|_| scope.spawn(caller)).collect();
        let joined = threads
            .into_iter()
            .map(|thread| thread.join().expect("a caller panicked"));
        joined.collect::<stair::Result<Vec<_>>>()
    })?;
    Ok(Run {
        wall: started.elapsed(),
        processor: clock::process() - processor,
        waits: waits.concat(),
    })
}

fn tokens(stats: &Stats) -> f64 {
    f64::from(stats.prefix_tokens + stats.question_tokens + stats.search_tokens)
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
