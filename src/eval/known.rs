//! What is known of a question's leaves after a search, and which ranking follows from it for any
//! weight of the lexical evidence.

use std::collections::HashMap;

/// Exact log-probabilities of some leaves, a bound for the others, and the lexical scores of all.
#[derive(Debug, Clone)]
pub struct Known {
    log_probs: HashMap<u32, f64>,
    /// No other leaf has a higher log-probability; negative infinity when there is no other.
    bound: f64,
    /// By section id.
    lexical: Vec<f32>,
}

impl Known {
    /// After a search without lexical evidence that found `best`, the most probable leaves and
    /// their log-probabilities, of `leaves` leaves. `lexical` has the lexical score of each section
    /// by its id.
    pub fn new(best: &[(u32, f64)], leaves: usize, lexical: Vec<f32>) -> Self {
        let last = best
            .iter()
            .map(|(_, log_prob)| *log_prob)
            .fold(0.0, f64::min);
        Self {
            log_probs: best.iter().copied().collect(),
            bound: if best.len() < leaves {
                last
            } else {
                f64::NEG_INFINITY
            },
            lexical,
        }
    }

    /// Takes in what another search has found.
    pub fn learn(&mut self, found: impl IntoIterator<Item = (u32, f64)>) {
        self.log_probs.extend(found);
    }

    /// The `count` best leaves by log-probability + `weight` x lexical score, best first: what the
    /// search with that weight would find. `None` when a leaf whose log-probability is not known
    /// might be among them.
    pub fn best(&self, weight: f32, count: usize) -> Option<Vec<u32>> {
        let prior = |section: u32| {
            let lexical = self
                .lexical
                .get(section as usize)
                .copied()
                .unwrap_or_default();
            f64::from(weight * lexical)
        };
        let mut ranked: Vec<(u32, f64)> = self
            .log_probs
            .iter()
            .map(|(section, log_prob)| (*section, log_prob + prior(*section)))
            .collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        ranked.truncate(count);
        let others = (0..self.lexical.len() as u32)
            .filter(|section| !self.log_probs.contains_key(section))
            .map(|section| self.bound + prior(section))
            .fold(f64::NEG_INFINITY, f64::max);
        let last = match ranked.len() < count {
            true => f64::NEG_INFINITY,
            false => ranked.last()?.1,
        };
        // At a tie the order of the sections would decide, which the bound does not know.
        let certain = others < last || self.bound == f64::NEG_INFINITY;
        certain.then(|| ranked.into_iter().map(|(section, _)| section).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_certain_is_right(
            leaves in prop::collection::vec((-20.0f64..0.0, 0.0f32..15.0), 1..25),
            known in 1usize..25,
            weight in 0.0f32..2.0,
            count in 1usize..4,
        ) {
            let mut by_log_prob: Vec<(u32, f64)> =
                (0..).zip(&leaves).map(|(id, (log_prob, _))| (id, *log_prob)).collect();
            by_log_prob.sort_by(|a, b| b.1.total_cmp(&a.1));
            by_log_prob.truncate(known);
            let lexical: Vec<f32> = leaves.iter().map(|(_, lexical)| *lexical).collect();
            let known = Known::new(&by_log_prob, leaves.len(), lexical);
            let mut expected: Vec<(u32, f64)> = (0..)
                .zip(&leaves)
                .map(|(id, (log_prob, lexical))| (id, log_prob + f64::from(weight * lexical)))
                .collect();
            expected.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            let expected: Vec<u32> = expected.into_iter().take(count).map(|(id, _)| id).collect();
            if let Some(best) = known.best(weight, count) {
                prop_assert_eq!(best, expected);
            } else {
                prop_assert!(by_log_prob.len() < leaves.len());
            }
        }
    }

    #[test]
    fn a_leaf_that_lexical_evidence_may_lift_makes_it_uncertain() {
        let mut known = Known::new(&[(0, -1.0), (1, -4.0)], 3, vec![0.0, 0.0, 10.0]);
        assert_eq!(known.best(0.0, 1), Some(vec![0]));
        assert_eq!(known.best(0.2, 1), Some(vec![0]));
        assert_eq!(known.best(1.0, 1), None);
        known.learn([(2, -6.0)]);
        assert_eq!(known.best(0.0, 3), Some(vec![0, 1, 2]));
        assert_eq!(known.best(1.0, 1), Some(vec![2]));
    }
}
