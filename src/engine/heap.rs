//! Freed memory back to the system.
//!
//! glibc maps a large block apart and unmaps it when it is freed, but only until it has seen one freed:
//! from then on it takes blocks of that size from the heap of the thread, and a heap keeps what is free.
//! So the contexts of retrievers that had given way long ago were still in memory, each in the heap of its
//! thread, and no budget held.

/// Has the allocator give back what was freed by this thread and others, after a context's end.
///
/// `malloc_trim` gives back what lies between blocks in use. It leaves what lies above the last of them, if
/// the heap is not the main thread's; so a block is put there meanwhile. Nothing of it is written to.
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        /// Smaller than what glibc maps apart by now, larger than what a context leaves in between.
        const BLOCK: usize = 1 << 20;
        /// As much as a thread's heap can be: the last block is above all that was freed.
        const BLOCKS: usize = 64;
        // Or else the compiler sees that nobody needs them.
        // SAFETY: a size that is not 0; null, where there is no memory, may be freed too.
        let block = || std::hint::black_box(unsafe { libc::malloc(BLOCK) });
        let blocks: [_; BLOCKS] = std::array::from_fn(|_| block());
        let [below @ .., last] = blocks;
        for block in below {
            // SAFETY: it is from `malloc`, and nobody has it.
            unsafe { libc::free(block) };
        }
        // SAFETY: it may be called at any time and from any thread; it touches free memory only. The
        // block is freed as those before.
        unsafe {
            libc::malloc_trim(0);
            libc::free(last);
        }
    }
}
