//! The `.stair` file: one document's table of contents, its token trie, and the template of its
//! prompt.
//!
//! [`format`] holds the records, [`view`] opens and checks a file, [`trie`] walks it and
//! [`builder`] makes one.

#[cfg(feature = "building")]
pub mod builder;
mod checksum;
pub mod format;
pub mod question;
#[cfg(all(test, feature = "building"))]
mod tests;
pub mod trie;
mod validate;
pub mod view;
pub mod vocabulary;

#[cfg(feature = "building")]
pub use builder::{BuildOptions, BuildReport, build};
pub use trie::{NodeId, Trie};
pub use view::{Index, Info, Section};
