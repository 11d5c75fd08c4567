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

/// `exp(x)` for `x <= 0`, to 2e-7 relative; written so that the compiler vectorises it. NaN stays
/// NaN, so that damage is noticed.
#[inline]
fn exp(x: f32) -> f32 {
    // exp(x) = 2^n * exp(r) with n whole and |r| <= ln(2)/2; below -87 the result is subnormal
    // and counts for nothing.
    let clamped = if x < -87.0 { -87.0 } else { x };
    let n = (clamped * std::f32::consts::LOG2_E + 12_582_912.0) - 12_582_912.0;
    // ln(2) in two parts, so that r keeps its low bits (Cody and Waite 1980).
    let r = (clamped - n * 0.693_359_4) - n * -2.121_944_4e-4;
    // Taylor's polynomial; at |r| <= 0.35 the next term is below 1e-8.
    let p = 1.0
        + r * (1.0
            + r * (0.5 + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * (1.0 / 120.0 + r / 720.0)))));
    let scale = f32::from_bits((((n as i32).wrapping_add(127)) << 23) as u32);
    if x < -87.0 { 0.0 } else { p * scale }
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
