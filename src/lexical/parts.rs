//! What a leaf has several of, each a document of its own: its passages, its known questions.

use super::Said;
use super::bm25::{Bm25, Counter};

/// How a leaf's parts make its score.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    /// Number of a leaf's best parts whose mean counts; a leaf that has fewer lacks them.
    pub best: usize,
    /// What that mean is multiplied by.
    pub weight: f32,
}

/// Collects the parts of leaves, one leaf after the other.
#[derive(Debug)]
pub(super) struct Collector {
    counter: Counter,
    starts: Vec<u32>,
}

impl Collector {
    pub fn new() -> Self {
        Self {
            counter: Counter::default(),
            starts: vec![0],
        }
    }

    /// One more word of the part under way.
    pub fn count(&mut self, term: u32) {
        self.counter.count(term);
    }

    /// Ends the part under way.
    pub fn end_part(&mut self) {
        self.counter.end_document();
    }

    /// Ends the leaf under way.
    pub fn end_leaf(&mut self) {
        self.starts.push(self.counter.documents() as u32);
    }

    /// Number of parts.
    pub fn parts(&self) -> usize {
        self.counter.documents()
    }

    pub fn finish(self, rule: Rule) -> Parts {
        Parts {
            bm25: self.counter.finish(),
            starts: self.starts,
            rule,
        }
    }
}

/// The parts of all leaves.
#[derive(Debug)]
pub(super) struct Parts {
    bm25: Bm25,
    /// Where each leaf's parts begin, and the end of the last one's.
    starts: Vec<u32>,
    rule: Rule,
}

impl Parts {
    /// Adds to the score of each leaf, in `sections`, what its parts score for what a question
    /// `said`; `leaves` are the leaves' places there. `memory` is for the parts' scores.
    pub fn add(&self, said: &[Said], leaves: &[u32], sections: &mut [f32], memory: &mut Vec<f32>) {
        let Rule { best, weight } = self.rule;
        memory.clear();
        memory.resize(
            self.starts.last().copied().unwrap_or_default() as usize,
            0.0,
        );
        for said in said {
            for posting in self.bm25.postings(said.term) {
                memory[posting.document as usize] += said.times * posting.weight;
            }
        }
        for (leaf, bounds) in leaves.iter().zip(self.starts.windows(2)) {
            let parts = &mut memory[bounds[0] as usize..bounds[1] as usize];
            sections[*leaf as usize] += weight * sum_of_best(parts, best) / best as f32;
        }
    }
}

/// The sum of the `count` highest scores, which it puts first.
fn sum_of_best(scores: &mut [f32], count: usize) -> f32 {
    if scores.len() > count {
        scores.select_nth_unstable_by(count - 1, |a, b| b.total_cmp(a));
    }
    let count = scores.len().min(count);
    let best = &mut scores[..count];
    // Sums in one order are the same bits every time.
    best.sort_unstable_by(|a, b| b.total_cmp(a));
    best.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_counts_the_mean_of_its_best_parts_and_lacks_those_it_has_not() {
        let mut collector = Collector::new();
        // Each part's words; the first leaf has three parts, the second one, the third none.
        for leaf in [&[&[0, 1][..], &[0, 0], &[1, 1]][..], &[&[0, 1]], &[]] {
            for part in leaf {
                part.iter().for_each(|&term| collector.count(term));
                collector.end_part();
            }
            collector.end_leaf();
        }
        assert_eq!(collector.parts(), 4);
        let rule = Rule {
            best: 2,
            weight: 3.0,
        };
        let parts = collector.finish(rule);
        let once = parts.bm25.postings(0)[0].weight;
        let twice = parts.bm25.postings(0)[1].weight;
        // The sections of the leaves are 1, 2 and 4; what is there already stays.
        let (mut sections, mut memory) = ([0.5; 5], vec![9.0; 7]);
        let said = Said {
            term: 0,
            times: 1.0,
        };
        parts.add(&[said], &[1, 2, 4], &mut sections, &mut memory);
        let expected = [
            0.5,
            0.5 + 3.0 * (twice + once) / 2.0,
            0.5 + 3.0 * once / 2.0,
            0.5,
            0.5,
        ];
        assert_eq!(sections, expected);
    }
}
