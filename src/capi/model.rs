//! `stair_model`: a GGUF model.

use super::boundary::{fallible, infallible, not_null};
use super::cancel::{self, stair_cancel};
use super::error::stair_error;
use super::handle::Table;
use super::options::{self, Sized32};
use super::status::stair_status;
use super::text::{self, Text};
use crate::error::{Error, Result};
use crate::{Model, ModelOptions};
use std::ffi::c_char;
use std::sync::Arc;

/// A model. It never changes: any number of threads may use it, and it may be freed while
/// retrievers made with it live.
pub struct stair_model;

pub(super) struct Record {
    pub model: Arc<Model>,
    architecture: Text,
}

static MODELS: Table<Record> = Table::new("model", 2);

/// How a model is opened. 0 everywhere is the default.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stair_model_options {
    /// sizeof(stair_model_options).
    pub struct_size: u32,
    /// Layers to keep on the graphics processor: 0 for all when there is one, -1 for none.
    pub gpu_layers: i32,
    /// 1 to read the file rather than map it, for network drives.
    pub disable_mmap: u32,
    /// 1 to load the vocabulary only: enough for `stair_index_build`.
    pub vocabulary_only: u32,
    /// Memory, in bytes, that the contexts of all retrievers with this model may take together; 0 for
    /// as much as they need. Otherwise the context of the retriever that was asked longest ago gives
    /// way to the one that is asked, and is made again at its next question: fast with a `cache_dir`,
    /// else at the price of decoding the table of contents again. Two retrievers that are asked without
    /// a pause, with room for one context, swap it at every handful of questions: both answer, slowly.
    /// The weights are not counted. Less than one context takes is STAIR_ERR_OUT_OF_MEMORY when a
    /// retriever is made.
    pub context_memory: u64,
}

// SAFETY: as the trait asks.
unsafe impl Sized32 for stair_model_options {
    const NAME: &'static str = "stair_model_options";
    const FIRST_SIZE: usize = 16;
}

/// What a model says of itself.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stair_model_info {
    /// sizeof(stair_model_info).
    pub struct_size: u32,
    /// Number of tokens in the vocabulary.
    pub vocab_size: u32,
    /// Longest context that it was trained on, in tokens.
    pub context_length: u32,
    /// Always 0.
    pub reserved: u32,
    /// Number of parameters; 0 for a vocabulary.
    pub parameters: u64,
    /// Size of the tensors in bytes; 0 for a vocabulary.
    pub bytes: u64,
    /// Fingerprint of the vocabulary; an index goes with it when its own is equal.
    pub fingerprint: u64,
    /// The architecture, `"llama"`; until the model is freed.
    pub architecture: *const c_char,
    /// Its length in bytes.
    pub architecture_len: usize,
}

// SAFETY: as the trait asks.
unsafe impl Sized32 for stair_model_info {
    const NAME: &'static str = "stair_model_info";
    const FIRST_SIZE: usize = 56;
}

/// Sets `*options`, of `size` bytes (`sizeof *options`), to the defaults.
///
/// STAIR_ERR_NULL_POINTER, STAIR_ERR_STRUCT_SIZE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stair_model_options_init(
    options: *mut stair_model_options,
    size: usize,
) -> stair_status {
    let defaults = stair_model_options {
        struct_size: 0,
        gpu_layers: 0,
        disable_mmap: 0,
        vocabulary_only: 0,
        context_memory: 0,
    };
    // SAFETY: the caller passes NULL or a struct of `size` bytes.
    fallible(std::ptr::null_mut(), || unsafe {
        options::init(options, size, &defaults)
    })
}

/// Loads the GGUF model at `path` (UTF-8). May take seconds; `cancel` stops it. `options` and
/// `cancel` may be NULL. Free `*out` with `stair_model_free`.
///
/// STAIR_ERR_NOT_FOUND, STAIR_ERR_PERMISSION_DENIED, STAIR_ERR_NOT_A_FILE, STAIR_ERR_IO,
/// STAIR_ERR_NOT_A_MODEL, STAIR_ERR_MODEL_CORRUPT, STAIR_ERR_MODEL_ARCHITECTURE,
/// STAIR_ERR_MODEL_VOCABULARY, STAIR_ERR_MODEL_LOAD, STAIR_ERR_BACKEND, STAIR_ERR_CANCELLED, and
/// those of bad arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stair_model_open(
    path: *const c_char,
    path_len: usize,
    options: *const stair_model_options,
    cancel: *const stair_cancel,
    out: *mut *mut stair_model,
    error: *mut *mut stair_error,
) -> stair_status {
    fallible(error, || {
        not_null(out, "out")?;
        // SAFETY: the header says what the pointers are.
        let (path, given, cancel) = unsafe {
            (
                text::path(path, path_len)?,
                options::read(options)?,
                cancel::token(cancel),
            )
        };
        let mut options = ModelOptions::default();
        options.gpu_layers = match given.gpu_layers {
            0 => None,
            -1 => Some(0),
            layers => Some(u32::try_from(layers).map_err(|_| {
                Error::InvalidArgument(format!(
                    "gpu_layers is {layers}: use -1, 0 or a number of layers"
                ))
            })?),
        };
        options.mmap = !flag(given.disable_mmap, "disable_mmap")?;
        options.vocabulary_only = flag(given.vocabulary_only, "vocabulary_only")?;
        options.context_memory = Some(given.context_memory).filter(|&bytes| bytes != 0);
        options.cancel = cancel;
        let model = Model::open(path, &options)?;
        let handle = MODELS.insert(Record {
            architecture: Text::new(&model.info().architecture),
            model: Arc::new(model),
        })?;
        // SAFETY: not NULL, and the caller's.
        unsafe { out.write(handle) };
        Ok(())
    })
}

/// Fills `*info`; set its `struct_size` before.
///
/// STAIR_ERR_NULL_POINTER, STAIR_ERR_STRUCT_SIZE, STAIR_ERR_INVALID_HANDLE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stair_model_get_info(
    model: *const stair_model,
    info: *mut stair_model_info,
    error: *mut *mut stair_error,
) -> stair_status {
    fallible(error, || {
        let record = find(model)?;
        let model_info = record.model.info();
        let value = stair_model_info {
            struct_size: 0,
            vocab_size: model_info.vocab_size,
            context_length: model_info.context_length,
            reserved: 0,
            parameters: model_info.parameters,
            bytes: model_info.bytes,
            fingerprint: model_info.fingerprint,
            architecture: record.architecture.as_ptr(),
            architecture_len: record.architecture.len(),
        };
        // SAFETY: the caller passes NULL or a struct of `struct_size` bytes.
        unsafe { options::write(info, &value) }
    })
}

/// Frees a model. NULL is allowed; a call that uses it ends undisturbed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stair_model_free(model: *mut stair_model) {
    infallible((), || MODELS.remove(model));
}

/// The model of an argument.
pub(super) fn find(model: *const stair_model) -> Result<Arc<Record>> {
    MODELS.find(model)
}

/// A field that is 0 or 1.
pub(super) fn flag(value: u32, name: &str) -> Result<bool> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Error::InvalidArgument(format!(
            "{name} is {value}: use 0 or 1"
        ))),
    }
}
