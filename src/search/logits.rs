//! Logits to log-probabilities.

use crate::error::{Error, Result};

/// Lanes that the compiler may keep in vector registers.
const LANES: usize = 16;

/// `ln(sum(exp(logits)))`: what turns a logit into a log-probability under the full softmax.
///
/// Computed in single precision around the maximum and summed in double; the error is below 1e-6,
/// far below the noise of a quantised model. The order of the sum is fixed, so the same logits
/// always give the same bits.
///
/// # Errors
///
/// [`Error::Decode`] when the logits hold a NaN, a positive infinity, or nothing finite at all.
pub fn log_sum_exp(logits: &[f32]) -> Result<f64> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: this processor has AVX2.
        return unsafe { with_avx2(logits) };
    }
    with_any(logits)
}

/// The same operations in the same order, so the same bits, in wider registers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2(logits: &[f32]) -> Result<f64> {
    with_any(logits)
}

#[inline(always)]
fn with_any(logits: &[f32]) -> Result<f64> {
    let (lanes, rest) = logits.as_chunks::<LANES>();
    let mut max = [f32::NEG_INFINITY; LANES];
    for lane in lanes {
        for (max, &x) in max.iter_mut().zip(lane) {
            *max = if x > *max { x } else { *max };
        }
    }
    let max = max
        .iter()
        .chain(rest)
        .copied()
        .fold(f32::NEG_INFINITY, f32::max);
    if !max.is_finite() {
        return Err(bad_logits());
    }
    let mut total = 0f64;
    // Sums of a few hundred terms lose nothing in single precision; the total is in double.
    for block in lanes.chunks(32) {
        let mut sums = [0f32; LANES];
        for lane in block {
            for (sum, &x) in sums.iter_mut().zip(lane) {
                *sum += exp(x - max);
            }
        }
        total += sums.iter().map(|&sum| f64::from(sum)).sum::<f64>();
    }
    total += rest.iter().map(|&x| f64::from(exp(x - max))).sum::<f64>();
    match total.is_finite() {
        // At least the maximum itself contributed 1.
        true => Ok(f64::from(max) + total.ln()),
        false => Err(bad_logits()),
    }
}

fn bad_logits() -> Error {
    Error::Decode("the model gave logits that are not numbers; its file may be damaged".to_owned())
}

/// `exp(x)` for `x <= 0`; written so that the compiler vectorises it, with few instructions, since
/// it runs once for every token of the vocabulary. NaN stays NaN, so that damage is noticed.
#[inline(always)]
fn exp(x: f32) -> f32 {
    // Below -87 the result would be subnormal; at -87 it counts for nothing too.
    let clamped = if x < -87.0 { -87.0 } else { x };
    // exp(x) = 2^n * 2^f with n whole and |f| <= 1/2. Adding 1.5 * 2^23 rounds to a whole number
    // and leaves it in the low bits.
    let exponent = clamped * std::f32::consts::LOG2_E;
    let rounded = exponent + 12_582_912.0;
    let f = exponent - (rounded - 12_582_912.0);
    // The polynomial with the least relative error (Remez): 1.6e-7.
    let p = 1.000_000_1
        + f * (0.693_146_94
            + f * (0.240_221_2 + f * (0.055_507_13 + f * (0.009_675_541 + f * 0.001_327_647_2))));
    // The shift drops everything but n; 127 is the bias of an exponent.
    let scale = f32::from_bits((rounded.to_bits() << 23).wrapping_add(127 << 23));
    p * scale
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slow(logits: &[f32]) -> f64 {
        let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f64 = logits
            .iter()
            .map(|&x| (f64::from(x) - f64::from(max)).exp())
            .sum();
        f64::from(max) + sum.ln()
    }

    proptest! {
        #[test]
        fn it_equals_the_definition(logits in prop::collection::vec(-60f32..60.0, 1..3000)) {
            let fast = log_sum_exp(&logits).expect("finite");
            prop_assert!((fast - slow(&logits)).abs() < 1e-6, "{fast} {}", slow(&logits));
            prop_assert_eq!(fast.to_bits(), with_any(&logits).expect("finite").to_bits());
        }
    }

    #[test]
    fn impossible_tokens_count_for_nothing() {
        let value = log_sum_exp(&[f32::NEG_INFINITY, 1.0, -1000.0]).expect("finite");
        assert!((value - 1.0).abs() < 1e-6);
    }

    #[test]
    fn damage_is_an_error_wherever_it_stands() {
        for at in [0, 5, 16, 39] {
            for bad in [f32::NAN, f32::INFINITY] {
                let mut logits = vec![0.5f32; 40];
                logits[at] = bad;
                assert!(log_sum_exp(&logits).is_err(), "{bad} at {at}");
            }
        }
        assert!(log_sum_exp(&[]).is_err());
        assert!(log_sum_exp(&[f32::NEG_INFINITY; 20]).is_err());
    }
}
