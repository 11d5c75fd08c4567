//! Freed memory back to the system.

/// Has the allocator give back what was freed, after a context's end.
///
/// glibc maps a large block apart and unmaps it when it is freed, but only once: then it takes blocks of
/// that size from a heap, and a heap keeps what lies below the last block in use. So contexts that had
/// given way long ago were still in memory: twice a budget's worth, where a hundred books took turns
/// within it (`books_memory_over_budget` of `make bench`).
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it may be called at any time and from any thread; it touches free memory only.
    unsafe {
        libc::malloc_trim(0);
    }
}
