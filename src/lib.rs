//! stair
pub mod error;
pub mod files;
pub mod index;
#[cfg(feature = "building")]
pub mod prompt;
pub mod search;
#[cfg(feature = "building")]
pub mod toc;
pub mod tokens;

pub use error::{Code, Error, Result};
