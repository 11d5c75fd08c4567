//! Where a search will probably end, as other evidence has it. It decides what is evaluated early, and
//! never what is found.

use crate::index::trie::{NodeId, Trie};

/// Least probability of what is evaluated before its turn: below it, what is saved is less than what is
/// wasted.
const LEAST: f32 = 0.2;

/// The outlook of one search: for every node of the trie the logarithm of the evidence for the titles
/// below it. The memory is used again by the next search.
#[derive(Debug, Default)]
pub(super) struct Outlook {
    /// By node; empty when there is no evidence.
    mass: Vec<f32>,
}

impl Outlook {
    /// Takes the evidence for each section, by id: logarithms of probabilities, up to a constant.
    /// Sections that it is too short for have 0, and so have those whose number is not finite.
    pub fn set(&mut self, trie: Trie<'_>, expected: &[f32]) {
        self.mass.clear();
        if expected.is_empty() {
            return;
        }
        let of = |section: u32| {
            let value = expected.get(section as usize).copied();
            value.filter(|value| value.is_finite()).unwrap_or_default()
        };
        trie.fold_up(of, log_add, &mut self.mass);
    }

    /// Whether there is evidence.
    pub fn is_known(&self) -> bool {
        !self.mass.is_empty()
    }

    /// The likeliest child of `node`.
    fn likeliest(&self, trie: Trie<'_>, node: NodeId) -> Option<(u32, NodeId)> {
        let mass = |child: NodeId| self.mass(child);
        // Of equals the first.
        trie.children(node).reduce(|best, other| {
            if mass(other.1) > mass(best.1) {
                other
            } else {
                best
            }
        })
    }

    /// The likeliest title below `node`: the node that it ends at, and the logarithm of its part of the
    /// evidence there. None when there is no evidence.
    pub fn title_below(&self, trie: Trie<'_>, node: NodeId) -> Option<(NodeId, f64)> {
        if !self.is_known() {
            return None;
        }
        let mut end = node;
        while let Some((_, child)) = self.likeliest(trie, end) {
            end = child;
        }
        Some((end, f64::from(self.mass(end) - self.mass(node))))
    }

    /// The next step from `at` on the way to the likeliest title below `from`, unless it is too
    /// unlikely to be taken early, or ends the title.
    pub fn step(&self, trie: Trie<'_>, from: NodeId, at: NodeId) -> Option<(u32, NodeId)> {
        let (token, child) = self.likeliest(trie, at)?;
        let likely = self.mass(child) - self.mass(from) >= LEAST.ln();
        (likely && trie.section(child).is_none()).then_some((token, child))
    }

    fn mass(&self, node: NodeId) -> f32 {
        let mass = self.mass.get(node.0 as usize).copied();
        mass.unwrap_or(f32::NEG_INFINITY)
    }
}

/// The logarithm of the sum of what `a` and `b` are logarithms of.
fn log_add(a: f32, b: f32) -> f32 {
    let (most, least) = (a.max(b), a.min(b));
    if least == f32::NEG_INFINITY {
        return most;
    }
    most + (least - most).exp().ln_1p()
}
