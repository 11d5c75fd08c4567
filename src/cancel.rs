//! Cancellation of one call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A token that cancels the calls it was given to. Once triggered it stays so. Clones share the
/// trigger, which may be pulled from any thread and from a signal handler.
#[derive(Debug, Clone, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// A token that is not triggered.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels the calls that have this token, or will get it.
    pub fn trigger(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// The flag behind the token, for the C side, which holds it as a pointer.
    #[cfg(feature = "engine")]
    pub(crate) fn into_flag(self) -> Arc<AtomicBool> {
        self.0
    }

    /// The token over a flag.
    #[cfg(feature = "engine")]
    pub(crate) fn from_flag(flag: Arc<AtomicBool>) -> Self {
        Self(flag)
    }

    /// Whether it was triggered.
    pub fn is_triggered(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
