//! The table of contents in the model's memory: decoded piece by piece, or read from the warm file, and
//! written there.

use super::super::queue::Outcome;
use super::super::warm::WarmFile;
use crate::error::Result;
use crate::search::model::{Batch, LanguageModel, Seq};
use std::thread::JoinHandle;
use std::time::Instant;

/// Sequence 0 of a model.
pub(super) struct Prefix<'a> {
    tokens: &'a [u32],
    /// How many of them the model holds.
    held: usize,
    /// How they got there.
    pieces: Vec<Piece>,
    warm: Option<Warm>,
}

/// One decode of a prefill, or the reading of a warm file.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    tokens: u32,
    restored: bool,
    pub started: Instant,
    ended: Instant,
}

/// A worker's warm file. It is read at most once and written at most once.
struct Warm {
    file: WarmFile,
    read: bool,
    /// It has what the model holds, or is being written, or cannot be.
    kept: bool,
    writer: Option<JoinHandle<()>>,
}

impl Piece {
    /// Counts it for a question that waited from `since` on.
    pub fn count(&self, outcome: &mut Outcome, since: Instant) {
        match self.restored {
            true => outcome.restored_tokens += self.tokens,
            false => outcome.prefix_tokens += self.tokens,
        }
        outcome.prefill += self.ended - self.started.max(since);
    }
}

impl<'a> Prefix<'a> {
    /// `tokens`, of which the model holds none.
    pub fn new(tokens: &'a [u32]) -> Self {
        Self {
            tokens,
            held: 0,
            pieces: Vec::new(),
            warm: None,
        }
    }

    /// Where it is read from, or else written to.
    pub fn set_file(&mut self, file: Option<WarmFile>) {
        self.warm = file.map(|file| Warm {
            file,
            read: false,
            kept: false,
            writer: None,
        });
    }

    /// Whether the model holds all of it.
    pub fn is_whole(&self) -> bool {
        self.held == self.tokens.len()
    }

    /// Counts the pieces for a question that waited from `since` on.
    pub fn count(&self, outcome: &mut Outcome, since: Instant) {
        for piece in self.pieces.iter().filter(|piece| piece.ended > since) {
            piece.count(outcome, since);
        }
    }

    /// Takes it out of the warm file, if nothing is held yet, there is a file and the model takes it.
    pub fn begin(&mut self, model: &mut impl LanguageModel) -> Option<Piece> {
        if self.held > 0 {
            return None;
        }
        self.pieces.clear();
        // Not again after a decode that failed: what the file holds may be the reason.
        let warm = self.warm.as_mut().filter(|warm| !warm.read)?;
        warm.read = true;
        let started = Instant::now();
        let state = warm.file.read()?;
        let tokens = self.tokens.len() as u32;
        match model.set_state(Seq::PREFIX, &state, tokens) {
            Ok(()) => {
                warm.kept = true;
                Some(self.advance(tokens, true, started))
            }
            Err(error) => {
                warm.file.refused(&error);
                None
            }
        }
    }

    /// Decodes the next of its tokens, as many as a batch takes.
    ///
    /// # Errors
    ///
    /// What the model says.
    pub fn decode_next(
        &mut self,
        model: &mut impl LanguageModel,
        batch: &mut Batch,
    ) -> Result<Piece> {
        let started = Instant::now();
        let rest = &self.tokens[self.held..];
        let piece = &rest[..rest.len().min(model.capacity().batch.max(1))];
        batch.clear();
        batch.push(Seq::PREFIX, self.held as u32, piece, piece.len());
        model.decode(batch, &mut |_, _| Ok(()))?;
        Ok(self.advance(piece.len() as u32, false, started))
    }

    /// Counts tokens that were got since `started`.
    fn advance(&mut self, tokens: u32, restored: bool, started: Instant) -> Piece {
        self.held += tokens as usize;
        let piece = Piece {
            tokens,
            restored,
            started,
            ended: Instant::now(),
        };
        self.pieces.push(piece);
        piece
    }

    /// Has it written to the warm file, once it is whole and unless it came from there.
    pub fn keep(&mut self, model: &mut impl LanguageModel) {
        let whole = self.is_whole();
        let Some(warm) = self.warm.as_mut().filter(|warm| whole && !warm.kept) else {
            return;
        };
        warm.kept = true;
        if let Some(writer) = warm.writer.take() {
            // It has had a prefill's time, and who ends waits for one writer only.
            let _ = writer.join();
        }
        match model.state(Seq::PREFIX) {
            Ok(state) => warm.writer = warm.file.write_aside(state),
            Err(error) => warm.file.not_kept(&error),
        }
    }

    /// The model may hold anything now.
    pub fn lose(&mut self) {
        self.held = 0;
        if let Some(warm) = &mut self.warm {
            // What is decoded now is better than what may have been the reason.
            warm.kept = false;
        }
    }

    /// Waits until the file is written.
    pub fn finish_writing(&mut self) {
        if let Some(writer) = self.warm.as_mut().and_then(|warm| warm.writer.take()) {
            // Nothing comes back from it: what fails there was logged.
            let _ = writer.join();
        }
    }
}
