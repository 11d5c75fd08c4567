//! Values that are used again, for their memory.

use parking_lot::Mutex;
use std::sync::Arc;

/// Most values that are kept: more callers than that at a time allocate. Some grow with the document,
/// so they are not many.
const MOST: usize = 16;

/// Shared values that were given back. One is handed out again when nobody else holds it any more,
/// so the other side need not be waited for.
pub(crate) struct Pool<T>(Mutex<Vec<Arc<T>>>);

impl<T> Pool<T> {
    /// A pool without any.
    pub fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// One that nobody holds, as it was when it was given back.
    pub fn take(&self) -> Option<Arc<T>> {
        let mut kept = self.0.lock();
        let free = kept
            .iter_mut()
            .position(|value| Arc::get_mut(value).is_some())?;
        Some(kept.swap_remove(free))
    }

    /// Keeps `value`, which others may still hold.
    pub fn give_back(&self, value: Arc<T>) {
        let mut kept = self.0.lock();
        if kept.len() < MOST {
            kept.push(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_comes_back_when_nobody_holds_it_any_more() {
        let pool = Pool::new();
        assert!(pool.take().is_none());
        let (first, second) = (Arc::new("first"), Arc::new("second"));
        pool.give_back(Arc::clone(&first));
        pool.give_back(Arc::clone(&second));
        assert!(pool.take().is_none(), "both are held");
        drop(second);
        assert_eq!(pool.take().as_deref(), Some(&"second"));
        assert!(pool.take().is_none());
        drop(first);
        assert_eq!(pool.take().as_deref(), Some(&"first"));
    }

    #[test]
    fn it_does_not_grow_without_end() {
        let pool = Pool::new();
        for number in 0..2 * MOST {
            pool.give_back(Arc::new(number));
        }
        assert_eq!(pool.0.lock().len(), MOST);
    }
}
