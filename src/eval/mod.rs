//! How good the answers are, and whether one may believe it.
//!
//! Questions with known answers go through a [`system`]; what comes out is a file of
//! [`predictions`], and everything else is computed from such files: the figures of one system
//! ([`Summary`]), whether two systems differ, and a page for whoever decides. So a system written
//! in another language only has to write that file. `docs/evaluation.md` describes it, and what
//! each figure means.

pub mod bootstrap;
pub mod calibration;
pub mod gold;
pub mod metrics;
pub mod predictions;
pub mod run;
pub mod summary;
pub mod system;

pub use bootstrap::Estimate;
pub use predictions::Prediction;
pub use summary::Summary;
