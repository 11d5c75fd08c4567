//! The beginnings of titles that are scored and not evaluated yet, best first.

use crate::index::trie::NodeId;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The beginning of at least one title.
#[derive(Debug, Clone, Copy)]
pub(super) struct Beginning {
    /// What no title that begins so can score above.
    pub bound: f64,
    /// Sum of the log-probabilities of its tokens.
    pub log_prob: f64,
    /// Logarithm of the mass on legal tokens along it.
    pub legal: f64,
    /// The node that it leads to.
    pub node: NodeId,
    /// Its last token.
    pub token: u32,
    /// The state of everything before its last token.
    pub state: u32,
}

impl Ord for Beginning {
    /// By bound; between equals the one that stands first in the trie, so that a search always
    /// takes the same way.
    fn cmp(&self, other: &Self) -> Ordering {
        self.bound
            .total_cmp(&other.bound)
            .then_with(|| other.node.cmp(&self.node))
    }
}

impl PartialOrd for Beginning {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Beginning {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Beginning {}

/// A priority queue of beginnings.
#[derive(Debug, Default)]
pub(super) struct Frontier(BinaryHeap<Beginning>);

impl Frontier {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn push(&mut self, beginning: Beginning) {
        self.0.push(beginning);
    }

    /// The best beginning, unless its bound is below `score`. One that equals it counts: it may
    /// lead to a title that ties and stands earlier in the document.
    pub fn pop_at_least(&mut self, score: f64) -> Option<Beginning> {
        match self.0.peek() {
            Some(best) if best.bound >= score => self.0.pop(),
            _ => None,
        }
    }

    /// Takes out the beginning that leads to `node`.
    pub fn take(&mut self, node: NodeId) -> Option<Beginning> {
        let found = self.0.iter().find(|b| b.node == node).copied()?;
        self.0.retain(|b| b.node != node);
        Some(found)
    }

    /// Every beginning, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Beginning> + Clone {
        self.0.iter()
    }
}
