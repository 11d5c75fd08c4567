//! The C functions, called from Rust: every NULL, sizes that are none, handles after their end.

#![cfg(all(feature = "engine", feature = "building"))]
// What the functions take is checked here by passing it.
#![allow(clippy::undocumented_unsafe_blocks)]

mod common;

use common::{QUESTIONS, handbook, model_path};
use stair::capi::*;
use std::ffi::{CStr, c_char};
use std::path::Path;
use std::ptr::{null, null_mut};

fn text(text: &str) -> (*const c_char, usize) {
    (text.as_ptr().cast(), text.len())
}

fn path(path: &Path) -> (*const c_char, usize) {
    text(path.to_str().expect("UTF-8"))
}

/// Calls with an error object, checks status and object against each other, and frees it.
fn status(call: impl FnOnce(*mut *mut stair_error) -> stair_status) -> stair_status {
    let mut error = null_mut();
    let status = call(&mut error);
    unsafe {
        assert_eq!(stair_error_code(error), status);
        assert_eq!(error.is_null(), status == STAIR_OK);
        let mut len = usize::MAX;
        let message = CStr::from_ptr(stair_error_message(error, &mut len));
        assert_eq!(message.to_bytes().len(), len);
        assert_eq!(len == 0, status == STAIR_OK, "{message:?}");
        stair_error_free(error);
    }
    status
}

struct Handles {
    model: *mut stair_model,
    index: *mut stair_index,
    retriever: *mut stair_retriever,
}

// Handles are numbers to the library, and may be used from any thread.
unsafe impl Send for Handles {}
unsafe impl Sync for Handles {}

impl Handles {
    fn open() -> Self {
        let mut handles = Self {
            model: null_mut(),
            index: null_mut(),
            retriever: null_mut(),
        };
        let (model, len) = (model_path(), model_path().as_os_str().len());
        let (index, index_len) = path(&handbook().path);
        unsafe {
            let model = model.to_str().expect("UTF-8").as_ptr().cast();
            let open = |e| stair_model_open(model, len, null(), null(), &mut handles.model, e);
            assert_eq!(status(open), STAIR_OK);
            let open = |e| stair_index_open(index, index_len, 0, &mut handles.index, e);
            assert_eq!(status(open), STAIR_OK);
            let (model, index) = (handles.model, handles.index);
            let new = |e| stair_retriever_new(model, index, null(), &mut handles.retriever, e);
            assert_eq!(status(new), STAIR_OK);
        }
        handles
    }

    fn ask(&self, question: &str) -> (stair_status, *mut stair_results) {
        let mut results = null_mut();
        let (question, len) = text(question);
        let status = status(|e| unsafe {
            stair_retrieve(
                self.retriever,
                question,
                len,
                null(),
                null(),
                &mut results,
                e,
            )
        });
        (status, results)
    }

    fn free(&self) {
        unsafe {
            stair_retriever_free(self.retriever);
            stair_index_free(self.index);
            stair_model_free(self.model);
        }
    }
}

#[test]
fn null_is_an_error_or_allowed_and_never_the_end() {
    let (p, n) = text("x");
    let null_pointer = [STAIR_ERR_NULL_POINTER];
    let bad = |found: stair_status, allowed: &[stair_status]| {
        assert!(allowed.contains(&found), "{found} is none of {allowed:?}");
    };
    unsafe {
        // No handle and no place for one.
        bad(
            status(|e| stair_model_open(null(), 0, null(), null(), null_mut(), e)),
            &null_pointer,
        );
        let mut model = null_mut();
        bad(
            status(|e| stair_model_open(null(), n, null(), null(), &mut model, e)),
            &null_pointer,
        );
        bad(
            status(|e| stair_model_open(p, n, null(), null(), null_mut(), e)),
            &null_pointer,
        );
        bad(
            status(|e| stair_model_open(p, 0, null(), null(), &mut model, e)),
            &[STAIR_ERR_INVALID_ARGUMENT],
        );
        bad(
            status(|e| stair_model_get_info(null(), null_mut(), e)),
            &null_pointer,
        );
        bad(
            status(|e| stair_index_open(null(), 0, 0, null_mut(), e)),
            &null_pointer,
        );
        let mut index = null_mut();
        bad(
            status(|e| stair_index_open(null(), n, 0, &mut index, e)),
            &null_pointer,
        );
        bad(
            status(|e| stair_index_open(p, n, 0, null_mut(), e)),
            &null_pointer,
        );
        bad(
            status(|e| stair_index_open(p, n, 8, &mut index, e)),
            &[STAIR_ERR_INVALID_ARGUMENT],
        );
        bad(
            status(|e| stair_index_open_buffer(null(), 0, null_mut(), e)),
            &null_pointer,
        );
        bad(
            status(|e| stair_index_open_buffer(null(), 9, &mut index, e)),
            &null_pointer,
        );
        bad(
            status(|e| stair_index_open_buffer(p.cast(), n, null_mut(), e)),
            &null_pointer,
        );
        bad(
            status(|e| stair_index_open_buffer(p.cast(), usize::MAX, &mut index, e)),
            &[STAIR_ERR_INVALID_ARGUMENT],
        );
        bad(
            status(|e| stair_index_open_buffer(p.cast(), usize::MAX / 2 + 2, &mut index, e)),
            &[STAIR_ERR_INVALID_ARGUMENT],
        );
        bad(
            status(|e| stair_index_build(null(), null(), 0, null(), 0, null(), null_mut(), e)),
            &null_pointer,
        );
        bad(
            status(|e| stair_index_build(null(), p, n, null(), 0, null(), &mut index, e)),
            &null_pointer,
        );
        bad(status(|e| stair_index_save(null(), p, n, e)), &null_pointer);
        bad(
            status(|e| stair_index_peek(null(), 0, null_mut(), e)),
            &null_pointer,
        );
        bad(
            status(|e| stair_index_peek(p, n, null_mut(), e)),
            &null_pointer,
        );
        bad(
            status(|e| stair_index_get_info(null(), null_mut(), e)),
            &null_pointer,
        );
        bad(
            status(|e| stair_index_section(null(), 0, null_mut(), e)),
            &null_pointer,
        );
        bad(
            status(|e| stair_retriever_new(null(), null(), null(), null_mut(), e)),
            &null_pointer,
        );
        let mut retriever = null_mut();
        bad(
            status(|e| stair_retriever_new(null(), null(), null(), &mut retriever, e)),
            &null_pointer,
        );
        bad(
            status(|e| stair_retriever_warm(null(), null(), e)),
            &null_pointer,
        );
        bad(
            status(|e| stair_retrieve(null(), p, n, null(), null(), null_mut(), e)),
            &null_pointer,
        );
        let mut results = null_mut();
        bad(
            status(|e| stair_retrieve(null(), p, n, null(), null(), &mut results, e)),
            &null_pointer,
        );
        bad(
            status(|e| stair_results_get(null(), 0, null_mut(), e)),
            &null_pointer,
        );
        bad(
            status(|e| stair_results_path(null(), 0, 0, null_mut(), null_mut(), e)),
            &null_pointer,
        );
        bad(
            status(|e| stair_results_stats(null(), null_mut(), e)),
            &null_pointer,
        );
        bad(stair_model_options_init(null_mut(), 16), &null_pointer);
        bad(stair_build_options_init(null_mut(), 16), &null_pointer);
        bad(stair_retriever_options_init(null_mut(), 32), &null_pointer);
        bad(stair_retrieve_options_init(null_mut(), 16), &null_pointer);
        // Nobody wants to know why.
        bad(
            stair_model_open(null(), n, null(), null(), &mut model, null_mut()),
            &null_pointer,
        );
        // Allowed.
        assert_eq!(stair_results_count(null()), 0);
        assert_eq!(stair_cancel_triggered(null()), 0);
        assert_eq!(stair_error_code(null()), STAIR_OK);
        assert_eq!(*stair_error_message(null(), null_mut()), 0);
        stair_cancel_trigger(null());
        stair_cancel_free(null_mut());
        stair_error_free(null_mut());
        stair_results_free(null_mut());
        stair_retriever_free(null_mut());
        stair_index_free(null_mut());
        stair_model_free(null_mut());
        stair_log_set(None, null_mut(), STAIR_LOG_DEBUG);
        assert!(model.is_null() && index.is_null() && retriever.is_null() && results.is_null());
    }
}

#[test]
fn null_among_good_arguments() {
    let handles = Handles::open();
    let Handles {
        model,
        index,
        retriever,
    } = handles;
    let (p, n) = text(QUESTIONS[0]);
    unsafe {
        let mut results = null_mut();
        // An empty text may have no address, and is no question.
        let ask = |e| stair_retrieve(retriever, null(), 0, null(), null(), &mut results, e);
        assert_eq!(status(ask), STAIR_ERR_EMPTY_QUESTION);
        let ask = |e| stair_retrieve(retriever, null(), 5, null(), null(), &mut results, e);
        assert_eq!(status(ask), STAIR_ERR_NULL_POINTER);
        let ask = |e| stair_retrieve(retriever, p, n, null(), null(), null_mut(), e);
        assert_eq!(status(ask), STAIR_ERR_NULL_POINTER);
        let ask = |e| {
            stair_retrieve(
                retriever,
                p,
                usize::MAX - 1,
                null(),
                null(),
                &mut results,
                e,
            )
        };
        assert_eq!(status(ask), STAIR_ERR_INVALID_ARGUMENT);
        let latin = b"caf\xE9";
        let ask = |e| {
            stair_retrieve(
                retriever,
                latin.as_ptr().cast(),
                4,
                null(),
                null(),
                &mut results,
                e,
            )
        };
        assert_eq!(status(ask), STAIR_ERR_INVALID_UTF8);
        let ask = |e| {
            stair_retrieve(
                retriever,
                b"a\0b".as_ptr().cast(),
                3,
                null(),
                null(),
                &mut results,
                e,
            )
        };
        assert_eq!(status(ask), STAIR_ERR_NUL_IN_QUESTION);
        assert!(results.is_null());
        assert_eq!(
            status(|e| stair_model_get_info(model, null_mut(), e)),
            STAIR_ERR_NULL_POINTER
        );
        assert_eq!(
            status(|e| stair_index_get_info(index, null_mut(), e)),
            STAIR_ERR_NULL_POINTER
        );
        assert_eq!(
            status(|e| stair_index_section(index, 0, null_mut(), e)),
            STAIR_ERR_NULL_POINTER
        );
        assert_eq!(
            status(|e| stair_index_save(index, null(), 3, e)),
            STAIR_ERR_NULL_POINTER
        );
        let mut out = null_mut();
        let build = |e| stair_index_build(model, null(), 3, null(), 0, null(), &mut out, e);
        assert_eq!(status(build), STAIR_ERR_NULL_POINTER);
        let build = |e| stair_index_build(model, c"".as_ptr(), 0, null(), 0, null(), &mut out, e);
        assert_eq!(status(build), STAIR_ERR_NO_HEADINGS);
        // A text that ends with a NUL.
        let nts = usize::MAX;
        let build = |e| {
            stair_index_build(
                model,
                c"# A\n\na\n".as_ptr(),
                nts,
                null(),
                0,
                null(),
                &mut out,
                e,
            )
        };
        assert_eq!(status(build), STAIR_OK);
        stair_index_free(out);
    }
    handles.free();
}

#[test]
fn sizes_that_no_struct_has_are_refused_everywhere() {
    let handles = Handles::open();
    let Handles {
        model,
        index,
        retriever,
    } = handles;
    let (p, n) = text(QUESTIONS[0]);
    let (file, file_len) = path(&handbook().path);
    for size in [0u32, 4, 15, 5000, u32::MAX] {
        unsafe {
            let refused = |found| assert_eq!(found, STAIR_ERR_STRUCT_SIZE, "{size}");
            // Larger than any of the structs, so that nothing is read outside.
            let mut space = [0u64; 32];
            space[0] = size.into();
            let space = space.as_mut_ptr();
            let mut out = null_mut();
            refused(status(|e| {
                stair_model_open(p, n, space.cast(), null(), &mut out, e)
            }));
            refused(status(|e| stair_model_get_info(model, space.cast(), e)));
            let mut out = null_mut();
            refused(status(|e| {
                stair_index_build(model, p, n, null(), 0, space.cast(), &mut out, e)
            }));
            refused(status(|e| stair_index_get_info(index, space.cast(), e)));
            refused(status(|e| {
                stair_index_peek(file, file_len, space.cast(), e)
            }));
            refused(status(|e| stair_index_section(index, 0, space.cast(), e)));
            let mut out = null_mut();
            refused(status(|e| {
                stair_retriever_new(model, index, space.cast(), &mut out, e)
            }));
            let mut out = null_mut();
            refused(status(|e| {
                stair_retrieve(retriever, p, n, space.cast(), null(), &mut out, e)
            }));
            refused(stair_model_options_init(space.cast(), size as usize));
            refused(stair_build_options_init(space.cast(), size as usize));
            refused(stair_retriever_options_init(space.cast(), size as usize));
            refused(stair_retrieve_options_init(space.cast(), size as usize));
        }
    }
    handles.free();
}

#[test]
fn the_default_k_fits_an_index_of_two_leaves_and_a_chosen_one_is_not_changed() {
    let handles = Handles::open();
    let document = "# Rules\n\n## Leave\n\nTen days.\n\n## Travel\n\nBy train.\n";
    let (p, n) = text(document);
    let (mut index, mut retriever) = (null_mut(), null_mut());
    unsafe {
        let status = stair_index_build(
            handles.model,
            p,
            n,
            null(),
            0,
            null(),
            &mut index,
            null_mut(),
        );
        assert_eq!(status, STAIR_OK);
        let status = stair_retriever_new(handles.model, index, null(), &mut retriever, null_mut());
        assert_eq!(status, STAIR_OK);
        let mut options: stair_retrieve_options = std::mem::zeroed();
        assert_eq!(
            stair_retrieve_options_init(&mut options, size_of_val(&options)),
            STAIR_OK
        );
        let (p, n) = text(QUESTIONS[0]);
        let mut results = null_mut();
        let ask = |options: &stair_retrieve_options, out| {
            stair_retrieve(retriever, p, n, options, null(), out, null_mut())
        };
        assert_eq!(ask(&options, &mut results), STAIR_OK);
        assert_eq!(stair_results_count(results), 2);
        stair_results_free(results);
        options.k = 3;
        assert_eq!(ask(&options, &mut results), STAIR_ERR_INVALID_K);
        stair_retriever_free(retriever);
        stair_index_free(index);
    }
    handles.free();
}

#[test]
fn unknown_values_are_refused() {
    let handles = Handles::open();
    let Handles {
        model,
        index,
        retriever,
    } = handles;
    let (p, n) = text(QUESTIONS[0]);
    unsafe {
        let mut options: stair_retrieve_options = std::mem::zeroed();
        assert_eq!(
            stair_retrieve_options_init(&mut options, size_of_val(&options)),
            STAIR_OK
        );
        assert_eq!(options.k, STAIR_K_DEFAULT);
        let ask = |options: &stair_retrieve_options| {
            let mut out = null_mut();
            status(|e| stair_retrieve(retriever, p, n, options, null(), &mut out, e))
        };
        options.scoring = 7;
        assert_eq!(ask(&options), STAIR_ERR_INVALID_ARGUMENT);
        options.scoring = 0;
        options.k = 0;
        assert_eq!(ask(&options), STAIR_ERR_INVALID_K);
        options.k = u32::MAX;
        assert_eq!(ask(&options), STAIR_ERR_INVALID_K);
        let mut options: stair_retriever_options = std::mem::zeroed();
        options.struct_size = size_of_val(&options) as u32;
        let new = |options: &stair_retriever_options| {
            let mut out = null_mut();
            status(|e| stair_retriever_new(model, index, options, &mut out, e))
        };
        options.kv_type = 9;
        assert_eq!(new(&options), STAIR_ERR_INVALID_ARGUMENT);
        options.kv_type = 0;
        options.deterministic = 2;
        assert_eq!(new(&options), STAIR_ERR_INVALID_ARGUMENT);
        options.deterministic = 0;
        options.threads = 513;
        assert_eq!(new(&options), STAIR_ERR_INVALID_ARGUMENT);
        options.threads = 0;
        options.cache_dir_len = 1;
        assert_eq!(new(&options), STAIR_ERR_NULL_POINTER);
        // Where a text may be left out NULL is none, whatever stands for its length.
        options.cache_dir_len = usize::MAX; // STAIR_NTS
        let mut out = null_mut();
        let with_none = |e| stair_retriever_new(model, index, &options, &mut out, e);
        assert_eq!(status(with_none), STAIR_OK);
        stair_retriever_free(out);
        let nul = "a\0b";
        (options.cache_dir, options.cache_dir_len) = (nul.as_ptr().cast(), nul.len());
        assert_eq!(new(&options), STAIR_ERR_INVALID_ARGUMENT);
        let mut options: stair_model_options = std::mem::zeroed();
        options.struct_size = size_of_val(&options) as u32;
        options.gpu_layers = -2;
        let mut out = null_mut();
        let open = |e| stair_model_open(p, n, &options, null(), &mut out, e);
        assert_eq!(status(open), STAIR_ERR_INVALID_ARGUMENT);
        let mut section: stair_section = std::mem::zeroed();
        section.struct_size = size_of_val(&section) as u32;
        let get = |e| stair_index_section(index, u32::MAX, &mut section, e);
        assert_eq!(status(get), STAIR_ERR_INVALID_ARGUMENT);
    }
    handles.free();
}

#[test]
fn a_cache_folder_is_used_by_callers_who_know_it_and_not_by_older_ones() {
    let handles = Handles::open();
    let Handles { model, .. } = handles;
    let folder = tempfile::tempdir_in(common::scratch()).expect("a folder");
    let (folder_path, folder_len) = path(folder.path());
    let (document, document_len) = text("# Rules\n\nNone.\n\n# Travel\n\nBy train.\n");
    unsafe {
        let mut index = null_mut();
        let build = |e| {
            let none = null();
            stair_index_build(
                model,
                document,
                document_len,
                null(),
                0,
                none,
                &mut index,
                e,
            )
        };
        assert_eq!(status(build), STAIR_OK);
        let mut options: stair_retriever_options = std::mem::zeroed();
        (options.cache_dir, options.cache_dir_len) = (folder_path, folder_len);
        // Whoever was built with the first header has 32 bytes: what follows is not theirs.
        let sizes = [
            32,
            size_of_val(&options) as u32,
            size_of_val(&options) as u32,
        ];
        for (size, [decoded, restored, files]) in
            sizes.into_iter().zip([[1, 0, 0], [1, 0, 1], [0, 1, 1]])
        {
            options.struct_size = size;
            let mut retriever = null_mut();
            let new = |e| stair_retriever_new(model, index, &options, &mut retriever, e);
            assert_eq!(status(new), STAIR_OK);
            let (question, len) = text(QUESTIONS[0]);
            let mut results = null_mut();
            let ask = |e| stair_retrieve(retriever, question, len, null(), null(), &mut results, e);
            assert_eq!(status(ask), STAIR_OK);
            let mut stats: stair_stats = std::mem::zeroed();
            stats.struct_size = size_of_val(&stats) as u32;
            assert_eq!(
                status(|e| stair_results_stats(results, &mut stats, e)),
                STAIR_OK
            );
            let found = [stats.prefix_tokens, stats.restored_tokens].map(|n| u32::from(n > 0));
            assert_eq!(found, [decoded, restored], "{size} bytes");
            stair_results_free(results);
            // The last one to hold it waits for the file.
            stair_retriever_free(retriever);
            let entries = folder.path().read_dir().expect("lists").count();
            assert_eq!(entries, files as usize, "{size} bytes");
        }
        stair_index_free(index);
    }
    handles.free();
}

#[test]
fn handles_end_once_and_are_of_one_kind() {
    let handles = Handles::open();
    let Handles {
        model,
        index,
        retriever,
    } = handles;
    let (p, n) = text(QUESTIONS[0]);
    unsafe {
        let mut info: stair_index_info = std::mem::zeroed();
        info.struct_size = size_of_val(&info) as u32;
        let other = status(|e| stair_index_get_info(model.cast(), &mut info, e));
        assert_eq!(other, STAIR_ERR_INVALID_HANDLE);
        stair_index_free(retriever.cast());
        handles.free();
        handles.free();
        assert_eq!(
            status(|e| stair_index_get_info(index, &mut info, e)),
            STAIR_ERR_INVALID_HANDLE
        );
        let mut out = null_mut();
        let ask = |e| stair_retrieve(retriever, p, n, null(), null(), &mut out, e);
        assert_eq!(status(ask), STAIR_ERR_INVALID_HANDLE);
        assert_eq!(
            status(|e| stair_retriever_warm(retriever, null(), e)),
            STAIR_ERR_INVALID_HANDLE
        );
        let mut out = null_mut();
        let new = |e| stair_retriever_new(model, index, null(), &mut out, e);
        assert_eq!(status(new), STAIR_ERR_INVALID_HANDLE);
        // An error's own end.
        let mut error = null_mut();
        assert_eq!(
            stair_retriever_warm(retriever, null(), &mut error),
            STAIR_ERR_INVALID_HANDLE
        );
        stair_error_free(error);
        stair_error_free(error);
        assert_eq!(stair_error_code(error), STAIR_ERR_INVALID_HANDLE);
        assert_eq!(*stair_error_message(error, null_mut()), 0);
    }
}

#[test]
fn a_retriever_freed_while_it_answers_answers_still() {
    let handles = Handles::open();
    std::thread::scope(|scope| {
        let callers = [0, 1, 2].map(|i| {
            let handles = &handles;
            scope.spawn(move || {
                let (status, results) = handles.ask(QUESTIONS[i]);
                // The one that comes after the end learns of it.
                if status == STAIR_ERR_INVALID_HANDLE {
                    return false;
                }
                assert_eq!(status, STAIR_OK);
                unsafe {
                    assert_eq!(stair_results_count(results), 3);
                    let mut hit: stair_hit = std::mem::zeroed();
                    hit.struct_size = size_of_val(&hit) as u32;
                    let get = |e| stair_results_get(results, 0, &mut hit, e);
                    assert_eq!(self::status(get), STAIR_OK);
                    let title = std::slice::from_raw_parts(hit.title.cast::<u8>(), hit.title_len);
                    let section = handbook().index.section(hit.section).expect("a section");
                    assert_eq!(title, section.title.as_bytes());
                    let get = |e| stair_results_get(results, 3, &mut hit, e);
                    assert_eq!(self::status(get), STAIR_ERR_INVALID_ARGUMENT);
                    stair_results_free(results);
                    stair_results_free(results);
                    assert_eq!(stair_results_count(results), 0);
                }
                true
            })
        });
        std::thread::sleep(std::time::Duration::from_millis(300));
        handles.free();
        let answered = callers.map(|caller| caller.join().expect("returns"));
        assert!(answered.contains(&true), "{answered:?}");
    });
}

#[test]
fn a_cancel_token_may_be_freed_while_a_call_has_it() {
    let handles = Handles::open();
    let cancel = stair_cancel_new();
    assert!(!cancel.is_null());
    let (p, n) = text(QUESTIONS[0]);
    let mut results = null_mut();
    unsafe {
        stair_cancel_trigger(cancel);
        assert_eq!(stair_cancel_triggered(cancel), 1);
        let ask = |e| stair_retrieve(handles.retriever, p, n, null(), cancel, &mut results, e);
        assert_eq!(status(ask), STAIR_ERR_CANCELLED);
        let warm = |e| stair_retriever_warm(handles.retriever, cancel, e);
        assert_eq!(status(warm), STAIR_ERR_CANCELLED);
        let file = model_path();
        let (model, len) = path(&file);
        let mut out = null_mut();
        let open = |e| stair_model_open(model, len, null(), cancel, &mut out, e);
        assert_eq!(status(open), STAIR_ERR_CANCELLED);
        stair_cancel_free(cancel);
    }
    handles.free();
}
