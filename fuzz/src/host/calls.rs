//! Calls of `stair.h` in any order with any arguments that C allows. A pointer is NULL or good for
//! as many bytes as the call is told, and a `stair_cancel` is freed once: the rest is undefined by
//! docs/abi.md.

use super::{Host, Kind, free};
use crate::arguments::{Choices, Memory, OrNull};
use stair::capi::*;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};

impl Host {
    /// One call. What it returns must fit what is known of its handles.
    pub(super) fn call(&mut self, from: &mut Choices<'_>) {
        // SAFETY: the arguments are what the module says, which is what the header asks for.
        unsafe {
            match from.byte() % 32 {
                0 => self.versions(from),
                1 => self.error(from),
                2 | 3 => self.cancel(from),
                4 => self.log(from),
                5 => self.init(from),
                6 | 7 => self.model_open(from),
                8 => self.model_info(from),
                9 | 10 => self.index_open(from),
                11 => self.index_peek(from),
                12 | 13 => self.index_open_buffer(from),
                14 | 15 => self.index_build(from),
                16 => self.index_save(from),
                17 => self.index_info(from),
                18 => self.index_section(from),
                19 | 20 => self.retriever_new(from),
                21 => self.warm(from),
                22..=24 => self.retrieve(from),
                25 => self.results_get(from),
                26 => self.results_path(from),
                27 => self.results_stats(from),
                _ => self.free(from),
            }
        }
    }

    unsafe fn versions(&mut self, from: &mut Choices<'_>) {
        assert_eq!(stair_abi_version(), STAIR_ABI_VERSION);
        let name = stair_status_name(from.u32() as stair_status);
        for text in [stair_version(), stair_build_info(), name] {
            assert!(!unsafe { CStr::from_ptr(text) }.is_empty());
        }
    }

    unsafe fn error(&mut self, from: &mut Choices<'_>) {
        let error = self.any(Kind::Error, from);
        let live = self.is(error, Kind::Error);
        let mut len = 0;
        let out = if from.yes() { &raw mut len } else { null_mut() };
        unsafe {
            let code = stair_error_code(error.cast());
            let dead = match error.is_null() {
                true => STAIR_OK,
                false => STAIR_ERR_INVALID_HANDLE,
            };
            assert!(live && code != STAIR_OK || code == dead);
            let message = CStr::from_ptr(stair_error_message(error.cast(), out));
            assert!(message.to_str().is_ok());
            assert_eq!(!message.is_empty(), live);
            assert!(out.is_null() || len == message.count_bytes());
        }
    }

    unsafe fn cancel(&mut self, from: &mut Choices<'_>) {
        let action = from.byte() % 4;
        let token = self.token(from);
        unsafe {
            match action {
                0 | 1 => self.cancels.push(stair_cancel_new()),
                2 => {
                    stair_cancel_trigger(token);
                    assert_eq!(stair_cancel_triggered(token), i32::from(!token.is_null()));
                }
                _ => {
                    self.cancels.retain(|&live| live.cast_const() != token);
                    stair_cancel_free(token.cast_mut());
                }
            }
        }
    }

    unsafe fn log(&mut self, from: &mut Choices<'_>) {
        unsafe extern "C" fn listen(_: i32, text: *const c_char, len: usize, _: *mut c_void) {
            // SAFETY: as the header promises.
            assert!(unsafe { CStr::from_ptr(text) }.count_bytes() <= len);
        }
        let callback: stair_log_fn = if from.yes() { Some(listen) } else { None };
        unsafe { stair_log_set(callback, null_mut(), from.u32() as i32) };
    }

    unsafe fn init(&mut self, from: &mut Choices<'_>) {
        let kind = from.below(4);
        // The structs in the order of the calls below.
        let size = from.struct_size([16, 16, 32, 20][kind]);
        let memory = Memory::unset(size.min(4096));
        let to = if from.yes() {
            memory.as_mut_ptr()
        } else {
            null_mut()
        };
        let status = unsafe {
            match kind {
                0 => stair_model_options_init(to.cast(), size),
                1 => stair_build_options_init(to.cast(), size),
                2 => stair_retriever_options_init(to.cast(), size),
                _ => stair_retrieve_options_init(to.cast(), size),
            }
        };
        if status == STAIR_OK {
            assert_eq!(memory.as_slice()[..4], (size as u32).to_le_bytes());
            let k = if kind == 3 { STAIR_K_DEFAULT } else { 0 };
            assert_eq!(memory.as_slice()[4..8], k.to_le_bytes());
            assert!(memory.as_slice()[8..].iter().all(|&byte| byte == 0));
        } else {
            assert!([STAIR_ERR_NULL_POINTER, STAIR_ERR_STRUCT_SIZE].contains(&status));
            assert!(memory.is_unset());
        }
    }

    pub(super) unsafe fn model_open(&mut self, from: &mut Choices<'_>) {
        // The library trusts a GGUF to mean well, so a made-up one is no argument of the ABI.
        let path = self.some_path("tiny.gguf", from);
        let vocabulary_only = u32::from(from.byte() > 200);
        let fields = [0, from.u32_or(0), from.u32_or(0), vocabulary_only];
        let options = from.options(&fields);
        let cancel = self.token(from);
        self.making(Kind::Model, from, &[], |out, error| unsafe {
            stair_model_open(
                path.ptr(),
                path.len,
                options.as_ptr().cast(),
                cancel,
                out.cast(),
                error,
            )
        });
    }

    unsafe fn model_info(&mut self, from: &mut Choices<'_>) {
        let model = self.any(Kind::Model, from);
        self.filling(
            &[(model, Kind::Model)],
            from,
            |to: *mut stair_model_info, error| unsafe {
                stair_model_get_info(model.cast(), to, error)
            },
        );
    }

    unsafe fn index_open(&mut self, from: &mut Choices<'_>) {
        let path = self.some_path("good.stair", from);
        let flags = match from.byte() {
            0..=127 => 0,
            128..=239 => STAIR_INDEX_COPY,
            other => other.into(),
        };
        self.making(Kind::Index, from, &[], |out, error| unsafe {
            stair_index_open(path.ptr(), path.len, flags, out.cast(), error)
        });
    }

    unsafe fn index_peek(&mut self, from: &mut Choices<'_>) {
        let path = self.some_path("good.stair", from);
        self.filling(&[], from, |to: *mut stair_index_info, error| unsafe {
            stair_index_peek(path.ptr(), path.len, to, error)
        });
    }

    unsafe fn index_open_buffer(&mut self, from: &mut Choices<'_>) {
        let mut bytes = std::fs::read(self.path("good.stair")).expect("reads");
        match from.below(4) {
            1 => bytes.truncate(from.u32() as usize % bytes.len()),
            2 => {
                for _ in 0..1 + from.below(3) {
                    let place = usize::from(u16::from_le_bytes(from.bytes())) % bytes.len();
                    bytes[place] = from.byte();
                }
                bytes = crate::forge(&bytes).unwrap_or(bytes);
            }
            3 => bytes = from.rest().to_vec(),
            _ => (),
        }
        let memory = Memory::of(&bytes);
        let (start, len) = (memory.as_mut_ptr().cast::<u8>().cast_const(), bytes.len());
        let (start, len) = match from.byte() {
            0..=229 => (start, len),
            230..=239 => (null(), len),
            240..=249 => (start, usize::MAX - usize::from(from.byte())),
            _ => (start, 0),
        };
        self.making(Kind::Index, from, &[], |out, error| unsafe {
            stair_index_open_buffer(start, len, out.cast(), error)
        });
    }

    pub(super) unsafe fn index_build(&mut self, from: &mut Choices<'_>) {
        let model = self.any(Kind::Model, from);
        let (format, document): (u32, &[u8]) = match from.below(4) {
            0 | 1 => (0, b"# T\n\n## the A\n\nBy train.\n\n## B\n\nTen days.\n"),
            2 => (STAIR_FORMAT_TOC_JSON, TOC_JSON),
            _ => (from.u32() % 4, from.rest()),
        };
        let document = from.text(document);
        let title: [u8; 3] = from.bytes();
        let title = from.text(&title[..if title[0] == 0 { 0 } else { 3 }]);
        let fields = [0, format, from.u32_or(0) % 3, from.u32_or(0) % 3];
        let options = from.options(&fields);
        self.making(
            Kind::Index,
            from,
            &[(model, Kind::Model)],
            |out, error| unsafe {
                stair_index_build(
                    model.cast(),
                    document.ptr(),
                    document.len,
                    title.ptr(),
                    title.len,
                    options.as_ptr().cast(),
                    out.cast(),
                    error,
                )
            },
        );
    }

    unsafe fn index_save(&mut self, from: &mut Choices<'_>) {
        let index = self.any(Kind::Index, from);
        let path = self.some_path("saved.stair", from);
        self.using(&[(index, Kind::Index)], from, |error| unsafe {
            stair_index_save(index.cast(), path.ptr(), path.len, error)
        });
    }

    unsafe fn index_info(&mut self, from: &mut Choices<'_>) {
        let index = self.any(Kind::Index, from);
        let info = self.filling(&[(index, Kind::Index)], from, |to, error| unsafe {
            stair_index_get_info(index.cast(), to, error)
        });
        if let Some(info) = info {
            let info: stair_index_info = info;
            assert!(info.leaves > 0 && info.leaves <= info.sections);
            unsafe { read(info.title, info.title_len) };
        }
    }

    unsafe fn index_section(&mut self, from: &mut Choices<'_>) {
        let index = self.any(Kind::Index, from);
        let id = from.u32();
        let section = self.filling(&[(index, Kind::Index)], from, |to, error| unsafe {
            stair_index_section(index.cast(), id, to, error)
        });
        if let Some(section) = section {
            let section: stair_section = section;
            assert_eq!(section.id, id);
            assert!(section.parent == STAIR_NONE || section.parent < id);
            // Texts are read while their owner lives.
            unsafe {
                read(section.number, section.number_len);
                read(section.title, section.title_len);
                read(section.text, section.text_len);
            }
        }
    }

    pub(super) unsafe fn retriever_new(&mut self, from: &mut Choices<'_>) {
        let model = self.any(Kind::Model, from);
        let index = self.any(Kind::Index, from);
        let fields = [
            0,
            // How many threads it takes and how much memory is the host's to know.
            1 + from.u32_or(0) % 2,
            from.u32_or(0) % 10_000,
            from.u32_or(100) % 1_000,
            from.u32_or(2),
            from.u32_or(0),
            from.u32_or(0),
            from.u32_or(0),
        ];
        let options = from.options(&fields);
        let mut handles = vec![(index, Kind::Index)];
        if !model.is_null() {
            handles.push((model, Kind::Model));
        }
        let made = self.making(Kind::Retriever, from, &handles, |out, error| unsafe {
            let options = options.as_ptr().cast();
            stair_retriever_new(model.cast(), index.cast(), options, out.cast(), error)
        });
        if model.is_null() {
            self.lexical.extend(made);
        }
    }

    unsafe fn warm(&mut self, from: &mut Choices<'_>) {
        let retriever = self.any(Kind::Retriever, from);
        let cancel = self.token(from);
        self.using(&[(retriever, Kind::Retriever)], from, |error| unsafe {
            stair_retriever_warm(retriever.cast(), cancel, error)
        });
    }

    pub(super) unsafe fn retrieve(&mut self, from: &mut Choices<'_>) {
        let retriever = self.any(Kind::Retriever, from);
        let question: &[u8] = match from.below(4) {
            3 => from.rest(),
            _ => b"the train?",
        };
        let question = from.text(question);
        let fields = [
            0,
            from.u32_or(STAIR_K_DEFAULT),
            from.u32_or(0),
            from.u32_or(0).saturating_mul(100),
            from.f32().to_bits(),
        ];
        let options = from.options(&fields);
        let cancel = self.token(from);
        let handles = [(retriever, Kind::Retriever)];
        let made = self.making(Kind::Results, from, &handles, |out, error| unsafe {
            let options = options.as_ptr().cast();
            stair_retrieve(
                retriever.cast(),
                question.ptr(),
                question.len,
                options,
                cancel,
                out.cast(),
                error,
            )
        });
        if self.lexical.contains(&retriever) {
            self.lexical.extend(made);
        }
    }

    unsafe fn results_get(&mut self, from: &mut Choices<'_>) {
        let results = self.any(Kind::Results, from);
        let i = from.u32() as usize;
        let count = unsafe { stair_results_count(results.cast()) };
        assert_eq!(count > 0, self.is(results, Kind::Results));
        let hit = self.filling(&[(results, Kind::Results)], from, |to, error| unsafe {
            stair_results_get(results.cast(), i, to, error)
        });
        if let Some(hit) = hit {
            let hit: stair_hit = hit;
            assert!(i < count);
            // What docs/abi.md says of scores.
            let lexical = self.lexical.contains(&results);
            assert_eq!(hit.log_prob.is_nan(), lexical);
            assert!(hit.score.is_finite() && (hit.lexical.is_nan() || hit.lexical >= 0.0));
            assert!(!lexical || hit.score == hit.lexical);
            assert!(!hit.lexical.is_nan() || hit.score == hit.log_prob);
            unsafe {
                read(hit.number, hit.number_len);
                read(hit.title, hit.title_len);
                read(hit.text, hit.text_len);
            }
        }
    }

    unsafe fn results_path(&mut self, from: &mut Choices<'_>) {
        let results = self.any(Kind::Results, from);
        let (i, entry) = (from.u32() as usize, from.u32() as usize);
        let (mut text, mut len) = (null(), usize::MAX);
        let to = if from.yes() {
            &raw mut text
        } else {
            null_mut()
        };
        let out = if from.yes() { &raw mut len } else { null_mut() };
        let status = self.using(&[(results, Kind::Results)], from, |error| unsafe {
            stair_results_path(results.cast(), i, entry, to, out, error)
        });
        if status != STAIR_OK {
            assert!(text.is_null() && len == usize::MAX);
        } else if !out.is_null() {
            unsafe { read(text, len) };
        }
    }

    unsafe fn results_stats(&mut self, from: &mut Choices<'_>) {
        let results = self.any(Kind::Results, from);
        let stats = self.filling(&[(results, Kind::Results)], from, |to, error| unsafe {
            stair_results_stats(results.cast(), to, error)
        });
        if let Some(stats) = stats {
            let stats: stair_stats = stats;
            let lexical = self.lexical.contains(&results);
            assert_eq!(stats.legal_mass.is_nan(), lexical);
            assert!(lexical || (0.0..=1.001).contains(&stats.legal_mass));
            assert!(stats.total_ms >= 0.0);
        }
    }

    /// Frees any handle as any kind, also again: only the right one ends.
    unsafe fn free(&mut self, from: &mut Choices<'_>) {
        use Kind::*;
        let kind = [Error, Model, Index, Retriever, Results][from.below(5)];
        let handle = self.any(kind, from);
        unsafe { free(kind, handle) };
        if self.is(handle, kind) {
            self.live.remove(&handle);
        }
    }
}

const TOC_JSON: &[u8] = br#"{"title":"T","sections":[{"level":1,"title":"the A"}]}"#;

/// Reads a text that the library lent, and the NUL after it.
unsafe fn read(text: *const c_char, len: usize) {
    if !text.is_null() {
        let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), len + 1) };
        assert_eq!(bytes[len], 0);
        assert!(std::str::from_utf8(&bytes[..len]).is_ok());
    }
}
