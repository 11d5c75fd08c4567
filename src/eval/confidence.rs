//! How sure a system is that a section answers at all.

use super::predictions::Prediction;
use crate::retriever::Hits;
use serde::{Deserialize, Serialize};
use unicode_segmentation::UnicodeSegmentation;

/// A number that is higher the more likely it is that the best hit answers the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Statistic {
    /// What the best hit is ranked by.
    Score,
    /// Natural logarithm of the probability of the best hit's title.
    LogProb,
    /// How far the best hit's score is ahead of the next one's.
    Margin,
    /// The best hit's part of the probability of all hits, when scores are taken for logarithms of
    /// probabilities: 1 divided by the sum of `exp(score - best score)`.
    Share,
    /// Probability on legal tokens along the best hit.
    LegalMass,
    /// Natural logarithm of the legal mass, and parts of the best hit's score and of its margin: the
    /// model's doubt and the words'. Scores grow with the question, so they are divided by the square
    /// root of its number of words: else short questions would be refused for being short.
    MassScoreMargin,
}

/// What a unit of score counts beside a unit of the logarithm of the legal mass, for a question of one
/// word. Chosen, as [`MARGIN`], on the handbook's development questions: of those that tell as many
/// apart, the one that refuses short questions no more often than long ones.
const SCORE: f64 = 0.05;

/// The same of a unit of margin.
const MARGIN: f64 = 0.1;

/// What a statistic is computed from.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// Words of the question.
    pub words: usize,
    /// Score of each hit, best first.
    pub scores: Vec<f64>,
    /// Natural logarithm of the best hit's probability; `None` without a model.
    pub log_prob: Option<f64>,
    /// Probability on legal tokens along the best hit; `None` without a model.
    pub legal_mass: Option<f64>,
}

impl Evidence {
    /// What the `hits` of `question` show.
    pub fn new(question: &str, hits: &Hits) -> Self {
        Self {
            words: count_words(question),
            scores: hits.hits.iter().map(|hit| hit.score).collect(),
            log_prob: hits.hits.first().and_then(|hit| hit.log_prob),
            legal_mass: hits.legal_mass,
        }
    }
}

impl From<&Prediction> for Evidence {
    fn from(prediction: &Prediction) -> Self {
        Self {
            words: count_words(&prediction.query),
            scores: prediction.hits.iter().map(|hit| hit.score).collect(),
            log_prob: prediction.hits.first().and_then(|hit| hit.log_prob),
            legal_mass: prediction.legal_mass,
        }
    }
}

fn count_words(question: &str) -> usize {
    question.unicode_words().count()
}

impl Statistic {
    /// All of them; of those that do equally well, the earlier one is taken.
    pub const ALL: [Self; 6] = [
        Self::Score,
        Self::LogProb,
        Self::Margin,
        Self::Share,
        Self::LegalMass,
        Self::MassScoreMargin,
    ];

    /// Its value over the first `hits` of a question's hits; `None` when there is nothing to
    /// compute it from.
    pub fn value(self, evidence: &Evidence, hits: usize) -> Option<f64> {
        let scores = &evidence.scores[..evidence.scores.len().min(hits)];
        let best = *scores.first()?;
        match self {
            Self::Score => Some(best),
            Self::LogProb => evidence.log_prob,
            Self::Margin => Some(best - scores.get(1)?),
            Self::Share => Some(1.0 / scores.iter().map(|score| (score - best).exp()).sum::<f64>()),
            Self::LegalMass => evidence.legal_mass,
            // A mass of 0 has no logarithm, and is as sure a sign as there is.
            Self::MassScoreMargin => {
                let mass = evidence.legal_mass?.max(f64::MIN_POSITIVE);
                let margin = best - scores.get(1)?;
                let words = evidence.words.max(1) as f64;
                Some(mass.ln() + (SCORE * best + MARGIN * margin) / words.sqrt())
            }
        }
    }

    /// Hits that a question must have for it, of the `hits` that it was tuned with.
    pub fn needs(self, hits: usize) -> usize {
        match self {
            Self::Score | Self::LogProb | Self::LegalMass => 1,
            Self::Margin | Self::MassScoreMargin => 2,
            Self::Share => hits,
        }
    }

    /// Its name, as in a tuning file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Score => "score",
            Self::LogProb => "log_prob",
            Self::Margin => "margin",
            Self::Share => "share",
            Self::LegalMass => "legal_mass",
            Self::MassScoreMargin => "mass_score_margin",
        }
    }
}

/// A value below which an answer is refused, and what refusing so did to the questions that it was
/// chosen on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threshold {
    /// Answers whose statistic is below it are refused.
    pub at: f64,
    /// Questions refused that no section answers.
    pub unanswerable: usize,
    /// Questions refused that a section answers.
    pub answerable: usize,
    /// Probability that the statistic is higher for a question that a section answers than for one
    /// that none answers (area under the ROC curve).
    pub area: f64,
}

/// The threshold that refuses most of `unanswerable`, values of a statistic, without refusing more
/// than `most` of `answerable`; of equals the one that refuses fewest of these. It lies in the
/// middle between two values. `None` without values.
pub fn threshold(answerable: &[f64], unanswerable: &[f64], most: usize) -> Option<Threshold> {
    let sorted = |of: &[f64]| {
        let mut of: Vec<f64> = of
            .iter()
            .copied()
            .filter(|value| value.is_finite())
            .collect();
        of.sort_by(f64::total_cmp);
        of
    };
    let (answerable, unanswerable) = (&sorted(answerable), &sorted(unanswerable));
    let mut values = sorted(&[&**answerable, &**unanswerable].concat());
    values.dedup();
    let area = area(answerable, unanswerable);
    let below = |of: &[f64], at: f64| of.partition_point(|value| *value < at);
    let cuts = values.iter().enumerate().map(|(i, value)| Threshold {
        at: match i {
            0 => *value,
            _ => values[i - 1] + (value - values[i - 1]) / 2.0,
        },
        unanswerable: below(unanswerable, *value),
        answerable: below(answerable, *value),
        area,
    });
    cuts.filter(|cut| cut.answerable <= most)
        .max_by_key(|cut| (cut.unanswerable, std::cmp::Reverse(cut.answerable)))
}

/// The most of `count` questions that may be refused here so that in use no more than the part `most` is,
/// with 90 % confidence: the upper bound of the one-sided Wilson interval (Wilson, JASA 22, 1927).
pub fn most_refused(count: usize, most: f64) -> usize {
    // Of the standard normal distribution, 90 % lie below.
    const Z: f64 = 1.281_551_565_544_9;
    let n = count as f64;
    let upper = |refused: usize| {
        let p = refused as f64 / n;
        let spread = (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
        (p + Z * Z / (2.0 * n) + Z * spread) / (1.0 + Z * Z / n)
    };
    (1..=count)
        .take_while(|&refused| upper(refused) <= most)
        .last()
        .unwrap_or_default()
}

/// Probability that an answerable question's value is the higher one, equals counting half; both lists
/// ascend.
fn area(answerable: &[f64], unanswerable: &[f64]) -> f64 {
    let wins = answerable.iter().map(|a| {
        let less = unanswerable.partition_point(|u| u < a);
        let equal = unanswerable[less..].partition_point(|u| u <= a);
        less as f64 + 0.5 * equal as f64
    });
    let wins: f64 = wins.sum();
    wins / (answerable.len() * unanswerable.len()).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_what_they_are_called() {
        let evidence = Evidence {
            words: 4,
            scores: vec![2.0, 1.0, 1.0, 0.0],
            log_prob: Some(-0.5),
            legal_mass: None,
        };
        let value = |statistic: Statistic| statistic.value(&evidence, 3);
        assert_eq!(value(Statistic::Score), Some(2.0));
        assert_eq!(value(Statistic::LogProb), Some(-0.5));
        assert_eq!(value(Statistic::Margin), Some(1.0));
        assert_eq!(value(Statistic::LegalMass), None);
        assert_eq!(value(Statistic::MassScoreMargin), None);
        let share = value(Statistic::Share).expect("has scores");
        assert!((share - 1.0 / (1.0 + 2.0 * (-1f64).exp())).abs() < 1e-12);
        assert_eq!(Statistic::Margin.value(&evidence, 1), None);
        for (mass, expected) in [(0.5, 0.5f64.ln() + 0.1), (1.0, 0.1)] {
            let legal_mass = Some(mass);
            let evidence = Evidence {
                legal_mass,
                ..evidence.clone()
            };
            let statistic = Statistic::MassScoreMargin;
            let found = statistic.value(&evidence, 3).expect("has a mass");
            assert!((found - expected).abs() < 1e-12);
            assert_eq!(statistic.value(&evidence, 1), None);
        }
        let legal_mass = Some(0.0);
        let nothing = Evidence {
            legal_mass,
            ..evidence.clone()
        };
        assert!(
            Statistic::MassScoreMargin
                .value(&nothing, 3)
                .is_some_and(|value| value < -700.0)
        );
    }

    #[test]
    fn refusing_the_unanswerable_must_not_cost_more_than_allowed() {
        let answerable = [0.2, 0.5, 0.6, 0.7, 0.8];
        let unanswerable = [0.1, 0.3, 0.55];
        let at = |most| threshold(&answerable, &unanswerable, most).expect("has values");
        let (strict, one, two) = (at(0), at(1), at(2));
        assert_eq!((strict.unanswerable, strict.answerable), (1, 0));
        assert!((strict.at - 0.15).abs() < 1e-12);
        assert_eq!((one.unanswerable, one.answerable), (2, 1));
        assert!((one.at - 0.4).abs() < 1e-12);
        assert_eq!((two.unanswerable, two.answerable), (3, 2));
        // 12 of the 15 pairs are in the right order.
        assert!((one.area - 12.0 / 15.0).abs() < 1e-12);
    }

    #[test]
    fn a_part_that_may_be_refused_leaves_room_for_chance() {
        // By hand for 280: 9 may be 4.9 % in use, 10 may be 5.3 %.
        assert_eq!(most_refused(280, 0.05), 9);
        assert_eq!(most_refused(100_000, 0.05), 4911);
        assert_eq!((most_refused(20, 0.05), most_refused(0, 0.05)), (0, 0));
        assert_eq!((most_refused(20, 1.0), most_refused(20, 0.0)), (20, 0));
    }

    #[test]
    fn where_all_can_be_told_apart_no_answerable_question_is_refused() {
        let found = threshold(&[1.0, 2.0, 3.0], &[-2.0, 0.0], 3).expect("has values");
        assert_eq!(
            (found.unanswerable, found.answerable, found.at),
            (2, 0, 0.5)
        );
        assert_eq!(found.area, 1.0);
    }

    #[test]
    fn equal_values_cannot_be_told_apart() {
        let found = threshold(&[1.0, 1.0], &[1.0], 0).expect("has values");
        assert_eq!((found.unanswerable, found.answerable), (0, 0));
        assert_eq!(threshold(&[], &[], 0), None);
    }
}
