//! stair
pub mod cancel;
#[cfg(feature = "engine")]
pub mod engine;
pub mod error;
pub mod files;
pub mod index;
#[cfg(feature = "building")]
pub mod prompt;
#[cfg(feature = "engine")]
pub mod retriever;
pub mod search;
#[cfg(feature = "building")]
pub mod toc;
pub mod tokens;

pub use error::{Code, Error, Result};
