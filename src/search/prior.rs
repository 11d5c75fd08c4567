//! What a question's other evidence adds to the scores of titles.

use crate::error::{Error, Result};
use crate::index::trie::{NodeId, Trie};

/// The prior of one search, for every node of the trie the best of the titles below it. The memory
/// is used again by the next search.
#[derive(Debug, Default)]
pub(super) struct Prior {
    /// By node; empty when there is no prior.
    best: Vec<f32>,
}

impl Prior {
    /// Takes the prior of each section, by id; sections that it is too short for have 0.
    pub fn set(&mut self, trie: Trie<'_>, prior: &[f32]) -> Result<()> {
        self.best.clear();
        if prior.is_empty() {
            return Ok(());
        }
        if let Some(bad) = prior.iter().find(|prior| !prior.is_finite()) {
            return Err(Error::Internal(format!("a prior is {bad}, not finite")));
        }
        let of = |section: u32| prior.get(section as usize).copied().unwrap_or_default();
        trie.fold_up(of, f32::max, &mut self.best);
        Ok(())
    }

    /// The largest prior of the titles that lead through `node`; the title's own when it is only
    /// one.
    pub fn best_below(&self, node: NodeId) -> f64 {
        match self.best.get(node.0 as usize) {
            Some(&best) => f64::from(best),
            None => 0.0,
        }
    }
}
