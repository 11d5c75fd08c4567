//! Choosing the lexical weight and the refusal's threshold, on questions kept apart for it.
//!
//! The weight is the one with the best Recall@1, then the best nDCG@3, then the smallest. Rankings
//! for all weights follow from one search for each question, which finds the most probable leaves:
//! their log-probabilities are exact, and no other leaf has a higher one than the last of them.
//! Where that leaves open which leaves a weight puts first, the search is done again with that
//! weight. So the figures are those of the exact search for every weight.
//!
//! The threshold is then chosen with that weight, for the statistic that refuses most of what no
//! section answers; see [`threshold`].

use super::confidence::{Evidence, Statistic, most_refused, threshold};
use super::gold::Sections;
use super::known::Known;
use super::metrics::{mean, ndcg, recall};
use super::predictions::Gold;
use super::run::of_split;
use super::system::is_the_questions;
use super::tuning::{Refusal, Weighed};
use crate::error::{Error, Result};
use crate::lexical::Lexicon;
use crate::questions::Question;
use crate::retriever::{Hits, RetrieveOptions, Retriever};

/// Leaves that the one search for all weights finds.
const KNOWN: usize = 20;

/// Leaves that the figures of a weight look at.
const RANKED: usize = 3;

/// Weights that are tried unless others are asked for.
pub const WEIGHTS: [f32; 14] = [
    0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0,
];

/// How it is chosen.
#[derive(Debug, Clone)]
pub struct TuneOptions {
    /// The questions to choose on are those of this split.
    pub split: String,
    /// The weights to try, each finite and from 0 up.
    pub weights: Vec<f32>,
    /// Hits that the refusal may look at: as many as are asked for in use.
    pub hits: usize,
    /// Largest fraction of the answerable questions that may be refused.
    pub most_refused: f64,
}

/// What was chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    /// The weight.
    pub lexical_weight: f32,
    /// The figures of all of them, in the order they were asked for.
    pub weights: Vec<Weighed>,
    /// When to say that no section answers; `None` without unanswerable questions.
    pub refusal: Option<Refusal>,
    /// Searches that had to be done again for a weight.
    pub searched_again: usize,
}

/// Chooses for `retriever`, which has a model, on the questions of a split. `asked` is called as it
/// goes with the searches done and the most that there may be.
///
/// # Errors
///
/// [`Error::InvalidArgument`] when the split has no question that a leaf answers, or for options
/// out of range; those of [`Retriever::retrieve`].
pub fn tune(
    retriever: &Retriever,
    questions: &[Question],
    options: &TuneOptions,
    asked: &dyn Fn(usize, usize),
) -> Result<Chosen> {
    check(options)?;
    let sections = Sections::new(retriever.index());
    let of_split = of_split(questions, &options.split)?;
    let answerable: Vec<(&Question, u32)> = of_split
        .iter()
        .filter_map(|question| match sections.gold(question) {
            Gold::Leaf(leaf) => Some((*question, leaf)),
            Gold::Orphan | Gold::Nothing => None,
        })
        .collect();
    let unanswerable: Vec<&Question> = of_split
        .iter()
        .copied()
        .filter(|question| sections.gold(question) == Gold::Nothing)
        .collect();
    if answerable.is_empty() {
        return Err(Error::InvalidArgument(format!(
            "no question of the split {:?} is answered by a leaf of the index, so there is nothing \
             to choose on: name another split or index",
            options.split
        )));
    }
    let again = match unanswerable.is_empty() {
        true => 0,
        false => answerable.len() + unanswerable.len(),
    };
    let mut searches = Searches {
        retriever,
        done: 0,
        all: answerable.len() + again,
        asked,
    };
    let (weights, searched_again) = weigh(&mut searches, &answerable, &options.weights)?;
    let best = best(&weights);
    let refusal = match unanswerable.is_empty() {
        true => None,
        false => {
            let answerable = answerable.iter().map(|(question, _)| *question).collect();
            refuse(&mut searches, answerable, unanswerable, best, options)?
        }
    };
    Ok(Chosen {
        lexical_weight: best,
        weights,
        refusal,
        searched_again,
    })
}

fn check(options: &TuneOptions) -> Result<()> {
    let fail = |what: &str| Err(Error::InvalidArgument(what.to_owned()));
    let usable = |weight: &f32| weight.is_finite() && *weight >= 0.0;
    if options.weights.is_empty() || !options.weights.iter().all(usable) {
        return fail("weights are finite numbers from 0 up, and at least one");
    }
    if options.hits == 0 {
        return fail("the refusal needs at least one hit to look at");
    }
    match (0.0..=1.0).contains(&options.most_refused) {
        true => Ok(()),
        false => fail("the fraction of questions that may be refused is from 0 to 1"),
    }
}

/// A retriever, and how far the work has come.
struct Searches<'a> {
    retriever: &'a Retriever,
    done: usize,
    all: usize,
    asked: &'a dyn Fn(usize, usize),
}

impl Searches<'_> {
    /// `None` for a question that cannot be asked.
    fn search(&mut self, question: &str, k: usize, weight: f32) -> Result<Option<Hits>> {
        let options = RetrieveOptions {
            k: Some(k.min(self.retriever.index().leaves() as usize)),
            lexical_weight: weight,
            ..RetrieveOptions::default()
        };
        let found = match self.retriever.retrieve(question, &options) {
            Ok(hits) => Ok(Some(hits)),
            Err(error) if is_the_questions(&error) => Ok(None),
            Err(error) => Err(error),
        };
        self.done += 1;
        self.all = self.all.max(self.done);
        (self.asked)(self.done, self.all);
        found
    }
}

fn log_probs(hits: &Hits) -> Vec<(u32, f64)> {
    let known = |hit: &crate::Hit| Some((hit.section, hit.log_prob?));
    hits.hits.iter().filter_map(known).collect()
}

/// The figures of each weight, and the number of searches done again.
fn weigh(
    searches: &mut Searches<'_>,
    answerable: &[(&Question, u32)],
    weights: &[f32],
) -> Result<(Vec<Weighed>, usize)> {
    let index = searches.retriever.index();
    let (lexicon, leaves) = (Lexicon::new(index), index.leaves() as usize);
    let mut again = 0;
    // For each weight, the gold leaf's rank at each question.
    let mut ranks: Vec<Vec<Option<usize>>> = vec![Vec::new(); weights.len()];
    for (question, gold) in answerable {
        let Some(hits) = searches.search(&question.query, KNOWN, 0.0)? else {
            ranks.iter_mut().for_each(|ranks| ranks.push(None));
            continue;
        };
        let lexical = lexicon.scores(&question.query);
        let mut known = Known::new(&log_probs(&hits), leaves, lexical);
        for (weight, ranks) in weights.iter().zip(&mut ranks) {
            let best = match known.best(*weight, RANKED.min(leaves)) {
                Some(best) => best,
                None => {
                    again += 1;
                    searches.all += 1;
                    let hits = searches.search(&question.query, RANKED, *weight)?;
                    let found = hits.map_or(Vec::new(), |hits| log_probs(&hits));
                    known.learn(found.iter().copied());
                    found.into_iter().map(|(section, _)| section).collect()
                }
            };
            ranks.push(
                best.iter()
                    .position(|section| section == gold)
                    .map(|at| at + 1),
            );
        }
    }
    let figures = weights.iter().zip(&ranks).map(|(weight, ranks)| Weighed {
        weight: *weight,
        recall_at_1: mean(ranks.iter().map(|rank| recall(*rank, 1))),
        ndcg_at_3: mean(ranks.iter().map(|rank| ndcg(*rank, RANKED))),
    });
    Ok((figures.collect(), again))
}

fn best(weights: &[Weighed]) -> f32 {
    let order = |a: &&Weighed, b: &&Weighed| {
        let figures = a.recall_at_1.total_cmp(&b.recall_at_1);
        let figures = figures.then(a.ndcg_at_3.total_cmp(&b.ndcg_at_3));
        figures.then(b.weight.total_cmp(&a.weight))
    };
    weights.iter().max_by(order).map_or(0.0, |best| best.weight)
}

fn refuse(
    searches: &mut Searches<'_>,
    answerable: Vec<&Question>,
    unanswerable: Vec<&Question>,
    weight: f32,
    options: &TuneOptions,
) -> Result<Option<Refusal>> {
    let mut evidence = |questions: Vec<&Question>| -> Result<Vec<Evidence>> {
        let mut all = Vec::with_capacity(questions.len());
        for question in questions {
            let hits = searches.search(&question.query, options.hits, weight)?;
            all.extend(hits.map(|hits| Evidence::new(&question.query, &hits)));
        }
        Ok(all)
    };
    let (answerable, unanswerable) = (evidence(answerable)?, evidence(unanswerable)?);
    let most = most_refused(answerable.len(), options.most_refused);
    let mut chosen: Option<Refusal> = None;
    for statistic in Statistic::ALL {
        let values = |of: &[Evidence]| -> Vec<f64> {
            let value = |evidence| statistic.value(evidence, options.hits);
            of.iter().filter_map(value).collect()
        };
        let (of_answerable, of_unanswerable) = (values(&answerable), values(&unanswerable));
        if of_answerable.is_empty() || of_unanswerable.is_empty() {
            continue;
        }
        let Some(threshold) = threshold(&of_answerable, &of_unanswerable, most) else {
            continue;
        };
        let refusal = Refusal {
            statistic,
            threshold: threshold.at,
            hits: options.hits,
            unanswerable: unanswerable.len(),
            unanswerable_refused: threshold.unanswerable,
            answerable: answerable.len(),
            answerable_refused: threshold.answerable,
            area: threshold.area,
        };
        if chosen.is_none_or(|chosen| is_better(&refusal, &chosen)) {
            chosen = Some(refusal);
        }
    }
    Ok(chosen)
}

/// More refused that should be; then fewer that should not; then told apart better beyond the
/// threshold, too.
fn is_better(a: &Refusal, b: &Refusal) -> bool {
    let refused = a.unanswerable_refused.cmp(&b.unanswerable_refused);
    let refused = refused.then(b.answerable_refused.cmp(&a.answerable_refused));
    refused.then(a.area.total_cmp(&b.area)).is_gt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weighed(weight: f32, recall_at_1: f64, ndcg_at_3: f64) -> Weighed {
        Weighed {
            weight,
            recall_at_1,
            ndcg_at_3,
        }
    }

    #[test]
    fn recall_decides_then_gain_then_the_smaller_weight() {
        let weights = [
            weighed(0.0, 0.5, 0.9),
            weighed(0.5, 0.6, 0.7),
            weighed(1.0, 0.6, 0.8),
            weighed(1.5, 0.6, 0.8),
        ];
        assert_eq!(best(&weights), 1.0);
        assert_eq!(best(&weights[..2]), 0.5);
        assert_eq!(best(&[]), 0.0);
    }

    #[test]
    fn options_out_of_range_are_refused() {
        let good = TuneOptions {
            split: "dev".to_owned(),
            weights: WEIGHTS.to_vec(),
            hits: 3,
            most_refused: 0.05,
        };
        assert!(check(&good).is_ok());
        for bad in [
            TuneOptions {
                weights: vec![],
                ..good.clone()
            },
            TuneOptions {
                weights: vec![-1.0],
                ..good.clone()
            },
            TuneOptions {
                hits: 0,
                ..good.clone()
            },
            TuneOptions {
                most_refused: 1.5,
                ..good.clone()
            },
        ] {
            assert!(check(&bad).is_err(), "{bad:?}");
        }
    }
}
