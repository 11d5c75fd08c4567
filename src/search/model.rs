//! What a search needs of a language model. The engine implements it with llama.cpp; the tests
//! with a table.

use crate::error::Result;

/// A sequence of tokens that the model holds, by a small number. Sequence 0 is the prefix: the
/// prompt up to the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Seq(pub u16);

impl Seq {
    /// The prefix that every question shares.
    pub const PREFIX: Self = Self(0);
}

/// Tokens to append to one sequence.
#[derive(Debug, Clone, Copy)]
pub struct Append<'a> {
    /// The sequence. Within one decode every sequence is appended to at most once.
    pub seq: Seq,
    /// Position of the first token: the sequence's length.
    pub position: u32,
    /// The tokens; at least one.
    pub tokens: &'a [u32],
    /// Logits are wanted after the tokens from this one on.
    pub first_row: usize,
}

/// How much one decode may hold.
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

/// A language model that continues several sequences at once.
pub trait LanguageModel {
    /// The limits that the caller keeps.
    fn capacity(&self) -> Capacity;

    /// Makes `to`, which is empty, a copy of `from`. Costs no computation and no memory for
    /// tokens.
    fn fork(&mut self, from: Seq, to: Seq) -> Result<()>;

    /// Empties `seq`.
    fn clear(&mut self, seq: Seq) -> Result<()>;

    /// Appends to sequences, all in one decode, and calls `row` with the index of the append, the
    /// index of the token in it and the logits over the vocabulary after that token, for every row
    /// that is wanted.
    ///
    /// # Errors
    ///
    /// What the model says, or the first error of `row`.
    fn decode(
        &mut self,
        appends: &[Append<'_>],
        row: &mut dyn FnMut(usize, usize, &[f32]) -> Result<()>,
    ) -> Result<()>;
}
