//! llama.cpp, and nothing of it outside this folder: [`Model`] loads a GGUF, [`Context`] continues
//! sequences with it, and the worker answers the questions of several callers with one context.

mod adapter;
mod backend;
pub mod context;
mod fingerprint;
mod gguf;
mod gguf_file;
pub(crate) mod heap;
pub mod log;
pub(crate) mod memory;
pub mod merge;
pub mod model;
pub mod quantize;
pub(crate) mod queue;
pub(crate) mod warm;
pub(crate) mod worker;

pub use backend::{Device, devices};
pub use context::{Context, ContextOptions, KvType};
pub use merge::{MergeOptions, MergeReport, merge};
pub use model::{Model, ModelInfo, ModelOptions};
pub use quantize::quantize;
