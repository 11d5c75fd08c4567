//! `stair_retriever`: questions in, sections out.

use super::boundary::{fallible, infallible, not_null};
use super::cancel::{self, stair_cancel};
use super::error::stair_error;
use super::handle::Table;
use super::index::{self, stair_index};
use super::model::{self, flag, stair_model};
use super::options::{self, Sized32};
use super::results::{self, stair_results};
use super::status::stair_status;
use super::text;
use crate::error::{Error, Result};
use crate::search::Scoring;
use crate::{KvType, RetrieveOptions, Retriever, RetrieverOptions};
use std::ffi::c_char;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

/// A model and an index together, or an index alone. Any number of threads may ask at the same time:
/// their questions share the model's work.
pub struct stair_retriever;

static RETRIEVERS: Table<Retriever> = Table::new("retriever", 4);

/// `stair_retriever_options.kv_type`: 16-bit floats, the default.
pub const STAIR_KV_F16: u32 = 1;
/// `stair_retriever_options.kv_type`: 8-bit blocks, half the memory, slightly different scores.
pub const STAIR_KV_Q8_0: u32 = 2;
/// `stair_retriever_options.kv_type`: 32-bit floats.
pub const STAIR_KV_F32: u32 = 3;

/// `stair_retrieve_options.k`: 3, or all leaves when there are fewer.
// Not the largest number, which is what a binding makes of one that does not fit.
pub const STAIR_K_DEFAULT: u32 = 0x8000_0000;

/// `stair_retrieve_options.scoring`: exact log-probabilities, the default.
pub const STAIR_SCORING_EXACT: u32 = 0;
/// `stair_retrieve_options.scoring`: renormalised over what the document allows at each step;
/// cheaper, and ranks worse.
pub const STAIR_SCORING_LOCAL: u32 = 1;

/// How a retriever is made. 0 everywhere is the default.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stair_retriever_options {
    /// sizeof(stair_retriever_options).
    pub struct_size: u32,
    /// Threads that compute; 0 for as many as the process may use.
    pub threads: u32,
    /// Length of the context in tokens; 0 for what max_parallel questions of 64 tokens need, or a
    /// single one of max_question_tokens if that is more.
    pub context_tokens: u32,
    /// Room for one question, in tokens; 0 for 512.
    pub max_question_tokens: u32,
    /// Questions that share the model's work; 0 for 8. More wait their turn, as do those for which
    /// the context has no room beside the others.
    pub max_parallel: u32,
    /// STAIR_KV_F16 (the default), STAIR_KV_Q8_0 or STAIR_KV_F32.
    pub kv_type: u32,
    /// 1 for one question at a time: bit-equal scores whatever else is asked.
    pub deterministic: u32,
    /// Questions that may wait for their turn; 0 for 4,096. Who comes when so many do gets
    /// STAIR_ERR_BUSY at once.
    pub max_waiting: u32,
    /// Path (UTF-8) of a folder for the warm file: what the model remembers of the table of contents,
    /// written after the first answer and read by every later retriever with the same model, index
    /// and options, which then need not decode it. It is made when it is not there. A relative path
    /// is taken from the working directory at the time of `stair_retriever_new`. A file or a
    /// folder that cannot be used is as none, and the log says why at STAIR_LOG_WARN. Whoever may
    /// write to the folder can change what is answered. NULL or empty for no file.
    pub cache_dir: *const c_char,
    /// Length of the path in bytes, or STAIR_NTS.
    pub cache_dir_len: usize,
}

// SAFETY: as the trait asks.
unsafe impl Sized32 for stair_retriever_options {
    const NAME: &'static str = "stair_retriever_options";
    const FIRST_SIZE: usize = 32;
}

/// How a question is asked. 0 is the default of every field but `k`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stair_retrieve_options {
    /// sizeof(stair_retrieve_options).
    pub struct_size: u32,
    /// Number of sections to find: 1 to the number of leaves, or STAIR_K_DEFAULT, which
    /// `stair_retrieve_options_init` sets.
    pub k: u32,
    /// STAIR_SCORING_EXACT or STAIR_SCORING_LOCAL.
    pub scoring: u32,
    /// Longest wait in milliseconds; 0 for as long as it takes.
    pub timeout_ms: u32,
    /// How much a section's words count beside what the model says: a hit is ranked by `log_prob`
    /// and this times `lexical`. 0 leaves the words out; else finite and above 0. Without a model
    /// only the words count, whatever it is.
    pub lexical_weight: f32,
}

// SAFETY: as the trait asks.
unsafe impl Sized32 for stair_retrieve_options {
    const NAME: &'static str = "stair_retrieve_options";
    const FIRST_SIZE: usize = 16;
}

/// Sets `*options`, of `size` bytes (`sizeof *options`), to the defaults.
///
/// STAIR_ERR_NULL_POINTER, STAIR_ERR_STRUCT_SIZE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stair_retriever_options_init(
    options: *mut stair_retriever_options,
    size: usize,
) -> stair_status {
    let defaults = stair_retriever_options {
        struct_size: 0,
        threads: 0,
        context_tokens: 0,
        max_question_tokens: 0,
        max_parallel: 0,
        kv_type: 0,
        deterministic: 0,
        max_waiting: 0,
        cache_dir: ptr::null(),
        cache_dir_len: 0,
    };
    // SAFETY: the caller passes NULL or a struct of `size` bytes.
    fallible(ptr::null_mut(), || unsafe {
        options::init(options, size, &defaults)
    })
}

/// Sets `*options`, of `size` bytes (`sizeof *options`), to the defaults; `k` to STAIR_K_DEFAULT.
///
/// STAIR_ERR_NULL_POINTER, STAIR_ERR_STRUCT_SIZE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stair_retrieve_options_init(
    options: *mut stair_retrieve_options,
    size: usize,
) -> stair_status {
    let defaults = stair_retrieve_options {
        struct_size: 0,
        k: STAIR_K_DEFAULT,
        scoring: STAIR_SCORING_EXACT,
        timeout_ms: 0,
        lexical_weight: 0.0,
    };
    // SAFETY: the caller passes NULL or a struct of `size` bytes.
    fallible(ptr::null_mut(), || unsafe {
        options::init(options, size, &defaults)
    })
}

/// A retriever over `index` with `model`, both of which may be freed afterwards. It starts one
/// thread; the table of contents is decoded, or read from the warm file, for the first question or by
/// `stair_retriever_warm`. Where `context_memory` has no room, it waits until other retrievers have
/// answered whom they serve, five minutes at most. `options` may be NULL. Free `*out` with `stair_retriever_free`.
///
/// `model` may be NULL. Then the words that the question has in common with sections and known questions decide:
/// nothing is decoded, no thread is started, and `options` are checked but not used. For any `k` there
/// are `k` hits; those that share no word with the question score 0 and stand in document order.
///
/// STAIR_ERR_VOCABULARY_MISMATCH, STAIR_ERR_CONTEXT_TOO_SMALL, STAIR_ERR_OUT_OF_MEMORY (also when
/// nobody gave way in time), and those of bad arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stair_retriever_new(
    model: *const stair_model,
    index: *const stair_index,
    options: *const stair_retriever_options,
    out: *mut *mut stair_retriever,
    error: *mut *mut stair_error,
) -> stair_status {
    fallible(error, || {
        not_null(out, "out")?;
        let model = match model.is_null() {
            true => None,
            false => Some(model::find(model)?),
        };
        let index = Arc::clone(&index::find(index)?.index);
        // SAFETY: the header says what the pointer is.
        let given = unsafe { options::read(options)? };
        let mut options = RetrieverOptions::default();
        options.threads = nonzero(given.threads);
        options.context_tokens = nonzero(given.context_tokens);
        options.max_question_tokens =
            nonzero(given.max_question_tokens).unwrap_or(options.max_question_tokens);
        options.max_parallel = nonzero(given.max_parallel).unwrap_or(options.max_parallel);
        options.max_waiting = nonzero(given.max_waiting).unwrap_or(options.max_waiting);
        options.kv_type = match given.kv_type {
            0 | STAIR_KV_F16 => KvType::F16,
            STAIR_KV_Q8_0 => KvType::Q8_0,
            STAIR_KV_F32 => KvType::F32,
            unknown => {
                let what = format!("kv_type is {unknown}: use a STAIR_KV_ constant");
                return Err(Error::InvalidArgument(what));
            }
        };
        options.deterministic = flag(given.deterministic, "deterministic")?;
        // SAFETY: the header says what the pointer is.
        options.cache_dir =
            unsafe { text::optional_path(given.cache_dir, given.cache_dir_len, "cache_dir")? };
        let retriever = match model {
            Some(model) => Retriever::new(Arc::clone(&model.model), index, &options)?,
            None => Retriever::lexical(index),
        };
        let handle = RETRIEVERS.insert(retriever)?;
        // SAFETY: not NULL, and the caller's.
        unsafe { out.write(handle) };
        Ok(())
    })
}

/// Reads the sections' words and, with a model, decodes the table of contents or reads it from the
/// warm file, where that is not done yet, and returns when it is: then the first question need not
/// wait. `cancel` may be NULL.
///
/// STAIR_ERR_CANCELLED, STAIR_ERR_DECODE, STAIR_ERR_BUSY, STAIR_ERR_OUT_OF_MEMORY when the context
/// had given way and cannot be made again, STAIR_ERR_CLOSED, STAIR_ERR_INVALID_HANDLE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stair_retriever_warm(
    retriever: *const stair_retriever,
    cancel: *const stair_cancel,
    error: *mut *mut stair_error,
) -> stair_status {
    fallible(error, || {
        // SAFETY: the header says what the pointer is.
        let cancel = unsafe { cancel::token(cancel) };
        with(retriever, |retriever| retriever.warm(&cancel).map(|_| ()))
    })
}

/// Finds the sections that answer `question` (UTF-8). `options` may be NULL: the 3 best, or all
/// when there are fewer. `cancel` may be NULL. Free `*out` with `stair_results_free`; it does not
/// need the retriever any more.
///
/// STAIR_ERR_EMPTY_QUESTION, STAIR_ERR_INVALID_UTF8, STAIR_ERR_NUL_IN_QUESTION,
/// STAIR_ERR_QUESTION_TOO_LONG (with a model), STAIR_ERR_INVALID_K, STAIR_ERR_INVALID_ARGUMENT for a
/// `lexical_weight` that is negative or not finite, STAIR_ERR_CANCELLED, STAIR_ERR_TIMEOUT,
/// STAIR_ERR_DECODE, STAIR_ERR_BUSY, STAIR_ERR_OUT_OF_MEMORY when the context had given way and cannot
/// be made again, STAIR_ERR_CLOSED, and those of bad arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stair_retrieve(
    retriever: *const stair_retriever,
    question: *const c_char,
    question_len: usize,
    options: *const stair_retrieve_options,
    cancel: *const stair_cancel,
    out: *mut *mut stair_results,
    error: *mut *mut stair_error,
) -> stair_status {
    fallible(error, || {
        not_null(out, "out")?;
        // SAFETY: the header says what the pointers are.
        let (question, cancel) = unsafe {
            (
                text::utf8(question, question_len, "question")?,
                cancel::token(cancel),
            )
        };
        let mut asked = RetrieveOptions::default();
        asked.cancel = cancel;
        if !options.is_null() {
            // SAFETY: the header says what the pointer is.
            let given = unsafe { options::read(options)? };
            asked.k = (given.k != STAIR_K_DEFAULT).then_some(given.k as usize);
            asked.scoring = match given.scoring {
                STAIR_SCORING_EXACT => Scoring::Exact,
                STAIR_SCORING_LOCAL => Scoring::Local,
                unknown => {
                    let what = format!("scoring is {unknown}: use a STAIR_SCORING_ constant");
                    return Err(Error::InvalidArgument(what));
                }
            };
            asked.lexical_weight = given.lexical_weight;
            asked.timeout = nonzero(given.timeout_ms).map(|ms| Duration::from_millis(ms.into()));
        }
        let found = with(retriever, |retriever| retriever.retrieve(question, &asked))?;
        let handle = results::new(&found)?;
        // SAFETY: not NULL, and the caller's.
        unsafe { out.write(handle) };
        Ok(())
    })
}

/// Frees a retriever and ends its thread. NULL is allowed. Calls that are under way end first,
/// undisturbed, on their own threads; a warm file is written to its end. Where no call is under way this
/// waits for the thread's current decode and for that file; so let all calls return first to be sure that
/// nothing of it is left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stair_retriever_free(retriever: *mut stair_retriever) {
    infallible((), || RETRIEVERS.remove(retriever));
}

/// Calls `call` with a retriever.
///
/// When it was freed meanwhile, the call's own reference is the last one, and its end waits for the
/// worker: on a thread of its own where the caller has given up waiting.
fn with<T>(
    retriever: *const stair_retriever,
    call: impl FnOnce(&Retriever) -> Result<T>,
) -> Result<T> {
    let retriever = RETRIEVERS.find(retriever)?;
    let result = call(&retriever);
    if matches!(result, Err(Error::Cancelled | Error::Timeout { .. }))
        && let Some(last) = Arc::into_inner(retriever)
    {
        let reaper = std::thread::Builder::new().name("stair-reaper".to_owned());
        // Where no thread can be had the closure is dropped here, and the retriever with it.
        drop(reaper.spawn(move || drop(last)));
    }
    result
}

fn nonzero(value: u32) -> Option<u32> {
    (value != 0).then_some(value)
}
