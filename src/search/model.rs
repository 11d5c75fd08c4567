//! What a search needs of a language model. The engine implements it with llama.cpp; the tests
//! with a table.

use crate::error::{Error, Result};
use std::ops::Range;

/// A sequence of tokens that the model holds, by a small number. Sequence 0 is the prefix: the
/// prompt up to the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Seq(pub u16);

impl Seq {
    /// The prefix that every question shares.
    pub const PREFIX: Self = Self(0);
}

/// How much a model may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Sequences, the prefix included.
    pub sequences: u16,
    /// Tokens in one decode.
    pub batch: usize,
    /// Rows of logits in one decode.
    pub rows: usize,
    /// Tokens over all sequences; those that sequences share count once.
    pub context: usize,
}

impl Capacity {
    /// Number of tokens, each with a row, that a decode has room for beside a question of `tokens`.
    pub fn spare(&self, tokens: usize) -> usize {
        let rows = self.rows.saturating_sub(1);
        self.batch.saturating_sub(tokens).min(rows)
    }
}

/// Tokens to append to a sequence, or to several that hold the same.
#[derive(Debug, Clone)]
pub struct Append {
    /// The sequence. Within one decode a sequence may be appended to again.
    pub seq: Seq,
    /// Number of sequences after `seq` that take the same tokens, for which the model computes and
    /// remembers them only once. Before, they hold the same as `seq`.
    pub followers: u16,
    /// Position of the first token: the sequence's length.
    pub position: u32,
    /// Logits are wanted after the tokens from this one on.
    pub first_row: usize,
    tokens: Range<usize>,
}

/// What one decode appends to several sequences. Its memory is kept when it is cleared.
#[derive(Debug, Default)]
pub struct Batch {
    tokens: Vec<u32>,
    appends: Vec<Append>,
    rows: usize,
}

impl Batch {
    /// Empties the batch.
    pub fn clear(&mut self) {
        self.tokens.clear();
        self.appends.clear();
        self.rows = 0;
    }

    /// Appends `tokens`, of which there is at least one, to `seq`, whose length is `position`;
    /// logits are wanted after the tokens from `first_row` on.
    pub fn push(&mut self, seq: Seq, position: u32, tokens: &[u32], first_row: usize) {
        self.push_shared(seq, 0, position, tokens, first_row);
    }

    /// The same for `seq` and the `followers` after it, which hold the same tokens.
    pub fn push_shared(
        &mut self,
        seq: Seq,
        followers: u16,
        position: u32,
        tokens: &[u32],
        first_row: usize,
    ) {
        let start = self.tokens.len();
        self.tokens.extend_from_slice(tokens);
        self.rows += tokens.len().saturating_sub(first_row);
        self.appends.push(Append {
            seq,
            followers,
            position,
            first_row,
            tokens: start..self.tokens.len(),
        });
    }

    /// Appends a question, whose logits are wanted after the last token, and the opening of titles
    /// after it, each of whose is.
    pub fn push_opened(
        &mut self,
        seq: Seq,
        followers: u16,
        position: u32,
        question: &[u32],
        opening: &[u32],
    ) {
        self.push_shared(seq, followers, position, question, question.len() - 1);
        if !opening.is_empty() {
            let position = position + question.len() as u32;
            self.push_shared(seq, followers, position, opening, 0);
        }
    }

    /// What is appended, in order.
    pub fn appends(&self) -> &[Append] {
        &self.appends
    }

    /// The tokens of `append`, which is one of this batch's.
    pub fn tokens(&self, append: &Append) -> &[u32] {
        &self.tokens[append.tokens.clone()]
    }

    /// The sequences that take the tokens of `append`.
    pub fn seqs(append: &Append) -> impl Iterator<Item = Seq> + use<> {
        (append.seq.0..=append.seq.0.saturating_add(append.followers)).map(Seq)
    }

    /// Number of tokens.
    pub fn token_count(&self) -> usize {
        self.tokens.len()
    }

    /// Number of rows of logits.
    pub fn row_count(&self) -> usize {
        self.rows
    }

    /// Whether nothing is appended.
    pub fn is_empty(&self) -> bool {
        self.appends.is_empty()
    }

    /// Whether `tokens` more tokens and `rows` more rows stay within `capacity`.
    pub fn has_room(&self, capacity: Capacity, tokens: usize, rows: usize) -> bool {
        self.tokens.len() + tokens <= capacity.batch && self.rows + rows <= capacity.rows
    }
}

/// A language model that continues several sequences at once.
pub trait LanguageModel {
    /// The limits that the caller keeps.
    fn capacity(&self) -> Capacity;

    /// Makes `to`, which is empty, a copy of the first `length` tokens of `from`. Costs no computation
    /// and no memory for tokens.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Internal`] when a limit is not kept.
    fn fork(&mut self, from: Seq, to: Seq, length: u32) -> Result<()>;

    /// Empties `seq`.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Internal`] when a limit is not kept.
    fn clear(&mut self, seq: Seq) -> Result<()>;

    /// Appends to sequences, all in one decode, and calls `row` with the index of the append and
    /// the logits over the vocabulary, for every row that is wanted and in order.
    ///
    /// # Errors
    ///
    /// What the model says, or the first error of `row`. After an error of the model every
    /// sequence is empty, the prefix too.
    fn decode(
        &mut self,
        batch: &Batch,
        row: &mut dyn FnMut(usize, &[f32]) -> Result<()>,
    ) -> Result<()>;

    /// A number for all that a [state](LanguageModel::state) depends on beside the tokens: weights,
    /// number types, whatever computes. Under equal keys the same tokens have the same state. `None`
    /// when states cannot be kept.
    fn state_key(&self) -> Option<u128> {
        None
    }

    /// What the model remembers of `seq`, to be given back with [`LanguageModel::set_state`].
    ///
    /// # Errors
    ///
    /// [`crate::Error::Internal`] when it cannot be had.
    fn state(&mut self, seq: Seq) -> Result<Vec<u8>> {
        Err(Error::Internal(format!("no state of sequence {}", seq.0)))
    }

    /// Makes `seq`, which is empty, what it was when it had `tokens` tokens and this `state`.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Internal`] when the state does not fit. `seq` is then still empty; so are all
    /// others if it was found out late.
    fn set_state(&mut self, seq: Seq, state: &[u8], tokens: u32) -> Result<()> {
        let (seq, len) = (seq.0, state.len());
        let what = format!("a state of {tokens} tokens, {len} bytes, for sequence {seq}");
        Err(Error::Internal(what))
    }
}
