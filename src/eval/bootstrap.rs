//! How sure a figure is: percentile bootstrap intervals over questions.
//!
//! Questions are drawn with replacement, the figure is computed again from each draw, and the
//! middle 95 % of those figures is the interval (Efron and Tibshirani 1993, chapter 13). Draws come
//! from a fixed seed, so the same predictions give the same interval.

use super::metrics::{mean, quantile};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

/// Draws for each interval.
pub const RESAMPLES: usize = 2_000;

/// Seed of the draws.
const SEED: u64 = 0x5741_4952;

/// A figure, and between what it lies with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The figure over all questions.
    pub value: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
    /// Number of questions that it was computed from.
    pub questions: usize,
}

/// `figure` over the questions `0..questions`, with its interval; `None` without questions. It is
/// called with the questions of each draw, in which one may stand several times.
pub fn estimate(questions: usize, figure: impl Fn(&[usize]) -> f64) -> Option<Estimate> {
    if questions == 0 {
        return None;
    }
    let mut draw: Vec<usize> = (0..questions).collect();
    let value = figure(&draw);
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let mut figures: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            draw.fill_with(|| random.random_range(0..questions));
            figure(&draw)
        })
        .collect();
    Some(Estimate {
        value,
        low: quantile(&mut figures, 0.025),
        high: quantile(&mut figures, 0.975),
        questions,
    })
}

/// The mean of `values` with its interval; `None` without values.
pub fn estimate_mean(values: &[f64]) -> Option<Estimate> {
    estimate(values.len(), |draw| mean(draw.iter().map(|i| values[*i])))
}

/// The `q` quantile of `values` with its interval; `None` without values.
pub fn estimate_quantile(values: &[f64], q: f64) -> Option<Estimate> {
    estimate(values.len(), |draw| {
        let mut drawn: Vec<f64> = draw.iter().map(|i| values[*i]).collect();
        quantile(&mut drawn, q)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_proportion_is_near_the_normal_one() {
        let values: Vec<f64> = (0..400).map(|i| f64::from(i % 4 == 0)).collect();
        let estimate = estimate_mean(&values).expect("has values");
        // 1.96 standard errors of a proportion of 0.25 over 400 are 0.0424.
        assert_eq!(estimate.value, 0.25);
        assert!((estimate.low - 0.2076).abs() < 0.006, "{estimate:?}");
        assert!((estimate.high - 0.2924).abs() < 0.006, "{estimate:?}");
    }

    #[test]
    fn the_same_values_give_the_same_interval() {
        let values = [0.3, 0.9, 0.1, 0.5];
        assert_eq!(
            estimate_quantile(&values, 0.5),
            estimate_quantile(&values, 0.5)
        );
        assert_eq!(estimate_mean(&[]), None);
        let sure = estimate_mean(&[1.0; 9]).expect("has values");
        assert_eq!(
            (sure.value, sure.low, sure.high, sure.questions),
            (1.0, 1.0, 1.0, 9)
        );
    }
}
