//! The evaluated nodes of one search: which of them the model still holds, and in which slot.

use super::frontier::Frontier;
use std::ops::Range;

/// An evaluated node and the chain that led to it.
#[derive(Debug)]
struct State {
    /// The state that it continues; itself for the root.
    parent: u32,
    /// Where it lives in the model, while it does.
    slot: Option<u16>,
    /// Its tokens after the parent's, in [`States::tokens`].
    tokens: Range<usize>,
    /// Number of tokens from the question to here, the opening's included.
    depth: u32,
    /// Number of beginnings in the frontier that continue it.
    children: u32,
}

/// All states of one search. State 0 is the question's own, in slot 0, and stays.
#[derive(Debug, Default)]
pub(super) struct States {
    states: Vec<State>,
    tokens: Vec<u32>,
    /// States that hold a slot, in no particular order.
    live: Vec<u32>,
    /// Slots below `next_slot` that are free again.
    free: Vec<u16>,
    next_slot: u16,
    /// Slots, and their depths, that the last plan still forked from: the model holds them until
    /// the next one.
    retired: Vec<(u16, u32)>,
    /// Tokens over all live and retired states but the root's. What they share counts several
    /// times, so the model never holds more.
    live_tokens: usize,
}

impl States {
    pub const ROOT: u32 = 0;

    /// Forgets everything; the root is then at `depth`.
    pub fn clear(&mut self, depth: u32) {
        self.states.clear();
        self.tokens.clear();
        self.live.clear();
        self.free.clear();
        self.retired.clear();
        self.next_slot = 1;
        self.live_tokens = 0;
        self.states.push(State {
            parent: Self::ROOT,
            slot: Some(0),
            tokens: 0..0,
            depth,
            children: 0,
        });
    }

    /// Adds the state in `slot` that continues `parent` by `tokens`.
    pub fn push(&mut self, parent: u32, slot: u16, tokens: &[u32]) -> u32 {
        let id = self.push_released(parent, tokens);
        self.states[id as usize].slot = Some(slot);
        self.live.push(id);
        self.live_tokens += self.depth(id) as usize;
        id
    }

    /// Adds the state that continues `parent` by `tokens` and that the model does not hold: what
    /// continues it evaluates them again.
    pub fn push_released(&mut self, parent: u32, tokens: &[u32]) -> u32 {
        let id = self.states.len() as u32;
        let start = self.tokens.len();
        self.tokens.extend_from_slice(tokens);
        let depth = self.depth(parent) + tokens.len() as u32;
        self.states.push(State {
            parent,
            slot: None,
            tokens: start..self.tokens.len(),
            depth,
            children: 0,
        });
        id
    }

    pub fn depth(&self, state: u32) -> u32 {
        self.states[state as usize].depth
    }

    pub fn slot(&self, state: u32) -> Option<u16> {
        self.states[state as usize].slot
    }

    pub fn children(&self, state: u32) -> u32 {
        self.states[state as usize].children
    }

    pub fn add_child(&mut self, state: u32) {
        self.states[state as usize].children += 1;
    }

    pub fn remove_child(&mut self, state: u32) {
        self.states[state as usize].children -= 1;
    }

    /// `state`, or the nearest state before it that the model still holds. The root always is.
    pub fn nearest_live(&self, mut state: u32) -> u32 {
        while self.slot(state).is_none() {
            state = self.states[state as usize].parent;
        }
        state
    }

    /// Appends to `out` the tokens that lead from `ancestor` to `state`.
    pub fn tokens_between(&self, ancestor: u32, state: u32, out: &mut Vec<u32>) {
        let start = out.len();
        let mut at = state;
        // From the last chain to the first, each reversed; reversing all of it puts it right.
        while at != ancestor {
            let state = &self.states[at as usize];
            out.extend(self.tokens[state.tokens.clone()].iter().rev());
            at = state.parent;
        }
        out[start..].reverse();
    }

    /// Tokens over all live and retired states but the root's.
    pub fn live_tokens(&self) -> usize {
        self.live_tokens
    }

    /// A free slot below `limit`.
    pub fn take_slot(&mut self, limit: usize) -> Option<u16> {
        if let Some(slot) = self.free.pop() {
            return Some(slot);
        }
        let slot = self.next_slot;
        (usize::from(slot) < limit).then(|| {
            self.next_slot += 1;
            slot
        })
    }

    /// Gives back a slot that no state holds.
    pub fn free_slot(&mut self, slot: u16) {
        self.free.push(slot);
    }

    /// Takes its slot from `state`, which is not the root.
    pub fn release(&mut self, state: u32) -> Option<u16> {
        let slot = self.states[state as usize].slot.take()?;
        self.live_tokens -= self.depth(state) as usize;
        self.live.retain(|&live| live != state);
        Some(slot)
    }

    /// Lets go of `state`, unless it is the root; its slot is free after the next
    /// [`States::collect_retired`].
    pub fn retire(&mut self, state: u32) {
        if state == Self::ROOT {
            return;
        }
        let depth = self.depth(state);
        if let Some(slot) = self.release(state) {
            self.retired.push((slot, depth));
            self.live_tokens += depth as usize;
        }
    }

    /// Takes a slot for `depth` tokens that no state stands for; it is free after the next
    /// [`States::collect_retired`].
    pub fn lend_slot(&mut self, limit: usize, depth: u32) -> Option<u16> {
        let slot = self.take_slot(limit)?;
        self.retired.push((slot, depth));
        self.live_tokens += depth as usize;
        Some(slot)
    }

    /// Frees the retired slots and appends them to `cleared`.
    pub fn collect_retired(&mut self, cleared: &mut Vec<u16>) {
        for (slot, depth) in self.retired.drain(..) {
            self.live_tokens -= depth as usize;
            self.free.push(slot);
            cleared.push(slot);
        }
    }

    /// The live state whose best beginning in `frontier` is worst, of those that are not `busy`.
    pub fn worst(&self, frontier: &Frontier, busy: impl Fn(u32) -> bool) -> Option<u32> {
        let best = |state: u32| {
            frontier
                .iter()
                .filter(|beginning| beginning.state == state)
                .map(|beginning| beginning.bound)
                .fold(f64::NEG_INFINITY, f64::max)
        };
        self.live
            .iter()
            .copied()
            .filter(|&state| !busy(state))
            .min_by(|&a, &b| best(a).total_cmp(&best(b)).then(b.cmp(&a)))
    }
}
