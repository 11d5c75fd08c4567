//! What it costs to keep a model to the titles of a document.

use crate::report::{Anything, Report};
use crate::{clock, handbook};
use stair::engine::{Context, ContextOptions};
use stair::search::logits::log_sum_exp;
use stair::search::model::{Batch, Capacity, LanguageModel, Seq};
use stair::search::{Hints, Scoring, SearchOptions, top_k};
use stair::{Index, KvType, Model, ModelOptions, Result};
use std::path::Path;
use std::time::Duration;

const QUESTIONS: usize = 4;

/// `constraint_overhead_share` is everything that a query does beside the model's decodes, as a
/// share of the whole: walking the trie, scoring, the frontier, planning, copying and emptying
/// sequences. Of a decode only what happens in its callback, where the search takes in the logits,
/// is overhead.
///
/// The model runs with one thread and CPU time is counted, which no other program can lengthen;
/// then the model's part is divided by the number of cores, as if it used them without any loss.
/// So the share is never less than on an idle machine, where the model's threads wait for each
/// other.
///
/// Any exact scorer has to turn logits into log-probabilities over the whole vocabulary. That part
/// is measured too, by doing it once more in every second pass, and printed apart; the figure
/// includes it.
pub fn measure(model: &Path, report: &mut Report) -> Anything {
    let model = Model::open(model, &ModelOptions::default())?;
    let index = handbook::index(&model)?;
    let cores = std::thread::available_parallelism()?.get() as f64;
    let mut metered = Metered {
        context: context(&model, &index)?,
        cost: Cost::default(),
        twice: false,
    };
    handbook::prefill(&mut metered.context, index.prefix())?;
    let mut total = Cost::default();
    for question in &handbook::QUESTIONS[..QUESTIONS] {
        for twice in [false, true] {
            metered.twice = twice;
            let cost = metered.query(&model, &index, question)?;
            total.model += cost.model;
            total.sequences += cost.sequences;
            total.rows += cost.rows;
            total.decodes += cost.decodes;
            match twice {
                // The second pass differs only by what it is measured for.
                true => total.normaliser += cost.normaliser,
                false => total.search += cost.search,
            }
        }
    }
    // The model, and what counts, was measured in both passes.
    let decode = total.model.as_secs_f64() / 2.0 / cores;
    let search = total.search.as_secs_f64();
    let all = decode + search;
    let share = |part: Duration| part.as_secs_f64() / all * 100.0;
    let sequences = total.sequences / 2;
    report.note(format!(
        "overhead: {:.1} ms of {:.0} ms a query: {:.2} % the softmax's denominator, {:.2} % copying \
         and emptying sequences, {:.2} % trie and search; {:.0} decodes with {:.0} rows of logits",
        search * 1e3 / QUESTIONS as f64,
        all * 1e3 / QUESTIONS as f64,
        share(total.normaliser),
        share(sequences),
        share(total.search.saturating_sub(total.normaliser + sequences)),
        f64::from(total.decodes) / 2.0 / QUESTIONS as f64,
        f64::from(total.rows) / 2.0 / QUESTIONS as f64,
    ));
    report.at_most("constraint_overhead_share", search / all, 0.01);
    Ok(())
}

/// A context like a retriever's for one question at a time, with one thread.
fn context<'m>(model: &'m Model, index: &Index) -> Result<Context<'m>> {
    const STATES: u16 = 24;
    let room = (2 * index.longest_title() as usize).max(8 * usize::from(STATES));
    let options = ContextOptions {
        capacity: Capacity {
            sequences: 1 + STATES,
            batch: 512,
            rows: 128,
            context: index.prefix().len() + 512 + room,
        },
        threads: 1,
        kv_type: KvType::F16,
    };
    Context::new(model, &options)
}

/// CPU time of queries.
#[derive(Default)]
struct Cost {
    /// In decodes, their callbacks left out.
    model: Duration,
    /// In the denominator of the softmax, done once more.
    normaliser: Duration,
    /// In everything else.
    search: Duration,
    /// In copying and emptying sequences, a part of it.
    sequences: Duration,
    decodes: u32,
    rows: u32,
}

/// A model that measures itself.
struct Metered<'m> {
    context: Context<'m>,
    cost: Cost,
    /// Whether the denominator is computed once more, before the search does.
    twice: bool,
}

impl Metered<'_> {
    fn query(&mut self, model: &Model, index: &Index, question: &str) -> Result<Cost> {
        let question = index.question().encode_question(model, question)?;
        let prefix_len = index.prefix().len() as u32;
        let options = SearchOptions {
            k: 3,
            scoring: Scoring::Exact,
            width: 2,
        };
        self.cost = Cost::default();
        let started = clock::thread();
        top_k(
            self,
            index.trie(),
            prefix_len,
            &question,
            options,
            Hints::default(),
        )?;
        let mut cost = std::mem::take(&mut self.cost);
        cost.search = clock::thread() - started - cost.model - cost.normaliser;
        Ok(cost)
    }

    fn sequences(&mut self, work: impl FnOnce(&mut Context<'_>) -> Result<()>) -> Result<()> {
        let started = clock::thread();
        let result = work(&mut self.context);
        self.cost.sequences += clock::thread() - started;
        result
    }
}

impl LanguageModel for Metered<'_> {
    fn capacity(&self) -> Capacity {
        self.context.capacity()
    }

    fn fork(&mut self, from: Seq, to: Seq, length: u32) -> Result<()> {
        self.sequences(|context| context.fork(from, to, length))
    }

    fn clear(&mut self, seq: Seq) -> Result<()> {
        self.sequences(|context| context.clear(seq))
    }

    fn decode(
        &mut self,
        batch: &Batch,
        row: &mut dyn FnMut(usize, &[f32]) -> Result<()>,
    ) -> Result<()> {
        let started = clock::thread();
        let (mut search, mut normaliser) = (Duration::ZERO, Duration::ZERO);
        let twice = self.twice;
        self.context.decode(batch, &mut |append, logits| {
            let entered = clock::thread();
            if twice {
                std::hint::black_box(log_sum_exp(logits)?);
            }
            let normalised = clock::thread();
            let result = row(append, logits);
            normaliser += normalised - entered;
            search += clock::thread() - normalised;
            result
        })?;
        self.cost.model += clock::thread() - started - search - normaliser;
        self.cost.normaliser += normaliser;
        self.cost.decodes += 1;
        self.cost.rows += batch.row_count() as u32;
        Ok(())
    }
}
