//! The system's allocator, with a count of the bytes that are allocated, and of how often.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static CALLS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static HERE: Cell<Here> = const { Cell::new(Here { asked: 0, freed: 0 }) };
}

/// How often a thread asked for memory, and gave some back.
#[derive(Clone, Copy)]
pub struct Here {
    pub asked: usize,
    pub freed: usize,
}

/// What this thread did so far.
pub fn here() -> Here {
    HERE.get()
}

/// How often the Rust side asked for memory so far. What C++ allocates is not counted.
pub fn calls() -> usize {
    CALLS.load(Relaxed)
}

/// By how many bytes the heap of the Rust side grew at most while `work` ran, counting what was
/// freed again before it ended. What C++ allocates is not counted.
pub fn growth<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.load(Relaxed);
    PEAK.store(before, Relaxed);
    let value = work();
    (value, PEAK.load(Relaxed) - before)
}

pub struct Counting;

impl Counting {
    fn grew(bytes: usize) {
        CALLS.fetch_add(1, Relaxed);
        let here = HERE.get();
        HERE.set(Here {
            asked: here.asked + 1,
            ..here
        });
        let now = NOW.fetch_add(bytes, Relaxed) + bytes;
        PEAK.fetch_max(now, Relaxed);
    }

    fn shrank(bytes: usize) {
        NOW.fetch_sub(bytes, Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator as it is; only numbers are counted beside.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::grew(layout.size());
        // SAFETY: the caller keeps what the trait asks.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::grew(layout.size());
        // SAFETY: the caller keeps what the trait asks.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // A block that moves exists twice for a moment.
        Self::grew(size);
        Self::shrank(layout.size());
        // SAFETY: the caller keeps what the trait asks.
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        let here = HERE.get();
        HERE.set(Here {
            freed: here.freed + 1,
            ..here
        });
        Self::shrank(layout.size());
        // SAFETY: the caller keeps what the trait asks.
        unsafe { System.dealloc(old, layout) }
    }
}
