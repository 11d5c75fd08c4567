//! What the driver and a system say to each other: a JSON object a line.
//!
//! The system reads a [`Document`] from the file that it is given, writes [`Ready`] when its prefix
//! is warm, then an [`Answer`] for each [`Ask`] until its input ends.

use serde::{Deserialize, Serialize};
use stair::eval::predictions::PredictedHit;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What every system needs to know, as token ids: no peer tokenises differently.
#[derive(Debug, Serialize, Deserialize)]
pub struct Document {
    /// The GGUF.
    pub model: PathBuf,
    /// The index, for those that are libstair.
    pub index: PathBuf,
    /// Threads that compute.
    pub threads: u32,
    /// Number of sections to find.
    pub k: usize,
    /// The prompt up to the question.
    pub prefix: Vec<u32>,
    /// The token that ends a title.
    pub terminator: u32,
    /// Text between the prompt and a title's identifier.
    pub before_title: String,
    /// The leaves.
    pub titles: Vec<Title>,
    /// Tokens of the longest question to come.
    pub longest_question: usize,
    /// How much words count in the system `hybrid`, where it was tuned.
    pub lexical_weight: Option<f32>,
}

/// A leaf and the tokens of its title.
#[derive(Debug, Serialize, Deserialize)]
pub struct Title {
    /// The section's id.
    pub section: u32,
    /// Number and title.
    pub identifier: String,
    /// The tokens, the terminator included.
    pub tokens: Vec<u32>,
}

/// One question.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ask {
    /// The question.
    pub query: String,
    /// From the end of the prefix to the place where the title begins.
    pub tokens: Vec<u32>,
}

/// A system is ready to be asked.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ready {
    /// What it is made of: name to version.
    pub versions: BTreeMap<String, String>,
}

/// One answer.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Answer {
    /// Seconds it took.
    pub seconds: f64,
    /// The sections, best first. A system that names no section of the document says so by `null`.
    pub hits: Vec<PredictedHit>,
    /// Forward passes, where the system can tell.
    #[serde(default)]
    pub decodes: Option<u32>,
    /// Tokens evaluated after the prefix, where the system can tell.
    #[serde(default)]
    pub tokens: Option<u32>,
}
