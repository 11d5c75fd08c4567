//! How good the answers are, and whether one may believe it.
//!
//! A file of questions is examined first ([`audit`]). Questions with known answers go through a [`system`]; what comes out is a file of
//! [`predictions`], and everything else is computed from such files: the figures of one system
//! ([`Summary`]), whether two systems differ ([`compare`]), and a page
//! for whoever decides ([`report`]). So a system written
//! in another language only has to write that file. `docs/evaluation.md` describes it, and what
//! each figure means.
//!
//! [`tune`] chooses, on questions kept apart for it, what a model and an index need to know of each
//! other, and [`tuning`] is the file beside the model that remembers it.

pub mod audit;
pub mod bootstrap;
pub mod by_the_book;
pub mod calibration;
pub mod compare;
pub mod confidence;
pub mod gold;
pub mod known;
pub mod leaks;
pub mod menu;
pub mod metrics;
pub mod predictions;
pub mod randomization;
pub mod report;
pub mod run;
pub mod summary;
pub mod system;
pub mod tune;
pub mod tuning;

pub use bootstrap::Estimate;
pub use predictions::Prediction;
pub use summary::Summary;
pub use tuning::Tuning;
