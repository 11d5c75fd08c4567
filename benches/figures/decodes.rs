//! What a decode costs: the profile behind the figures of speed that are missed.

use crate::report::{Anything, Report};
use crate::{clock, handbook};
use stair::engine::{Context, ContextOptions};
use stair::search::model::{Batch, Capacity, LanguageModel, Seq};
use stair::{KvType, Model, ModelOptions};
use std::path::Path;
use std::time::{Duration, Instant};

/// Tokens in a decode.
const TOKENS: [usize; 9] = [1, 2, 3, 4, 8, 12, 16, 24, 32];
const ROUNDS: usize = 7;

/// Times of decodes of several sizes behind the handbook's table of contents, each the best of some
/// rounds, with all threads and with one; and the straight line that fits them from two tokens on.
///
/// A search saves only the constant part: where what a token adds is a large share of a decode,
/// questions in one batch share little, and a token more is not free.
pub fn measure(model: &Path, report: &mut Report) -> Anything {
    let model = Model::open(model, &ModelOptions::default())?;
    let index = handbook::index(&model)?;
    let cores = u32::try_from(std::thread::available_parallelism()?.get())?;
    for threads in [1, cores] {
        let options = ContextOptions {
            capacity: Capacity {
                sequences: 2,
                batch: 512,
                rows: 32,
                context: index.prefix().len() + 512,
            },
            threads,
            kv_type: KvType::F16,
        };
        let mut context = Context::new(&model, &options)?;
        handbook::prefill(&mut context, index.prefix())?;
        let mut best = [Duration::MAX; TOKENS.len()];
        for _ in 0..ROUNDS {
            for (tokens, best) in TOKENS.into_iter().zip(&mut best) {
                *best = one(&mut context, &index.prefix()[..tokens], threads)?.min(*best);
            }
        }
        let milliseconds = best.map(|time| time.as_secs_f64() * 1e3);
        let table: Vec<String> = TOKENS
            .iter()
            .zip(milliseconds)
            .map(|(tokens, time)| format!("{tokens}: {time:.1}"))
            .collect();
        let (constant, each) = line(&milliseconds);
        report.note(format!(
            "decodes, {threads} thread(s), ms by tokens: {}; from 2 on {constant:.1} + {each:.2} a token",
            table.join(", "),
        ));
    }
    Ok(())
}

/// One decode of `tokens` after the prefix, with the last one's logits. With one thread its CPU time
/// is counted, which other programs do not lengthen.
fn one(context: &mut Context<'_>, tokens: &[u32], threads: u32) -> Anything<Duration> {
    const SEQ: Seq = Seq(1);
    context.fork(Seq::PREFIX, SEQ, context.length(Seq::PREFIX))?;
    let mut batch = Batch::default();
    batch.push(SEQ, context.length(SEQ), tokens, tokens.len() - 1);
    let (wall, cpu) = (Instant::now(), clock::thread());
    context.decode(&batch, &mut |_, _| Ok(()))?;
    let time = match threads {
        1 => clock::thread() - cpu,
        _ => wall.elapsed(),
    };
    context.clear(SEQ)?;
    Ok(time)
}

/// The least squares of `milliseconds` over `TOKENS` from the second on: the time of no token, and
/// what one adds.
fn line(milliseconds: &[f64]) -> (f64, f64) {
    let points: Vec<(f64, f64)> = TOKENS
        .iter()
        .map(|&tokens| tokens as f64)
        .zip(milliseconds.iter().copied())
        .skip(1)
        .collect();
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let (mut together, mut apart) = (0.0, 0.0);
    for point in &points {
        together += (point.0 - x) * (point.1 - y);
        apart += (point.0 - x).powi(2);
    }
    let each = together / apart;
    (y - each * x, each)
}
