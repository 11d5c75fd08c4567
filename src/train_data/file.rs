//! The file of training data: lines of JSON.

use super::Task;
use crate::error::{Error, Result};
use crate::files::AtomicFile;
use serde::Serialize;

/// The first line: what all examples share.
#[derive(Serialize)]
pub(super) struct Header<'a> {
    pub format: &'static str,
    pub version: u32,
    pub index_checksum: String,
    /// Of `prefix`: which table of contents it is, whatever else is in the index.
    pub prefix_checksum: String,
    pub vocabulary_fingerprint: String,
    pub vocabulary_size: u32,
    pub title: &'a str,
    /// Whether the table of contents is in `prefix`.
    pub toc: bool,
    pub split: &'a str,
    /// Tokens of the prompt up to the question.
    pub prefix: &'a [u32],
    pub leaves: &'a [Leaf],
}

/// A leaf and the tokens of its title, terminator included.
#[derive(Serialize)]
pub(super) struct Leaf {
    pub section: u32,
    pub identifier: String,
    pub tokens: Vec<u32>,
}

/// Every other line.
#[derive(Serialize)]
pub(super) struct Example<'a> {
    pub id: &'a str,
    pub task: Task,
    /// `None` for a question that no section answers.
    pub section: Option<u32>,
    /// Tokens after the prefix: the question, then the title with its terminator.
    pub tokens: &'a [u32],
    /// Where in `tokens` the title begins, and where it ends.
    pub target: [usize; 2],
}

/// Writes lines in large pieces.
pub(super) struct Writer {
    file: AtomicFile,
    buffer: Vec<u8>,
}

impl Writer {
    const PIECE: usize = 1 << 20;

    pub fn new(file: AtomicFile) -> Self {
        Self {
            file,
            buffer: Vec::with_capacity(Self::PIECE),
        }
    }

    pub fn line(&mut self, line: &impl Serialize) -> Result<()> {
        serde_json::to_writer(&mut self.buffer, line)
            .map_err(|error| Error::Internal(format!("a line of training data: {error}")))?;
        self.buffer.push(b'\n');
        match self.buffer.len() >= Self::PIECE {
            true => self.flush(),
            false => Ok(()),
        }
    }

    pub fn commit(mut self) -> Result<()> {
        self.flush()?;
        self.file.commit()
    }

    fn flush(&mut self) -> Result<()> {
        self.file.write(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}
