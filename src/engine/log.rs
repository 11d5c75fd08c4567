//! llama.cpp's log. Silent unless the host asks for it; what is said while a model is loaded is
//! also kept, because a failure's cause stands nowhere else.

use llama_cpp_sys_2 as sys;
use parking_lot::RwLock;
use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// How important a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i32)]
pub enum Level {
    /// Something failed.
    Error = 1,
    /// Something is not as it should be.
    Warn = 2,
    /// What is being done.
    Info = 3,
    /// Details.
    Debug = 4,
}

/// Receives messages, from any thread. It must not call back into the library.
pub type Hook = Arc<dyn Fn(Level, &str) + Send + Sync>;

static HOOK: RwLock<Option<(Level, Hook)>> = RwLock::new(None);

thread_local! {
    /// While a model is loaded on this thread: the errors so far.
    static CAPTURED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Sends messages up to `max` to `hook`, or with `None` to nobody, which is the default.
pub fn set(hook: Option<(Level, Hook)>) {
    *HOOK.write() = hook;
}

/// Sends one message to the hook.
pub(crate) fn emit(level: Level, message: &str) {
    // The hook runs outside the lock: it may take long, or set another hook.
    let hook = HOOK.read().clone();
    if let Some((max, hook)) = hook
        && level <= max
    {
        hook(level, message);
    }
}

/// Runs `action` and returns with its result the errors that llama.cpp logged on this thread.
pub(super) fn capture<T>(action: impl FnOnce() -> T) -> (T, String) {
    CAPTURED.with(|captured| *captured.borrow_mut() = Some(String::new()));
    let result = action();
    let errors = CAPTURED.with(|captured| captured.borrow_mut().take());
    (result, errors.unwrap_or_default())
}

/// Takes the place of what llama.cpp and ggml do by default: write to standard error, and at an
/// abort start a debugger.
pub(super) fn install() {
    // SAFETY: both take a function pointer that lives forever; this runs once, before any other
    // call into llama.cpp.
    unsafe {
        sys::llama_log_set(Some(on_message), std::ptr::null_mut());
        sys::ggml_set_abort_callback(Some(on_abort));
    }
}

/// A C function because llama.cpp calls it; nothing is exported.
unsafe extern "C" fn on_message(level: sys::ggml_log_level, text: *const c_char, _: *mut c_void) {
    let level = match level {
        sys::GGML_LOG_LEVEL_ERROR => Level::Error,
        sys::GGML_LOG_LEVEL_WARN => Level::Warn,
        sys::GGML_LOG_LEVEL_INFO => Level::Info,
        _ => Level::Debug,
    };
    // SAFETY: llama.cpp passes a NUL-terminated text that lives during the call.
    unsafe { receive(level, text) };
}

/// The process ends after this: a host that listens learns why.
unsafe extern "C" fn on_abort(text: *const c_char) {
    // SAFETY: ggml passes a NUL-terminated text that lives during the call.
    unsafe { receive(Level::Error, text) };
}

/// # Safety
///
/// `text` is NULL, or NUL-terminated and lives during the call.
unsafe fn receive(level: Level, text: *const c_char) {
    if text.is_null() {
        return;
    }
    // A panic of the host's hook must not unwind into C++.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: as the caller promises.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        let text = text.trim_end();
        if text.is_empty() {
            return;
        }
        if level == Level::Error {
            CAPTURED.with(|captured| {
                if let Ok(mut captured) = captured.try_borrow_mut()
                    && let Some(errors) = captured.as_mut()
                {
                    if !errors.is_empty() {
                        errors.push_str("; ");
                    }
                    errors.push_str(text);
                }
            });
        }
        emit(level, text);
    }));
}
