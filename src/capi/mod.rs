//! The C ABI: the functions of `include/stair.h`, and the only exported ones of the library. One
//! file for each kind of handle; every function goes through [`boundary`].
//!
//! Doc comments here become the header's text, so they speak to a C programmer. A function whose
//! pointers must be valid is safe in Rust's eyes only because no Rust code calls it.

#![allow(non_camel_case_types, clippy::missing_safety_doc)]

mod boundary;
mod cancel;
mod error;
mod handle;
mod index;
mod log;
mod model;
mod options;
mod results;
mod retriever;
mod status;
mod text;
mod version;

pub use cancel::*;
pub use error::*;
pub use index::*;
pub use log::*;
pub use model::*;
pub use results::*;
pub use retriever::*;
pub use status::*;
pub use version::*;
