//! Panics: caught where they would leave the library, and silent there.

use crate::error::Error;
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// How many [`catch`]es this thread is inside of.
    static CATCHING: Cell<u32> = const { Cell::new(0) };
}

/// Runs `body`; a panic becomes [`Error::Panic`] with its message.
///
/// What `body` changes must be fit to be seen after a panic, or never be used again.
pub(crate) fn catch<T>(body: impl FnOnce() -> T) -> Result<T, Error> {
    CATCHING.set(CATCHING.get() + 1);
    let result = catch_unwind(AssertUnwindSafe(body));
    CATCHING.set(CATCHING.get() - 1);
    result.map_err(|payload| Error::Panic(describe(&*payload)))
}

/// From now on a panic inside [`catch`] prints nothing; every other one is reported as before. For
/// hosts that are not written in Rust: in them this is the only use of Rust's panic hook.
pub(crate) fn silence() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if CATCHING.try_with(Cell::get).unwrap_or(0) == 0 {
                before(info);
            }
        }));
    });
}

fn describe(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::panic_any;

    #[test]
    fn a_panic_is_an_error_with_its_message() {
        silence();
        let error = catch(|| panic!("forced {}", 1)).expect_err("panics");
        assert!(matches!(&error, Error::Panic(message) if message == "forced 1"));
        let error = catch(|| panic_any(7)).expect_err("panics");
        assert!(matches!(&error, Error::Panic(message) if message == "no message"));
        assert_eq!(catch(|| 8).expect("does not panic"), 8);
        assert_eq!(CATCHING.get(), 0);
    }
}
