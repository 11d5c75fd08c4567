//! Scoring every title as a continuation of the question, which is how SGLang's `choices` chooses:
//! one prompt a choice, over a shared prefix. Here on libstair's own engine, and by the sum of the
//! tokens' log-probabilities, terminator included, so that the ranking is that of the search.

use crate::Anything;
use crate::protocol::{Answer, Ask, Document, Title};
use crate::serve::Serving;
use stair::engine::context::MAX_SEQUENCES;
use stair::engine::{Context, ContextOptions, KvType};
use stair::eval::predictions::PredictedHit;
use stair::search::logits::log_sum_exp;
use stair::search::model::{Batch, Capacity, LanguageModel, Seq};
use stair::{Model, ModelOptions};

/// Tokens of one decode, each with its row of logits. More is no faster on a CPU.
const BATCH: usize = 512;

const QUESTION: Seq = Seq(1);

/// The sequences of titles come after the prefix and the question.
const FIRST: u16 = 2;

struct EveryTitle {
    context: Context<'static>,
    titles: Vec<Title>,
    prefix: u32,
    k: usize,
}

pub fn open(document: &Document) -> Anything<Box<dyn Serving>> {
    // It lives as long as the process.
    let model = Model::open(&document.model, &ModelOptions::default())?;
    let model: &'static Model = Box::leak(Box::new(model));
    let mut context = Context::new(
        model,
        &ContextOptions {
            capacity: Capacity {
                sequences: MAX_SEQUENCES,
                batch: BATCH,
                rows: BATCH,
                context: document.prefix.len() + document.longest_question + BATCH,
            },
            threads: document.threads,
            kv_type: KvType::F16,
        },
    )?;
    let mut position = 0;
    for piece in document.prefix.chunks(BATCH) {
        let mut batch = Batch::default();
        batch.push(Seq::PREFIX, position, piece, piece.len());
        context.decode(&batch, &mut |_, _| Ok(()))?;
        position += u32::try_from(piece.len())?;
    }
    let titles = document.titles.iter().map(|title| Title {
        section: title.section,
        identifier: title.identifier.clone(),
        tokens: title.tokens.clone(),
    });
    Ok(Box::new(EveryTitle {
        context,
        titles: titles.collect(),
        prefix: position,
        k: document.k,
    }))
}

impl Serving for EveryTitle {
    fn answer(&mut self, ask: &Ask) -> Anything<Answer> {
        let mut spent = Answer {
            decodes: Some(1),
            ..Answer::default()
        };
        let mut tokens = ask.tokens.len();
        self.context.clear(QUESTION)?;
        self.context.fork(Seq::PREFIX, QUESTION, self.prefix)?;
        let mut batch = Batch::default();
        batch.push(QUESTION, self.prefix, &ask.tokens, ask.tokens.len() - 1);
        let titles = &self.titles;
        let mut scores = vec![0.0f64; titles.len()];
        self.context.decode(&batch, &mut |_, row| {
            let all = log_sum_exp(row)?;
            for (score, title) in scores.iter_mut().zip(titles) {
                *score = log_prob(row, all, title.tokens[0]);
            }
            Ok(())
        })?;
        let start = self.prefix + u32::try_from(ask.tokens.len())?;
        let mut from = 0;
        while from < titles.len() {
            batch.clear();
            let mut seq = Seq(FIRST);
            while let Some(title) = titles.get(from + batch.appends().len())
                && seq.0 < MAX_SEQUENCES
                // The terminator is never decoded: its probability is in the row before it.
                && batch.token_count() + title.tokens.len() - 1 <= BATCH
            {
                self.context.fork(QUESTION, seq, start)?;
                batch.push(seq, start, &title.tokens[..title.tokens.len() - 1], 0);
                seq.0 += 1;
            }
            let count = batch.appends().len();
            if count == 0 {
                return Err("a title is longer than a batch".into());
            }
            // Rows come in order: the first of a title predicts its second token.
            let (mut title, mut next) = (usize::MAX, 1);
            self.context.decode(&batch, &mut |append, row| {
                if append != title {
                    (title, next) = (append, 1);
                }
                let token = titles[from + append].tokens[next];
                scores[from + append] += log_prob(row, log_sum_exp(row)?, token);
                next += 1;
                Ok(())
            })?;
            for seq in FIRST..seq.0 {
                self.context.clear(Seq(seq))?;
            }
            tokens += batch.token_count();
            spent.decodes = spent.decodes.map(|decodes| decodes + 1);
            from += count;
        }
        let mut ranking: Vec<usize> = (0..titles.len()).collect();
        ranking.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        let hits = ranking.into_iter().take(self.k).map(|i| PredictedHit {
            section: Some(titles[i].section),
            identifier: titles[i].identifier.clone(),
            score: scores[i],
            log_prob: Some(scores[i]),
            lexical: None,
        });
        spent.hits = hits.collect();
        spent.tokens = Some(u32::try_from(tokens)?);
        Ok(spent)
    }
}

fn log_prob(row: &[f32], all: f64, token: u32) -> f64 {
    f64::from(row[token as usize]) - all
}
