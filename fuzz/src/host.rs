//! A process that uses the library through `stair.h`: what it was given, and what must hold of every
//! call.

mod calls;

use crate::arguments::{Choices, OrNull, Text};
use crate::silence::Printed;
use stair::capi::*;
use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};

/// What a handle stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Error,
    Model,
    Index,
    Retriever,
    Results,
}

type Handle = *mut c_void;
type ErrorOut = *mut *mut stair_error;

/// A process that uses the library.
pub struct Host {
    folder: tempfile::TempDir,
    /// Every handle that was given out in this run, oldest first.
    handles: Vec<Handle>,
    live: HashMap<Handle, Kind>,
    /// Retrievers without a model, and their results.
    lexical: HashSet<Handle>,
    /// Most handles that ever lived at once. Not forgotten between runs, nor are the library's
    /// tables.
    peaks: HashMap<Kind, usize>,
    cancels: Vec<*mut stair_cancel>,
    printed: Option<Printed>,
}

impl Host {
    /// A host with a folder in which the model `tiny.gguf` and the index `good.stair` lie.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("tiny.gguf"), crate::tiny::gguf()).expect("writes");
        let mut host = Self {
            folder,
            handles: Vec::new(),
            live: HashMap::new(),
            lexical: HashSet::new(),
            peaks: HashMap::new(),
            cancels: Vec::new(),
            printed: Printed::listen(),
        };
        host.ask_once();
        host
    }

    /// Calls as `input` says. Nothing is left of them.
    pub fn run(&mut self, input: &[u8]) {
        let mut from = Choices::new(input);
        while from.next_call() {
            self.call(&mut from);
        }
        self.finish();
        if let Some(printed) = &mut self.printed {
            printed.check();
        }
    }

    /// The usual program. Without a model that works, the others would see little.
    fn ask_once(&mut self) {
        let mut from = Choices::new(&[]);
        // SAFETY: as in `call`.
        unsafe {
            self.model_open(&mut from);
            self.index_build(&mut from);
            let index = self.any(Kind::Index, &mut from).cast();
            let path = self.path("good.stair");
            let saved = stair_index_save(index, path.as_ptr().cast(), path.len(), null_mut());
            assert_eq!(saved, STAIR_OK);
            self.retriever_new(&mut from);
            self.retrieve(&mut from);
            let results = self.any(Kind::Results, &mut from);
            assert_eq!(stair_results_count(results.cast()), 2);
            assert!(!self.lexical.contains(&results));
        }
        assert!(self.live.values().all(|&kind| kind != Kind::Error));
        self.finish();
    }

    /// Ends everything, and finds nothing left: the next run begins as this one did.
    fn finish(&mut self) {
        for name in ["saved.stair", "a"] {
            let _ = std::fs::remove_file(self.path(name));
        }
        let handles = std::mem::take(&mut self.handles);
        // SAFETY: live tokens, which end here; handles may be anything.
        unsafe {
            stair_log_set(None, null_mut(), 0);
            for cancel in self.cancels.drain(..) {
                stair_cancel_free(cancel);
            }
            for handle in &handles {
                if let Some(kind) = self.live.remove(handle) {
                    free(kind, *handle);
                }
            }
            self.lexical.clear();
            for handle in handles {
                assert_eq!(stair_results_count(handle.cast()), 0);
                assert!(CStr::from_ptr(stair_error_message(handle.cast(), null_mut())).is_empty());
            }
        }
    }

    /// A call that gives out a handle of `kind`, if it succeeds.
    fn making(
        &mut self,
        kind: Kind,
        from: &mut Choices<'_>,
        handles: &[(Handle, Kind)],
        call: impl FnOnce(*mut Handle, ErrorOut) -> stair_status,
    ) -> Option<Handle> {
        let mut made = null_mut();
        let out = if from.byte() < 250 {
            &raw mut made
        } else {
            null_mut()
        };
        let status = self.using(handles, from, |error| call(out, error));
        assert_eq!(
            status == STAIR_OK,
            !made.is_null(),
            "written on success only"
        );
        (status == STAIR_OK).then(|| {
            self.keep(made, kind);
            made
        })
    }

    /// A call that fills a struct, if it succeeds. Gives the struct if all of it had room.
    fn filling<T: Copy>(
        &mut self,
        handles: &[(Handle, Kind)],
        from: &mut Choices<'_>,
        call: impl FnOnce(*mut T, ErrorOut) -> stair_status,
    ) -> Option<T> {
        let memory = from.output(size_of::<T>());
        let status = self.using(handles, from, |error| {
            call(memory.as_mut_ptr().cast(), error)
        });
        let memory = memory?;
        match status {
            // SAFETY: it was filled, and the structs of the header hold numbers and pointers.
            STAIR_OK => unsafe { memory.value() },
            _ => {
                assert!(memory.is_unset(), "written on success only");
                None
            }
        }
    }

    /// A call with `handles`: it cannot succeed unless all are live and of their kinds.
    fn using(
        &mut self,
        handles: &[(Handle, Kind)],
        from: &mut Choices<'_>,
        call: impl FnOnce(ErrorOut) -> stair_status,
    ) -> stair_status {
        let mut error = null_mut();
        let out = if from.yes() {
            &raw mut error
        } else {
            null_mut()
        };
        let status = call(out);
        // SAFETY: the name is static; the error was just given out.
        let (name, code, message) = unsafe {
            let message = CStr::from_ptr(stair_error_message(error, null_mut()));
            let name = CStr::from_ptr(stair_status_name(status));
            (name, stair_error_code(error), message)
        };
        assert_ne!(name, c"UNKNOWN");
        assert!(
            ![STAIR_ERR_PANIC, STAIR_ERR_INTERNAL].contains(&status),
            "{message:?}"
        );
        let all_live = handles.iter().all(|&(handle, kind)| self.is(handle, kind));
        assert!(status != STAIR_OK || all_live);
        assert!(status != STAIR_ERR_INVALID_HANDLE || !all_live);
        assert_eq!(!error.is_null(), status != STAIR_OK && !out.is_null());
        if !error.is_null() {
            assert_eq!(code, status);
            assert!(!message.is_empty());
            self.keep(error.cast(), Kind::Error);
        }
        status
    }

    fn keep(&mut self, handle: Handle, kind: Kind) {
        assert!(
            self.live.insert(handle, kind).is_none(),
            "a handle is given out twice"
        );
        self.handles.push(handle);
        // A place in the library's table (28 bits of a handle, see ARCHITECTURE.md) is taken again
        // as soon as it is free. So there are no more of them than handles lived at once, unless
        // the library keeps one that nobody holds.
        let live = self.live.values().filter(|&&other| other == kind).count();
        let peak = self.peaks.entry(kind).or_default();
        *peak = live.max(*peak);
        let place = (handle.addr() >> 4) & ((1 << 28) - 1);
        assert!(place < *peak, "a handle of {kind:?} leaked");
    }

    fn is(&self, handle: Handle, kind: Kind) -> bool {
        self.live.get(&handle) == Some(&kind)
    }

    /// The last live handle of `kind`, as a rule; else any that there was, NULL, or none at all.
    fn any(&self, kind: Kind, from: &mut Choices<'_>) -> Handle {
        match from.byte() {
            0..=199 => {
                let live = |handle: &&Handle| self.is(**handle, kind);
                self.handles
                    .iter()
                    .rev()
                    .find(live)
                    .copied()
                    .unwrap_or(null_mut())
            }
            200..=239 if !self.handles.is_empty() => self.handles[from.below(self.handles.len())],
            200..=247 => null_mut(),
            _ => std::ptr::without_provenance_mut(usize::from_le_bytes(from.bytes())),
        }
    }

    fn token(&self, from: &mut Choices<'_>) -> *const stair_cancel {
        match from.byte() {
            0..=127 => null(),
            _ => self
                .cancels
                .get(from.below(4))
                .map_or(null(), |&cancel| cancel),
        }
    }

    /// The path of `usual` in this host's folder, of something else there, or no path at all.
    fn some_path(&self, usual: &str, from: &mut Choices<'_>) -> Text {
        let name: &[u8] = match from.byte() {
            0..=199 => usual.as_bytes(),
            200..=229 => b"saved.stair",
            230..=234 => b"",
            235..=239 => b"no folder/x",
            240..=247 => b"a\0b",
            _ => b"\xff\xfe",
        };
        from.text(&[self.path("").as_bytes(), name].concat())
    }

    fn path(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        path.to_str().expect("UTF-8").to_owned()
    }
}

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}

unsafe fn free(kind: Kind, handle: Handle) {
    unsafe {
        match kind {
            Kind::Error => stair_error_free(handle.cast()),
            Kind::Model => stair_model_free(handle.cast()),
            Kind::Index => stair_index_free(handle.cast()),
            Kind::Retriever => stair_retriever_free(handle.cast()),
            Kind::Results => stair_results_free(handle.cast()),
        }
    }
}
