//! What a search wants of the model next.

use std::ops::Range;

/// What to do with the model: empty slots, fork, then decode.
#[derive(Debug, Default)]
pub struct Plan {
    /// Tokens that follow the question in its own slot, since every title begins so; only in the
    /// plan that a search begins with.
    pub opening: Vec<u32>,
    /// Number of slots from 1 on that take the question and the opening too, for drafts; only in
    /// the plan that a search begins with.
    pub drafts: u16,
    /// Slots to empty, before anything else.
    pub cleared: Vec<u16>,
    /// What to evaluate. First all forks, then all tokens in one decode.
    pub steps: Vec<Step>,
    pub(super) tokens: Vec<u32>,
}

/// One beginning to evaluate.
#[derive(Debug, Clone)]
pub struct Step {
    /// The slot that the tokens go to. Slot 0 is the question's state.
    pub slot: u16,
    /// Number of slots after `slot` that take the same tokens; above 0 for drafts only.
    pub followers: u16,
    /// The slot to fork it from; the same as `slot` when it only grows.
    pub parent: u16,
    /// Number of tokens after the question that it takes over from there; the parent may hold more.
    pub parent_depth: u32,
    /// Logits are needed after the tokens from this one on.
    pub first_row: usize,
    /// In the plan's tokens.
    pub(super) tokens: Range<usize>,
}

impl Plan {
    /// The tokens of `step`, which is one of this plan's.
    pub fn tokens(&self, step: &Step) -> &[u32] {
        &self.tokens[step.tokens.clone()]
    }

    /// Number of tokens that it evaluates.
    pub fn token_count(&self) -> usize {
        self.opening.len() + self.tokens.len()
    }

    pub(super) fn clear(&mut self) {
        self.opening.clear();
        self.drafts = 0;
        self.cleared.clear();
        self.steps.clear();
        self.tokens.clear();
    }
}
