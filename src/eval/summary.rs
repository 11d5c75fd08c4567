//! All figures of one system, out of its predictions alone.

use super::bootstrap::{Estimate, estimate, estimate_mean, estimate_quantile};
use super::calibration::{self, BINS, Bin};
use super::metrics::{ndcg, recall, reciprocal_rank};
use super::predictions::{Gold, Prediction};
use serde::Serialize;

/// The figures of one system.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// The system's name.
    pub system: String,
    /// How many questions of which kind.
    pub counts: Counts,
    /// Largest number of hits of a question: how deep MRR and the gold's probability look.
    pub hits: usize,
    /// Over the questions that a leaf answers.
    pub answerable: Option<Ranking>,
    /// Over these and the orphans, which nobody can get right.
    pub all: Option<Ranking>,
    /// Fraction of the questions with hits, of any kind, whose best hit is no leaf of the index.
    pub hallucination: Option<Estimate>,
    /// What the model thought of the right answer.
    pub gold: Option<GoldLogProb>,
    /// Whether probabilities mean what they say; over the questions that a leaf answers.
    pub calibration: Option<Calibration>,
    /// Time for an answer, over all questions that were asked alone.
    pub latency: Option<Latency>,
    /// Mean number of decodes for a question.
    pub decodes: Option<Estimate>,
    /// Mean number of tokens for a question.
    pub tokens: Option<Estimate>,
    /// Recall@1 by the number of training questions of the gold leaf.
    pub by_training: Vec<Group>,
    /// The same for those that have two at most.
    pub few_training: Group,
    /// How often the system said that no section answers; `None` when it takes no stand.
    pub refusal: Option<Refusal>,
}

/// Numbers of questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// All of them.
    pub questions: usize,
    /// Those that a leaf answers.
    pub answerable: usize,
    /// Those whose gold section is no leaf of the index.
    pub orphans: usize,
    /// Those that no section answers; they count in no ranking figure.
    pub unanswerable: usize,
    /// Those of any kind that the system could not take, a question that is too long above all.
    /// They count as misses.
    pub failed: usize,
}

/// How good a ranking is; fractions of 1.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ranking {
    /// Fraction with the gold leaf first.
    pub recall_at_1: Estimate,
    /// Fraction with the gold leaf among the first three.
    pub recall_at_3: Estimate,
    /// Normalised discounted cumulative gain at 3.
    pub ndcg_at_3: Estimate,
    /// Mean reciprocal rank over the hits there are.
    pub mrr: Estimate,
}

/// Natural logarithms of the gold leaves' probabilities, as far as they are among the hits.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GoldLogProb {
    /// Their mean.
    pub mean: Estimate,
    /// Their median.
    pub median: Estimate,
    /// Fraction of the answerable questions that they are known for.
    pub coverage: f64,
}

/// See [`calibration`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// Expected calibration error, 0 to 1.
    pub ece: Estimate,
    /// The bins that it comes from.
    pub bins: [Bin; BINS],
}

/// Seconds for an answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Latency {
    /// The median.
    pub p50: Estimate,
    /// What 95 % of the answers stay below.
    pub p95: Estimate,
}

/// Questions whose gold leaves have about as many training questions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// Fewest training questions.
    pub from: u32,
    /// Most training questions; `None` for no limit.
    pub to: Option<u32>,
    /// Recall@1; `None` when there are no such questions.
    pub recall_at_1: Option<Estimate>,
}

impl Group {
    /// `"1-2"`, `"6+"`.
    pub fn label(&self) -> String {
        match self.to {
            None => format!("{}+", self.from),
            Some(to) if to == self.from => to.to_string(),
            Some(to) => format!("{}-{to}", self.from),
        }
    }
}

/// How often a system said that no section answers; fractions of 1.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Refusal {
    /// Of the questions that no section answers: the more the better.
    pub unanswerable: Option<Estimate>,
    /// Of the questions that a leaf answers: the fewer the better.
    pub answerable: Option<Estimate>,
}

/// Fewest and most training questions of each group.
const GROUPS: [(u32, Option<u32>); 4] = [(0, Some(0)), (1, Some(2)), (3, Some(5)), (6, None)];

impl Summary {
    /// The figures of `predictions`, which are one system's.
    pub fn new(predictions: &[Prediction]) -> Self {
        let of = |kind: fn(Gold) -> bool| -> Vec<&Prediction> {
            let wanted = |p: &&Prediction| kind(p.gold());
            predictions.iter().filter(wanted).collect()
        };
        let answerable = of(|gold| matches!(gold, Gold::Leaf(_)));
        let unanswerable = of(|gold| gold == Gold::Nothing);
        let all = of(|gold| gold != Gold::Nothing);
        let numbers = |field: fn(&Prediction) -> Option<f64>| -> Vec<f64> {
            predictions.iter().filter_map(field).collect()
        };
        Self {
            system: predictions
                .first()
                .map_or(String::new(), |p| p.system.clone()),
            counts: Counts {
                questions: predictions.len(),
                answerable: answerable.len(),
                orphans: all.len() - answerable.len(),
                unanswerable: unanswerable.len(),
                failed: predictions.iter().filter(|p| p.error.is_some()).count(),
            },
            hits: predictions.iter().map(|p| p.hits.len()).max().unwrap_or(0),
            hallucination: estimate_mean(&numbers(|p| {
                Some(f64::from(p.hits.first()?.section.is_none()))
            })),
            gold: gold_log_prob(&answerable),
            calibration: calibrated(predictions),
            latency: latency(&numbers(|p| p.seconds)),
            decodes: estimate_mean(&numbers(|p| p.decodes.map(f64::from))),
            tokens: estimate_mean(&numbers(|p| p.tokens.map(f64::from))),
            by_training: GROUPS
                .iter()
                .map(|(from, to)| group(&answerable, *from, *to))
                .collect(),
            few_training: group(&answerable, 0, Some(2)),
            refusal: refusal(&answerable, &unanswerable),
            answerable: ranking(&answerable),
            all: ranking(&all),
        }
    }
}

fn ranking(predictions: &[&Prediction]) -> Option<Ranking> {
    let ranks: Vec<Option<usize>> = predictions.iter().map(|p| p.rank()).collect();
    let of = |measure: &dyn Fn(Option<usize>) -> f64| {
        let values: Vec<f64> = ranks.iter().map(|rank| measure(*rank)).collect();
        estimate_mean(&values)
    };
    Some(Ranking {
        recall_at_1: of(&|rank| recall(rank, 1))?,
        recall_at_3: of(&|rank| recall(rank, 3))?,
        ndcg_at_3: of(&|rank| ndcg(rank, 3))?,
        mrr: of(&reciprocal_rank)?,
    })
}

fn gold_log_prob(answerable: &[&Prediction]) -> Option<GoldLogProb> {
    let values: Vec<f64> = answerable
        .iter()
        .filter_map(|p| p.hits[p.rank()? - 1].log_prob)
        .collect();
    Some(GoldLogProb {
        mean: estimate_mean(&values)?,
        median: estimate_quantile(&values, 0.5)?,
        coverage: values.len() as f64 / answerable.len() as f64,
    })
}

fn calibrated(predictions: &[Prediction]) -> Option<Calibration> {
    let judged = calibration::judged(predictions);
    let drawn = |draw: &[usize]| calibration::bins(draw.iter().map(|i| judged[*i]));
    Some(Calibration {
        ece: estimate(judged.len(), |draw| {
            calibration::expected_error(&drawn(draw))
        })?,
        bins: calibration::bins(judged.iter().copied()),
    })
}

fn latency(seconds: &[f64]) -> Option<Latency> {
    Some(Latency {
        p50: estimate_quantile(seconds, 0.5)?,
        p95: estimate_quantile(seconds, 0.95)?,
    })
}

fn group(answerable: &[&Prediction], from: u32, to: Option<u32>) -> Group {
    let values: Vec<f64> = answerable
        .iter()
        .filter(|p| p.train_examples >= from && to.is_none_or(|to| p.train_examples <= to))
        .map(|p| recall(p.rank(), 1))
        .collect();
    Group {
        from,
        to,
        recall_at_1: estimate_mean(&values),
    }
}

fn refusal(answerable: &[&Prediction], unanswerable: &[&Prediction]) -> Option<Refusal> {
    let refused = |predictions: &[&Prediction]| {
        let values: Vec<f64> = predictions
            .iter()
            .filter_map(|p| p.answerable.map(|answerable| f64::from(!answerable)))
            .collect();
        estimate_mean(&values)
    };
    let (answerable, unanswerable) = (refused(answerable), refused(unanswerable));
    (answerable.is_some() || unanswerable.is_some()).then_some(Refusal {
        unanswerable,
        answerable,
    })
}

#[cfg(test)]
mod tests {
    use super::super::predictions::tests::prediction;
    use super::*;

    fn value(estimate: &Option<Estimate>) -> f64 {
        estimate.expect("is there").value
    }

    #[test]
    fn orphans_are_misses_and_the_unanswerable_are_no_part_of_recall() {
        let mut orphan = prediction("3", None, &[1]);
        orphan.gold_identifier = Some("Gone".to_owned());
        let summary = Summary::new(&[
            prediction("1", Some(4), &[4, 1]),
            prediction("2", Some(4), &[1, 4]),
            orphan,
            prediction("4", None, &[1]),
        ]);
        let counts = summary.counts;
        assert_eq!((counts.questions, counts.answerable), (4, 2));
        assert_eq!((counts.orphans, counts.unanswerable), (1, 1));
        let (answerable, all) = (
            summary.answerable.expect("some"),
            summary.all.expect("some"),
        );
        assert_eq!(answerable.recall_at_1.value, 0.5);
        assert_eq!(answerable.recall_at_3.value, 1.0);
        assert_eq!(answerable.mrr.value, 0.75);
        assert!((all.recall_at_1.value - 1.0 / 3.0).abs() < 1e-12);
        let gold = summary.gold.expect("some");
        assert_eq!((gold.mean.value, gold.coverage), (-1.0, 1.0));
    }

    #[test]
    fn a_made_up_section_counts_as_a_hallucination() {
        let mut made_up = prediction("1", Some(4), &[4]);
        made_up.hits[0].section = None;
        let summary = Summary::new(&[made_up, prediction("2", Some(4), &[4])]);
        assert_eq!(value(&summary.hallucination), 0.5);
    }

    #[test]
    fn groups_go_by_training_questions() {
        let mut cold = prediction("1", Some(4), &[1]);
        cold.train_examples = 0;
        let summary = Summary::new(&[cold, prediction("2", Some(4), &[4])]);
        let labels: Vec<String> = summary.by_training.iter().map(Group::label).collect();
        assert_eq!(labels, ["0", "1-2", "3-5", "6+"]);
        assert_eq!(value(&summary.by_training[0].recall_at_1), 0.0);
        assert_eq!(summary.by_training[1].recall_at_1, None);
        assert_eq!(value(&summary.by_training[2].recall_at_1), 1.0);
        assert_eq!(value(&summary.few_training.recall_at_1), 0.0);
    }

    #[test]
    fn refusals_are_counted_on_both_sides() {
        let with = |id, gold, answerable| {
            let mut prediction = prediction(id, gold, &[1]);
            prediction.answerable = Some(answerable);
            prediction
        };
        let summary = Summary::new(&[
            with("1", Some(1), true),
            with("2", Some(1), false),
            with("3", None, false),
        ]);
        let refusal = summary.refusal.expect("takes a stand");
        assert_eq!(value(&refusal.unanswerable), 1.0);
        assert_eq!(value(&refusal.answerable), 0.5);
        assert_eq!(
            Summary::new(&[prediction("1", Some(1), &[1])]).refusal,
            None
        );
    }
}
