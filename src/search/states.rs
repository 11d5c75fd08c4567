//! The evaluated nodes of one search: which of them the model still holds, and in which slot.

use super::frontier::Beginning;
use std::ops::Range;

/// An evaluated node and the chain that led to it.
#[derive(Debug)]
struct State {
    /// The state that it continues; itself for the root.
    parent: u32,
    /// The slot whose first tokens are the state's, while one has it.
    slot: Option<u16>,
    /// Its tokens after the parent's, in [`States::tokens`].
    tokens: Range<usize>,
    /// Number of tokens from the question to here, the opening's included.
    depth: u32,
    /// Number of beginnings in the frontier that continue it.
    children: u32,
}

/// What a slot of the model holds: one way through the trie, with all states along it.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    /// Number of tokens after the question; 0 when the slot is free.
    len: u32,
    /// States in it that the frontier continues.
    states: u32,
}

/// All states of one search. State 0 is the question's own, in slot 0, and stays.
#[derive(Debug, Default)]
pub(super) struct States {
    states: Vec<State>,
    tokens: Vec<u32>,
    slots: Vec<Held>,
    /// Tokens over all slots but the root's. What they share counts several times, so the model never
    /// holds more.
    live_tokens: usize,
}

impl States {
    pub const ROOT: u32 = 0;

    /// Forgets everything; the root is then at `depth`.
    pub fn clear(&mut self, depth: u32) {
        self.states.clear();
        self.tokens.clear();
        self.slots.clear();
        self.live_tokens = 0;
        self.slots.push(Held::default());
        self.states.push(State {
            parent: Self::ROOT,
            slot: Some(0),
            tokens: 0..0,
            depth,
            children: 0,
        });
    }

    /// Adds the state that continues `parent` by `tokens`, and whose tokens are the first in `slot`.
    pub fn push(&mut self, parent: u32, slot: u16, tokens: &[u32]) -> u32 {
        let id = self.states.len() as u32;
        let start = self.tokens.len();
        self.tokens.extend_from_slice(tokens);
        self.states.push(State {
            parent,
            slot: Some(slot),
            tokens: start..self.tokens.len(),
            depth: self.depth(parent) + tokens.len() as u32,
            children: 0,
        });
        self.slots[usize::from(slot)].states += 1;
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

    /// Counts one beginning less; after the last one nobody asks for the state any more.
    pub fn remove_child(&mut self, state: u32) {
        self.states[state as usize].children -= 1;
        self.leave_if_childless(state);
    }

    /// Lets go of `state`, unless a beginning continues it or it is the root.
    pub fn leave_if_childless(&mut self, state: u32) {
        if state == Self::ROOT || self.children(state) > 0 {
            return;
        }
        if let Some(slot) = self.states[state as usize].slot.take() {
            self.slots[usize::from(slot)].states -= 1;
        }
    }

    /// Whether `state` is all that its slot holds up to the end, so that the slot may go on from it.
    pub fn is_end_of_slot(&self, state: u32) -> bool {
        let held = |slot: u16| self.slots[usize::from(slot)].len;
        state != Self::ROOT && self.slot(state).map(held) == Some(self.depth(state))
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

    /// Tokens over all slots but the root's.
    pub fn live_tokens(&self) -> usize {
        self.live_tokens
    }

    /// Takes a free slot below `limit` for `len` tokens.
    pub fn take_slot(&mut self, limit: usize, len: u32) -> Option<u16> {
        let free = self.slots.iter().skip(1).position(|held| held.len == 0);
        let slot = free.map_or(self.slots.len(), |at| at + 1);
        if slot >= limit {
            return None;
        }
        if slot == self.slots.len() {
            self.slots.push(Held::default());
        }
        self.slots[slot] = Held { len, states: 0 };
        self.live_tokens += len as usize;
        Some(slot as u16)
    }

    /// Counts `tokens` more in `slot`.
    pub fn grow(&mut self, slot: u16, tokens: usize) {
        self.slots[usize::from(slot)].len += tokens as u32;
        self.live_tokens += tokens;
    }

    /// Frees the slots that no state needs and appends them to `cleared`.
    pub fn sweep(&mut self, cleared: &mut Vec<u16>) {
        for slot in 1..self.slots.len() {
            let Held { len, states } = self.slots[slot];
            if len > 0 && states == 0 {
                self.free(slot as u16);
                cleared.push(slot as u16);
            }
        }
    }

    /// Frees `slot`: what continues its states evaluates their tokens again.
    pub fn evict(&mut self, slot: u16) {
        for state in self.states.iter_mut().skip(1) {
            if state.slot == Some(slot) {
                state.slot = None;
            }
        }
        self.free(slot);
    }

    fn free(&mut self, slot: u16) {
        let held = std::mem::take(&mut self.slots[usize::from(slot)]);
        self.live_tokens -= held.len as usize;
    }

    /// The slot in use whose best beginning of those `left` is worst, of those that are not `busy`.
    pub fn worst(
        &self,
        left: impl Iterator<Item = Beginning> + Clone,
        busy: impl Fn(u16) -> bool,
    ) -> Option<u16> {
        let best = |slot: u16| {
            left.clone()
                .filter(|beginning| self.slot(beginning.state) == Some(slot))
                .map(|beginning| beginning.bound)
                .fold(f64::NEG_INFINITY, f64::max)
        };
        (1..self.slots.len() as u16)
            .filter(|&slot| self.slots[usize::from(slot)].len > 0 && !busy(slot))
            .min_by(|&a, &b| best(a).total_cmp(&best(b)).then(b.cmp(&a)))
    }
}
