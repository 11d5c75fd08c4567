//! The k best finished titles.

use super::Found;
use std::cmp::Ordering;

/// At most k titles, best first; between equals the earlier section.
#[derive(Debug, Default)]
pub(super) struct Ranking {
    k: usize,
    best: Vec<Found>,
}

impl Ranking {
    pub fn clear(&mut self, k: usize) {
        self.k = k.max(1);
        self.best.clear();
    }

    pub fn insert(&mut self, found: Found) {
        let at = self
            .best
            .partition_point(|other| order(other, &found) == Ordering::Less);
        if at < self.k {
            self.best.truncate(self.k - 1);
            self.best.insert(at, found);
        }
    }

    /// What a title has to reach to count: the k-th score, once there are k.
    pub fn bound(&self) -> f64 {
        match self.best.get(self.k - 1) {
            Some(last) => last.score,
            None => f64::NEG_INFINITY,
        }
    }

    pub fn best(&self) -> &[Found] {
        &self.best
    }
}

fn order(a: &Found, b: &Found) -> Ordering {
    b.score
        .total_cmp(&a.score)
        .then_with(|| a.section.cmp(&b.section))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_k_in_order_with_ties_by_section() {
        let mut ranking = Ranking::default();
        ranking.clear(3);
        for (section, score) in [(5, -2.0), (1, -3.0), (4, -1.0), (2, -2.0), (9, -9.0)] {
            ranking.insert(Found {
                section,
                score,
                log_prob: 0.0,
                log_legal: 0.0,
            });
        }
        let sections: Vec<u32> = ranking.best().iter().map(|found| found.section).collect();
        assert_eq!(sections, [4, 2, 5]);
        assert_eq!(ranking.bound(), -2.0);
    }
}
