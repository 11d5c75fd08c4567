//! The one place where Rust meets C: results become statuses and error objects, and a panic stops
//! here rather than in the host.

use super::error::{self, stair_error};
use super::status::{STAIR_OK, stair_status};
use crate::error::{Error, Result};
use crate::panics;

/// Runs the body of a fallible function and reports its error through `out`, if that is not NULL.
pub(super) fn fallible(
    out: *mut *mut stair_error,
    body: impl FnOnce() -> Result<()>,
) -> stair_status {
    let error = match guarded(body) {
        Ok(Ok(())) => return STAIR_OK,
        Ok(Err(error)) | Err(error) => error,
    };
    let status = error.code() as stair_status;
    if !out.is_null() {
        // Making the error object allocates, and so could panic in its turn.
        if let Ok(handle) = guarded(|| error::new(error)) {
            // SAFETY: the caller passes NULL or a pointer to a `stair_error *` it owns.
            unsafe { out.write(handle) };
        }
    }
    status
}

/// Runs the body of a function that cannot report an error; gives `fallback` after a panic.
pub(super) fn infallible<T>(fallback: T, body: impl FnOnce() -> T) -> T {
    guarded(body).unwrap_or(fallback)
}

/// State that a panic may leave half-changed lies behind locks that are released, and handles are
/// made only when a body succeeds.
fn guarded<T>(body: impl FnOnce() -> T) -> Result<T> {
    panics::silence();
    panics::catch(|| {
        forced_panic();
        body()
    })
}

/// Checks that `pointer` is not NULL.
pub(super) fn not_null<T>(pointer: *const T, name: &'static str) -> Result<()> {
    match pointer.is_null() {
        true => Err(Error::NullPointer(name)),
        false => Ok(()),
    }
}

#[cfg(not(test))]
fn forced_panic() {}

#[cfg(test)]
use tests::forced_panic;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capi::{STAIR_ERR_PANIC, stair_error_code, stair_error_free, stair_error_message};
    use std::cell::Cell;

    thread_local! {
        static PANIC: Cell<bool> = const { Cell::new(false) };
    }

    pub fn forced_panic() {
        if PANIC.take() {
            panic!("forced");
        }
    }

    #[test]
    fn a_panic_becomes_a_status_and_a_message() {
        let mut out = std::ptr::null_mut();
        PANIC.set(true);
        let status = fallible(&mut out, || Ok(()));
        assert_eq!(status, STAIR_ERR_PANIC);
        unsafe {
            assert_eq!(stair_error_code(out), STAIR_ERR_PANIC);
            let message = stair_error_message(out, std::ptr::null_mut());
            let message = std::ffi::CStr::from_ptr(message).to_str().expect("UTF-8");
            assert!(message.contains("forced"), "{message}");
            stair_error_free(out);
        }
    }

    #[test]
    fn a_panic_where_no_error_can_be_told_gives_the_fallback() {
        PANIC.set(true);
        let value = infallible(7, || 8);
        assert_eq!(value, 7);
    }
}
