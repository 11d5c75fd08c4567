//! Whether the library prints. libFuzzer prints too, so it has to be told to keep standard output
//! and standard error for itself (`-close_fd_mask=3`, as `run.sh` does): it then talks through a
//! descriptor of its own and leaves `/dev/null` in their places.

use std::fs::{File, read_link};
use std::io::{Read, Seek};
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::{AtomicI32, Ordering};

/// Standard error, as it was when the process began.
static STANDARD_ERROR: AtomicI32 = AtomicI32::new(-1);

/// To be called before libFuzzer begins: lets a panic of the target be read.
pub fn keep_panics_readable() {
    // SAFETY: duplicates a descriptor.
    STANDARD_ERROR.store(unsafe { libc::dup(2) }, Ordering::Relaxed);
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        // SAFETY: both are descriptors of this process.
        unsafe { libc::dup2(STANDARD_ERROR.load(Ordering::Relaxed), 2) };
        report(info);
    }));
}

/// What goes to standard output and standard error.
pub struct Printed(File);

impl Printed {
    /// Listens from now on; `None` when libFuzzer prints there.
    pub fn listen() -> Option<Self> {
        for stream in ["/proc/self/fd/1", "/proc/self/fd/2"] {
            if read_link(stream).ok()?.to_str() != Some("/dev/null") {
                return None;
            }
        }
        // SAFETY: the name is a C string; the descriptor is new, and checked.
        let file = unsafe {
            let descriptor = libc::memfd_create(c"printed".as_ptr(), 0);
            assert!(descriptor >= 0, "a file in memory");
            File::from_raw_fd(descriptor)
        };
        for stream in [1, 2] {
            // SAFETY: both are descriptors of this process.
            let done = unsafe { libc::dup2(file.as_raw_fd(), stream) };
            assert_eq!(done, stream);
        }
        Some(Self(file))
    }

    /// Panics if anything was printed.
    pub fn check(&mut self) {
        if self.0.metadata().is_ok_and(|metadata| metadata.len() == 0) {
            return;
        }
        let mut text = Vec::new();
        self.0.rewind().expect("rewinds");
        self.0.read_to_end(&mut text).expect("reads");
        panic!("the library printed {:?}", String::from_utf8_lossy(&text));
    }
}
