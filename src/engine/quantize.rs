//! A model in other number types, by ggml's own code.

use super::gguf::Header;
use super::gguf_file::{GgufFile, c_path};
use super::log;
use crate::error::{Error, Result};
use crate::files::AtomicFile;
use llama_cpp_sys_2 as sys;
use std::path::Path;

/// The number types by name. K-quants mix several types over a model's tensors.
const TYPES: &[(&str, sys::llama_ftype)] = &[
    ("f32", sys::LLAMA_FTYPE_ALL_F32),
    ("f16", sys::LLAMA_FTYPE_MOSTLY_F16),
    ("bf16", sys::LLAMA_FTYPE_MOSTLY_BF16),
    ("q8_0", sys::LLAMA_FTYPE_MOSTLY_Q8_0),
    ("q4_0", sys::LLAMA_FTYPE_MOSTLY_Q4_0),
    ("q4_1", sys::LLAMA_FTYPE_MOSTLY_Q4_1),
    ("iq4_nl", sys::LLAMA_FTYPE_MOSTLY_IQ4_NL),
    ("q5_0", sys::LLAMA_FTYPE_MOSTLY_Q5_0),
    ("q5_1", sys::LLAMA_FTYPE_MOSTLY_Q5_1),
    ("q4_k_s", sys::LLAMA_FTYPE_MOSTLY_Q4_K_S),
    ("q4_k_m", sys::LLAMA_FTYPE_MOSTLY_Q4_K_M),
    ("q5_k_s", sys::LLAMA_FTYPE_MOSTLY_Q5_K_S),
    ("q5_k_m", sys::LLAMA_FTYPE_MOSTLY_Q5_K_M),
    ("q6_k", sys::LLAMA_FTYPE_MOSTLY_Q6_K),
];

/// The names that [`quantize`] takes.
pub fn quantize_types() -> impl Iterator<Item = &'static str> {
    TYPES.iter().map(|(name, _)| *name)
}

/// A number type that a model's weights are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileType(usize);

impl FileType {
    /// The type of that name, in any case.
    pub fn named(name: &str) -> Result<Self> {
        let found = quantize_types().position(|known| known.eq_ignore_ascii_case(name));
        found.map(Self).ok_or_else(|| {
            let names: Vec<&str> = quantize_types().collect();
            let what = format!("unknown type {name:?}: use one of {}", names.join(", "));
            Error::InvalidArgument(what)
        })
    }

    /// The type with that number in `general.file_type`.
    pub fn numbered(number: u32) -> Option<Self> {
        TYPES
            .iter()
            .position(|&(_, ftype)| i64::from(ftype) == i64::from(number))
            .map(Self)
    }

    pub fn name(self) -> &'static str {
        TYPES[self.0].0
    }

    /// The largest number that a matrix may hold: scales of blocks are 16-bit floats.
    pub fn largest(self) -> f32 {
        match TYPES[self.0].1 {
            sys::LLAMA_FTYPE_ALL_F32 => f32::MAX,
            // The next one rounds to infinity.
            sys::LLAMA_FTYPE_MOSTLY_BF16 => f32::from_bits(0x7F7F_0000),
            _ => 65504.0,
        }
    }
}

/// Writes the model at `input` to `output` with its weights as `to`, `"q8_0"` for example. The
/// output appears whole or not at all.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for an unknown type; what reading a model or writing a file gives;
/// [`Error::ModelLoad`] with what ggml said, and for numbers that the type cannot hold.
pub fn quantize(input: &Path, output: &Path, to: &str, threads: u32) -> Result<()> {
    let to = FileType::named(to)?;
    let file = AtomicFile::create(output)?;
    convert(input, file.temporary_path(), to, threads, input)?;
    file.commit()
}

/// Writes the model at `input` over the file at `output` with its weights as `to`. `model` is what
/// an error calls the input.
pub(super) fn convert(
    input: &Path,
    output: &Path,
    to: FileType,
    threads: u32,
    model: &Path,
) -> Result<()> {
    check_numbers(input, to, model)?;
    let from = c_path(input)?;
    let path = c_path(output)?;
    // SAFETY: the default parameters are valid, and only plain fields are changed.
    let mut params = unsafe { sys::llama_model_quantize_default_params() };
    params.ftype = TYPES[to.0].1;
    params.nthread = i32::try_from(threads).unwrap_or(i32::MAX);
    // From one quantised type to another loses a little of the first one's precision; refusing
    // would only help whoever has the original.
    params.allow_requantize = true;
    let (status, errors) = log::capture(|| {
        // SAFETY: both paths are NUL-terminated and live during the call, which catches its own
        // exceptions.
        unsafe { sys::llama_model_quantize(from.as_ptr(), path.as_ptr(), &params) }
    });
    if status != 0 {
        // What C++ says of every failed write.
        let remedy = match errors.contains("iostream") {
            true => "; is the disk full?",
            false => "",
        };
        return Err(Error::ModelLoad {
            path: model.to_path_buf(),
            why: format!("it could not be quantised: {errors}{remedy}"),
        });
    }
    // A full disk may show only as a file that is too short.
    Header::read(output).map(|_| ())
}

/// Finds what ggml would refuse after it wrote about it to standard error.
fn check_numbers(input: &Path, to: FileType, model: &Path) -> Result<()> {
    let file = GgufFile::open(input)?;
    for tensor in file.tensors() {
        // Vectors keep their type.
        let largest = if tensor.rows() > 1 {
            to.largest()
        } else {
            f32::MAX
        };
        if !file.is_within(tensor, largest)? {
            return Err(Error::ModelLoad {
                path: model.to_path_buf(),
                why: format!(
                    "the tensor {:?} holds numbers that are not finite, or too large for {}: copy \
                     the model again, or take the type f32",
                    tensor.name,
                    to.name()
                ),
            });
        }
    }
    Ok(())
}
