//! Which section of this document answers this question?
//!
//! STAIR (structure-aware information retriever, arXiv 2609.03874) gives a language model a
//! document's whole table of contents and a question, and the model generates the title of the
//! one leaf section that answers it. This crate runs such a model in the host's own process and
//! keeps it to a trie of the titles, so what comes back is a section that exists.
//!
//! ```no_run
//! use stair::{Index, Model, ModelOptions, RetrieveOptions, Retriever, RetrieverOptions};
//! use std::sync::Arc;
//!
//! # fn main() -> stair::Result<()> {
//! let model = Arc::new(Model::open("model.gguf", &ModelOptions::default())?);
//! let index = Arc::new(Index::open("handbook.stair")?);
//! let retriever = Retriever::new(model, index, &RetrieverOptions::default())?;
//! let answer = retriever.retrieve("How long is my notice period?", &RetrieveOptions::default())?;
//! for hit in &answer.hits {
//!     println!("{}  {:.3}", hit.path.join(" > "), hit.score);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # From a document to an answer
//!
//! 1. [`toc`] reads a document (Markdown, or a `toc.json` of the host's own) into a table of
//!    contents.
//! 2. [`index::build`] makes the bytes of a `.stair` file of it: the sections, the prompt as token
//!    ids ([`prompt`], [`tokens`]), and every leaf's title in a token trie.
//! 3. [`Index`] maps such a file and checks all of it.
//! 4. [`Retriever`] puts an index and a [`Model`] together. It decodes the table of contents once;
//!    each question then costs its own tokens and a [`search`] for the k most probable titles,
//!    which is exact.
//!
//! Words may count beside what the model says ([`RetrieveOptions::lexical_weight`]), and without a
//! model they answer alone: [`Retriever::lexical`], from the scores of [`lexical`].
//!
//! The command `stair` and the C header `stair.h` offer the same. `ARCHITECTURE.md` says where
//! what stands, `docs/format.md` describes the file, `docs/abi.md` the promises of the C side.
//!
//! # What the library does not do
//!
//! It prints nothing and installs no signal handler. No thread of its own outlives a call before a
//! retriever exists. It never names a section that is not in the index, and never takes a title from generated text.
//!
//! # Features
//!
//! `portable` (default): one build for every x86-64-v2 or later machine, with the kernels of each
//! generation of processors as plugins in a folder `stair-backends`. `engine` alone: llama.cpp
//! linked in. `cuda`: one more plugin. `building`: the readers and the builder; without it a host
//! that only answers carries no parser. `evaluation`: [`eval`], how good the answers are. `cli`: the command.

#![deny(missing_docs)]

pub mod cancel;
#[cfg(feature = "engine")]
pub mod capi;
#[cfg(feature = "engine")]
pub mod engine;
pub mod error;
#[cfg(feature = "evaluation")]
pub mod eval;
pub mod files;
pub mod index;
pub mod lexical;
#[cfg(feature = "building")]
pub mod openstax;
#[cfg(feature = "engine")]
mod panics;
#[cfg(feature = "engine")]
mod pool;
#[cfg(feature = "building")]
pub mod prompt;
#[cfg(feature = "building")]
pub mod questions;
#[cfg(feature = "engine")]
pub mod retriever;
pub mod search;
#[cfg(feature = "building")]
pub mod toc;
pub mod tokens;
#[cfg(feature = "building")]
pub mod train_data;

pub use cancel::CancelToken;
#[cfg(feature = "engine")]
pub use engine::{KvType, Model, ModelInfo, ModelOptions};
pub use error::{Code, Error, Result};
pub use index::Index;
#[cfg(feature = "engine")]
pub use retriever::{Hit, Hits, RetrieveOptions, Retriever, RetrieverOptions, Stats};
