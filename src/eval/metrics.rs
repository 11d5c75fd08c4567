//! The measures of one ranking with one right answer.
//!
//! Their names and definitions are trec_eval's (`recall_K`, `ndcg_cut_K`, `recip_rank`), reduced
//! to the case of a single relevant document; `tests/metrics` compares them with pytrec_eval.

/// Recall at `k`: 1 when the right section is among the first `k`, else 0.
pub fn recall(rank: Option<usize>, k: usize) -> f64 {
    match rank {
        Some(rank) if rank <= k => 1.0,
        _ => 0.0,
    }
}

/// Normalised discounted cumulative gain at `k`: `1 / log2(1 + rank)`, and 0 beyond `k`. The ideal
/// ranking has its only relevant section first, so its gain is 1 (Järvelin and Kekäläinen 2002).
pub fn ndcg(rank: Option<usize>, k: usize) -> f64 {
    match rank {
        Some(rank) if rank <= k => 1.0 / ((1 + rank) as f64).log2(),
        _ => 0.0,
    }
}

/// Reciprocal rank: `1 / rank`, and 0 when the right section is not among the hits.
pub fn reciprocal_rank(rank: Option<usize>) -> f64 {
    rank.map_or(0.0, |rank| 1.0 / rank as f64)
}

/// The arithmetic mean; 0 of nothing.
pub fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0usize);
    for value in values {
        sum += value;
        count += 1;
    }
    match count {
        0 => 0.0,
        count => sum / count as f64,
    }
}

/// The `q` quantile of `values`, with `q` from 0 to 1: between two values, linearly (type 7 of
/// Hyndman and Fan 1996). It sorts them; 0 of nothing.
pub fn quantile(values: &mut [f64], q: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let Some(last) = values.len().checked_sub(1) else {
        return 0.0;
    };
    let at = q.clamp(0.0, 1.0) * last as f64;
    let below = at.floor() as usize;
    let above = (below + 1).min(last);
    values[below] + (values[above] - values[below]) * (at - below as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_relevant_section() {
        assert_eq!(recall(Some(1), 1), 1.0);
        assert_eq!(recall(Some(2), 1), 0.0);
        assert_eq!(recall(None, 3), 0.0);
        assert_eq!(ndcg(Some(1), 3), 1.0);
        assert_eq!(ndcg(Some(3), 3), 0.5);
        assert_eq!(ndcg(Some(4), 3), 0.0);
        assert_eq!(reciprocal_rank(Some(4)), 0.25);
        assert_eq!(reciprocal_rank(None), 0.0);
    }

    #[test]
    fn quantiles_lie_between_the_values() {
        let mut values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(quantile(&mut values, 0.5), 2.5);
        assert_eq!(quantile(&mut values, 0.0), 1.0);
        assert_eq!(quantile(&mut values, 1.0), 4.0);
        assert_eq!(quantile(&mut [], 0.5), 0.0);
        assert_eq!(mean([1.0, 2.0, 6.0]), 3.0);
    }
}
