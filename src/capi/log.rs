//! Logging: silent by default, a callback if the host wants to listen.

use super::boundary::infallible;
use crate::engine::log::{self, Level};
use std::ffi::{c_char, c_void};
use std::sync::Arc;

/// Something failed.
pub const STAIR_LOG_ERROR: i32 = 1;
/// Something is not as it should be.
pub const STAIR_LOG_WARN: i32 = 2;
/// What is being done.
pub const STAIR_LOG_INFO: i32 = 3;
/// Details.
pub const STAIR_LOG_DEBUG: i32 = 4;

/// Receives a message: its level, its text (UTF-8, of `len` bytes and NUL-terminated, only during
/// the call), and the `userdata` of `stair_log_set`. It may be called from any thread, from several
/// at a time, and must not call libstair.
pub type stair_log_fn = Option<
    unsafe extern "C" fn(level: i32, message: *const c_char, len: usize, userdata: *mut c_void),
>;

/// Sends messages of the library and of llama.cpp, up to level `max_level`, to `callback`; with
/// NULL to nobody, which is the default. For the whole process. A call that is under way may still
/// end after this returns, so keep `userdata` alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stair_log_set(
    callback: stair_log_fn,
    userdata: *mut c_void,
    max_level: i32,
) {
    infallible((), || {
        let max = match max_level {
            i32::MIN..=0 => None,
            STAIR_LOG_ERROR => Some(Level::Error),
            STAIR_LOG_WARN => Some(Level::Warn),
            STAIR_LOG_INFO => Some(Level::Info),
            _ => Some(Level::Debug),
        };
        let userdata = Userdata(userdata);
        let hook = callback.zip(max).map(|(callback, max)| {
            let hook: log::Hook = Arc::new(move |level, message| {
                let mut bytes = message.as_bytes().to_vec();
                let len = bytes.len();
                bytes.push(0);
                // SAFETY: the host says that the callback takes what its type says.
                unsafe { callback(level as i32, bytes.as_ptr().cast(), len, userdata.get()) };
            });
            (max, hook)
        });
        log::set(hook);
    });
}

/// The host's pointer, which the library only hands back.
#[derive(Clone, Copy)]
struct Userdata(*mut c_void);

// SAFETY: the header says that the callback is called from any thread.
unsafe impl Send for Userdata {}
// SAFETY: as above.
unsafe impl Sync for Userdata {}

impl Userdata {
    fn get(self) -> *mut c_void {
        self.0
    }
}
