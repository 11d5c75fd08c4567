//! `stair_cancel`: cancellation of a call from another thread.

use super::boundary::infallible;
use crate::cancel::CancelToken;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Cancels the calls that it is passed to. Unlike the other handles this is a plain pointer, so that
/// triggering it takes no lock: free it exactly once, and do not use it afterwards.
pub struct stair_cancel;

/// A new token, not triggered; NULL only when memory ran out.
#[unsafe(no_mangle)]
pub extern "C" fn stair_cancel_new() -> *mut stair_cancel {
    infallible(std::ptr::null_mut(), || {
        CancelToken::new().into_raw().cast_mut().cast()
    })
}

/// Cancels the calls that have this token or will get it. Sticky. From any thread, and from a
/// signal handler. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stair_cancel_trigger(cancel: *const stair_cancel) {
    if !cancel.is_null() {
        // SAFETY: not NULL, so it came from `stair_cancel_new` and was not freed.
        unsafe { borrow(cancel) }.trigger();
    }
}

/// 1 if it was triggered, else 0; 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stair_cancel_triggered(cancel: *const stair_cancel) -> i32 {
    // SAFETY: not NULL, so it came from `stair_cancel_new` and was not freed.
    (!cancel.is_null() && unsafe { borrow(cancel) }.is_triggered()).into()
}

/// Frees a token; calls that were given it keep their own reference. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stair_cancel_free(cancel: *mut stair_cancel) {
    if !cancel.is_null() {
        // SAFETY: not NULL, so it came from `stair_cancel_new` and was not freed before.
        drop(unsafe { CancelToken::from_raw(cancel.cast::<AtomicBool>()) });
    }
}

/// The token of an argument; NULL gives one that nobody triggers.
///
/// # Safety
///
/// `cancel` is NULL or came from [`stair_cancel_new`] and was not freed.
pub(super) unsafe fn token(cancel: *const stair_cancel) -> CancelToken {
    match cancel.is_null() {
        true => CancelToken::never(),
        // SAFETY: as the caller promises.
        false => CancelToken::clone(&*unsafe { borrow(cancel) }),
    }
}

/// # Safety
///
/// `cancel` came from [`stair_cancel_new`] and was not freed.
unsafe fn borrow(cancel: *const stair_cancel) -> ManuallyDrop<CancelToken> {
    // SAFETY: as the caller promises; the reference that the pointer stands for is not dropped.
    ManuallyDrop::new(unsafe { CancelToken::from_raw(cancel.cast::<AtomicBool>()) })
}

impl CancelToken {
    fn into_raw(self) -> *const AtomicBool {
        Arc::into_raw(self.into_flag())
    }

    /// # Safety
    ///
    /// `raw` came from [`CancelToken::into_raw`], and its reference is taken over.
    unsafe fn from_raw(raw: *const AtomicBool) -> Self {
        // SAFETY: as the caller promises.
        Self::from_flag(unsafe { Arc::from_raw(raw) })
    }
}
