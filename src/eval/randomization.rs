//! Whether two systems differ by more than chance: the paired randomization test.
//!
//! If the systems were equally good, it would be chance which of the two got the better value on a
//! question. So the values of random questions are exchanged, and p is the fraction of such
//! exchanges whose difference of means is at least the one observed, on either side (Fisher 1935;
//! Smucker, Allan and Carterette, CIKM 2007). The observed one counts among them, so p is never 0
//! (Phipson and Smyth 2010).

use super::metrics::mean;
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

/// Random exchanges.
pub const PERMUTATIONS: usize = 10_000;

/// Seed of the exchanges.
const SEED: u64 = 0x5354_4149_5231;

/// Sums of the same terms in another order differ by rounding; they count as equal.
const ROUNDING: f64 = 1e-9;

/// How two systems differ at one measure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Difference {
    /// Mean of the first less mean of the second.
    pub difference: f64,
    /// Probability of a difference at least so large if both were equally good; two-sided.
    pub p: f64,
    /// Questions at which the first is better.
    pub better: usize,
    /// Questions at which the second is better. The other questions say nothing.
    pub worse: usize,
}

/// Compares `a` with `b`, the values of two systems at the same questions in the same order.
pub fn compare(a: &[f64], b: &[f64]) -> Difference {
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    let discordant: Vec<f64> = differences
        .iter()
        .copied()
        .filter(|difference| difference.abs() > ROUNDING)
        .collect();
    let better = discordant
        .iter()
        .filter(|difference| **difference > 0.0)
        .count();
    Difference {
        difference: mean(differences.iter().copied()),
        p: p_value(&discordant),
        better,
        worse: discordant.len() - better,
    }
}

/// Exchanging the values of a question turns the sign of its difference.
fn p_value(differences: &[f64]) -> f64 {
    let observed = differences.iter().sum::<f64>().abs();
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let as_large = (0..PERMUTATIONS)
        .filter(|_| {
            let mut sum = 0.0;
            for chunk in differences.chunks(64) {
                let mut exchanged = random.next_u64();
                for difference in chunk {
                    sum += if exchanged & 1 == 0 {
                        *difference
                    } else {
                        -difference
                    };
                    exchanged >>= 1;
                }
            }
            sum.abs() >= observed - ROUNDING
        })
        .count();
    (as_large + 1) as f64 / (PERMUTATIONS + 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `plus` questions at which the first is better, `minus` at which the second is.
    fn one_sided(plus: usize, minus: usize, same: usize) -> Difference {
        let a: Vec<f64> = (0..plus + minus + same)
            .map(|i| f64::from(i < plus))
            .collect();
        let b: Vec<f64> = (0..plus + minus + same)
            .map(|i| f64::from((plus..plus + minus).contains(&i)))
            .collect();
        compare(&a, &b)
    }

    #[test]
    fn p_is_that_of_the_exact_sign_test_on_binary_values() {
        // Two-sided binomial: 8 of 8 is 2/256, 7 of 8 is 18/256, 12 of 20 is 0.5034.
        for (plus, minus, exact) in [(8, 0, 2.0 / 256.0), (7, 1, 18.0 / 256.0), (12, 8, 0.5034)] {
            let found = one_sided(plus, minus, 30);
            assert!((found.p - exact).abs() < 0.015, "{found:?} and {exact}");
            assert_eq!((found.better, found.worse), (plus, minus));
        }
    }

    #[test]
    fn the_sign_of_the_difference_is_the_order_and_p_has_none() {
        let (ab, ba) = (one_sided(9, 2, 4), one_sided(2, 9, 4));
        assert_eq!(ab.difference, -ba.difference);
        assert!((ab.p - ba.p).abs() < 0.02);
    }

    #[test]
    fn equal_systems_do_not_differ() {
        let equal = one_sided(0, 0, 50);
        assert_eq!((equal.difference, equal.p, equal.better), (0.0, 1.0, 0));
        assert_eq!(compare(&[], &[]).p, 1.0);
    }

    #[test]
    fn a_clear_difference_is_as_significant_as_the_exchanges_can_show() {
        assert!(one_sided(60, 0, 0).p < 2e-4);
    }
}
