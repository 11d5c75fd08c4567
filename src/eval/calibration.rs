//! Whether the probabilities mean what they say: of the answers given with 0.8, eight in ten should
//! be right.
//!
//! The expected calibration error is the mean distance of confidence from accuracy over ten equal
//! bins of confidence, each weighted by its questions (Naeini, Cooper and Hauskrecht 2015; Guo et
//! al. 2017). The confidence of an answer is the probability of its best hit's title,
//! `exp(log_prob)`.

use super::predictions::{Gold, Prediction};
use serde::Serialize;

/// Number of bins.
pub const BINS: usize = 10;

/// One bin of confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bin {
    /// Lower end of its confidences, excluded but for 0.
    pub from: f64,
    /// Upper end, included.
    pub to: f64,
    /// Number of answers in it.
    pub questions: usize,
    /// Their mean confidence; 0 when there are none.
    pub confidence: f64,
    /// The fraction that is right; 0 when there are none.
    pub accuracy: f64,
}

/// An answer's confidence, and whether it was right.
#[derive(Debug, Clone, Copy)]
pub struct Judged {
    /// Probability of the best hit, 0 to 1.
    pub confidence: f64,
    /// Whether it is the gold leaf.
    pub right: bool,
}

/// The answers of `predictions` to questions that a leaf answers, as far as their best hit has a
/// probability.
pub fn judged(predictions: &[Prediction]) -> Vec<Judged> {
    predictions
        .iter()
        .filter(|prediction| matches!(prediction.gold(), Gold::Leaf(_)))
        .filter_map(|prediction| {
            Some(Judged {
                confidence: prediction.hits.first()?.log_prob?.exp().min(1.0),
                right: prediction.rank() == Some(1),
            })
        })
        .collect()
}

/// The bins of `judged`, lowest confidence first.
pub fn bins(judged: impl IntoIterator<Item = Judged>) -> [Bin; BINS] {
    let mut bins: [Bin; BINS] = std::array::from_fn(|i| Bin {
        from: i as f64 / BINS as f64,
        to: (i + 1) as f64 / BINS as f64,
        questions: 0,
        confidence: 0.0,
        accuracy: 0.0,
    });
    for answer in judged {
        let at = (answer.confidence * BINS as f64).ceil() as usize;
        let bin = &mut bins[at.clamp(1, BINS) - 1];
        bin.questions += 1;
        bin.confidence += answer.confidence;
        bin.accuracy += f64::from(answer.right);
    }
    for bin in &mut bins {
        if bin.questions > 0 {
            bin.confidence /= bin.questions as f64;
            bin.accuracy /= bin.questions as f64;
        }
    }
    bins
}

/// The expected calibration error over `bins`, 0 to 1; 0 without answers.
pub fn expected_error(bins: &[Bin]) -> f64 {
    let total: usize = bins.iter().map(|bin| bin.questions).sum();
    let weighted = |bin: &Bin| bin.questions as f64 * (bin.confidence - bin.accuracy).abs();
    match total {
        0 => 0.0,
        total => bins.iter().map(weighted).sum::<f64>() / total as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(confidence: f64, right: usize, wrong: usize) -> impl Iterator<Item = Judged> {
        (0..right + wrong).map(move |i| Judged {
            confidence,
            right: i < right,
        })
    }

    #[test]
    fn honest_probabilities_have_no_error() {
        let all = answers(0.75, 3, 1).chain(answers(0.25, 1, 3));
        assert!(expected_error(&bins(all)) < 1e-12);
    }

    #[test]
    fn overconfidence_is_weighted_by_the_questions_of_its_bin() {
        let bins = bins(answers(1.0, 1, 1).chain(answers(0.05, 0, 2)));
        assert_eq!(bins[9].questions, 2);
        assert_eq!(bins[0].questions, 2);
        assert!((expected_error(&bins) - (0.5 * 0.5 + 0.05 * 0.5)).abs() < 1e-12);
    }

    #[test]
    fn the_ends_belong_to_the_outer_bins() {
        let bins = bins(
            answers(0.0, 1, 0)
                .chain(answers(1.0, 1, 0))
                .chain(answers(0.1, 1, 0)),
        );
        assert_eq!((bins[0].questions, bins[9].questions), (2, 1));
    }
}
