//! Cancellation of one call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A token that cancels the calls it was given to. Once triggered it stays so. Clones share the
/// trigger, which may be pulled from any thread and from a signal handler.
#[derive(Debug, Clone)]
pub struct CancelToken(Option<Arc<AtomicBool>>);

impl CancelToken {
    /// A token that is not triggered.
    pub fn new() -> Self {
        Self(Some(Arc::default()))
    }

    /// A token that cannot be triggered: a call that has it need not look.
    pub const fn never() -> Self {
        Self(None)
    }

    /// Cancels the calls that have this token, or will get it; nothing for [`CancelToken::never`].
    pub fn trigger(&self) {
        if let Some(flag) = &self.0 {
            flag.store(true, Ordering::Release);
        }
    }

    /// Whether it may be triggered at all.
    #[cfg(feature = "engine")]
    pub(crate) fn can_be_triggered(&self) -> bool {
        self.0.is_some()
    }

    /// The flag behind the token, for the C side, which holds it as a pointer.
    #[cfg(feature = "engine")]
    pub(crate) fn into_flag(self) -> Arc<AtomicBool> {
        self.0.unwrap_or_default()
    }

    /// The token over a flag.
    #[cfg(feature = "engine")]
    pub(crate) fn from_flag(flag: Arc<AtomicBool>) -> Self {
        Self(Some(flag))
    }

    /// Whether it was triggered.
    pub fn is_triggered(&self) -> bool {
        let flag = self.0.as_ref();
        flag.is_some_and(|flag| flag.load(Ordering::Acquire))
    }
}

impl Default for CancelToken {
    /// As [`CancelToken::new`].
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trigger_is_shared_by_clones_and_there_may_be_none() {
        for token in [CancelToken::new(), CancelToken::default()] {
            let clone = token.clone();
            assert!(!clone.is_triggered());
            token.trigger();
            assert!(clone.is_triggered());
        }
        let never = CancelToken::never();
        never.trigger();
        assert!(!never.is_triggered());
    }
}
