//! `stair_error`: what went wrong, in words.

use super::boundary::infallible;
use super::handle::Table;
use super::status::{STAIR_ERR_INVALID_HANDLE, STAIR_OK, stair_status};
use super::text::Text;
use crate::error::Error;
use std::ffi::c_char;

/// Why a call failed. Owned by whoever passed the `stair_error **`; free it once.
pub struct stair_error;

struct Record {
    status: stair_status,
    message: Text,
}

static ERRORS: Table<Record> = Table::new("error", 1);

/// A handle for `error`; NULL when even that is too much.
pub(super) fn new(error: Error) -> *mut stair_error {
    let record = Record {
        status: error.code() as stair_status,
        message: Text::new(&error.to_string()),
    };
    ERRORS.insert(record).unwrap_or(std::ptr::null_mut())
}

/// The status that the call returned; STAIR_OK for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stair_error_code(error: *const stair_error) -> stair_status {
    infallible(STAIR_ERR_INVALID_HANDLE, || match error.is_null() {
        true => STAIR_OK,
        false => ERRORS
            .find(error)
            .map_or(STAIR_ERR_INVALID_HANDLE, |record| record.status),
    })
}

/// The cause and the remedy, in English: UTF-8 and NUL-terminated, until the error is freed. `len`
/// may be NULL. An empty text for NULL and for a handle that is not live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stair_error_message(
    error: *const stair_error,
    len: *mut usize,
) -> *const c_char {
    infallible(c"".as_ptr(), || {
        let (text, length) = match ERRORS.find(error) {
            // The table keeps the record after this reference is gone.
            Ok(record) => (record.message.as_ptr(), record.message.len()),
            Err(_) => (c"".as_ptr(), 0),
        };
        if !len.is_null() {
            // SAFETY: the caller passes NULL or a pointer to a size_t.
            unsafe { len.write(length) };
        }
        text
    })
}

/// Frees an error. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stair_error_free(error: *mut stair_error) {
    infallible((), || ERRORS.remove(error));
}
