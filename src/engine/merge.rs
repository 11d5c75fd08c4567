//! A model and a LoRA adapter as one model: `W + (alpha / rank) B A` in 32-bit floats, and then the
//! number type that is wanted, by ggml's own code.

use super::adapter::{Adapter, Delta};
use super::gguf_file::{GgufFile, Head, SLAB, Tensor};
use super::model::{Model, ModelOptions};
use super::quantize::{FileType, convert};
use crate::error::{Error, Result};
use crate::files::{self, AtomicFile};
use crate::index::{Index, vocabulary};
use std::path::Path;

/// Bytes that are copied together.
const PIECE: usize = 1 << 22;

/// How a model and an adapter are merged.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct MergeOptions<'a> {
    /// The number type of most weights, one of [`super::quantize::quantize_types`]; `None` for that
    /// of the model.
    pub to: Option<&'a str>,
    /// The index that the adapter was trained for: it must be of the model's vocabulary, and the
    /// result says which one it was.
    pub index: Option<&'a Index>,
    /// Threads that compute; 0 for one.
    pub threads: u32,
}

/// What was merged, for a person to read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MergeReport {
    /// How many tensors the adapter changed.
    pub changed: usize,
    /// How many tensors the model has.
    pub tensors: usize,
    /// The number type of the result.
    pub file_type: &'static str,
    /// Tensors of the adapter that were passed over, as llama.cpp does: scales of norms.
    pub ignored: Vec<String>,
}

/// Writes the model at `base` with the adapter at `adapter` in it to `output`, which appears whole
/// or not at all. All metadata is kept; `stair.provenance.base`, `.adapter` and, if one is given,
/// `.index` are added: XXH3-64 of the files in 16 hexadecimal digits. While it runs it needs room
/// beside the output for the model with the changed tensors as 32-bit floats.
///
/// # Errors
///
/// [`Error::Adapter`] when the adapter is none, does not belong to the model, or makes numbers of it
/// that the type cannot hold;
/// [`Error::VocabularyMismatch`] when the index does not; [`Error::InvalidArgument`] for an unknown
/// type, and an output that is an input; [`Error::NotAModel`], [`Error::ModelCorrupt`],
/// [`Error::ModelLoad`]; [`Error::Io`].
pub fn merge(
    base: &Path,
    adapter: &Path,
    output: &Path,
    options: &MergeOptions<'_>,
) -> Result<MergeReport> {
    for input in [base, adapter] {
        if files::is_same_file(input, output) {
            let what = format!(
                "the merged model would replace {}, which it is made from: name another output",
                input.display()
            );
            return Err(Error::InvalidArgument(what));
        }
    }
    let model = open_base(base)?;
    let file_type = match options.to {
        Some(name) => FileType::named(name)?,
        None => own_type(&model)?,
    };
    let lora = Adapter::open(adapter, &model)?;
    let mut head = Head::like(&model, |tensor| lora.changes(&tensor.name))?;
    for (key, file) in [
        (c"stair.provenance.base", base),
        (c"stair.provenance.adapter", adapter),
    ] {
        head.set_text(key, &format!("{:016x}", files::checksum(file)?))?;
    }
    if let Some(index) = options.index {
        let mut vocabulary_only = ModelOptions::default();
        vocabulary_only.vocabulary_only = true;
        vocabulary::check(index, &Model::open(base, &vocabulary_only)?)?;
        lora.check_contents(index)?;
        let checksum = format!("{:016x}", index.checksum());
        head.set_text(c"stair.provenance.index", &checksum)?;
    }

    // Both in the output's folder: the disk that has room for a model.
    let mut merged = AtomicFile::create(output)?;
    merged.write(&head.bytes())?;
    let threads = options.threads.max(1);
    for tensor in model.tensors() {
        let bytes = match lora.changes(&tensor.name) {
            true => write_changed(&mut merged, &model, tensor, &lora, file_type, threads)?,
            false => write_copy(&mut merged, &model, tensor)?,
        };
        merged.write(&vec![0; head.padding(bytes)])?;
    }
    let result = AtomicFile::create(output)?;
    convert(
        merged.temporary_path(),
        result.temporary_path(),
        file_type,
        threads,
        base,
    )?;
    drop(merged);
    result.commit()?;
    Ok(MergeReport {
        changed: lora.len(),
        tensors: model.tensors().len(),
        file_type: file_type.name(),
        ignored: lora.ignored,
    })
}

fn open_base(path: &Path) -> Result<GgufFile> {
    let model = GgufFile::open(path)?;
    let refused = |why: &str| {
        Err(Error::NotAModel {
            path: path.to_path_buf(),
            why: why.to_owned(),
        })
    };
    if model.text(c"general.type").is_some_and(|t| t == "adapter") {
        return refused("it is an adapter, and stands where the model should");
    }
    if model.u16(c"split.count").is_some_and(|parts| parts > 1) {
        return refused("it is one of several parts of a model; join them first");
    }
    Ok(model)
}

/// The number type that the model says it has.
fn own_type(model: &GgufFile) -> Result<FileType> {
    let number = model.u32(c"general.file_type");
    number.and_then(FileType::numbered).ok_or_else(|| {
        let found = match number {
            Some(number) => format!("has the file type {number}, which is not known here"),
            None => "does not say which number type it has".to_owned(),
        };
        let path = model.path().display();
        Error::InvalidArgument(format!("the model {path} {found}: name one with --type"))
    })
}

/// Copies a tensor, and says how many bytes it has.
fn write_copy(out: &mut AtomicFile, model: &GgufFile, tensor: &Tensor) -> Result<usize> {
    let mut buffer = vec![0; PIECE.min(tensor.bytes)];
    let mut from = 0;
    while from < tensor.bytes {
        let piece = &mut buffer[..PIECE.min(tensor.bytes - from)];
        model.read(tensor, from, piece)?;
        out.write(piece)?;
        from += piece.len();
    }
    Ok(tensor.bytes)
}

/// Writes a tensor with what the adapter adds, as 32-bit floats, and says how many bytes it has.
fn write_changed(
    out: &mut AtomicFile,
    model: &GgufFile,
    tensor: &Tensor,
    lora: &Adapter<'_>,
    file_type: FileType,
    threads: u32,
) -> Result<usize> {
    let (row, height) = (tensor.row(), tensor.shape[1]);
    let slab = (SLAB / row.max(1)).max(1);
    for layer in 0..tensor.rows() / height.max(1) {
        let Some(delta) = lora.delta(&tensor.name, layer)? else {
            return Err(Error::Internal(format!("{:?} lost its pair", tensor.name)));
        };
        let mut first = 0;
        while first < height {
            let count = slab.min(height - first);
            let mut rows = model.rows(tensor, layer * height + first, count)?;
            add(&mut rows, row, first, &delta, threads);
            let largest = file_type.largest();
            if !rows.iter().all(|number| number.abs() <= largest) {
                return Err(lora.too_large(&tensor.name, file_type.name()));
            }
            out.write(bytemuck::cast_slice(&rows))?;
            first += count;
        }
    }
    Ok(tensor.rows() * row * size_of::<f32>())
}

/// Adds to `rows`, each `row` numbers long, what belongs to the rows from `first` on.
fn add(rows: &mut [f32], row: usize, first: usize, delta: &Delta, threads: u32) {
    let share = (rows.len() / row.max(1)).div_ceil(threads as usize).max(1);
    std::thread::scope(|scope| {
        for (part, rows) in rows.chunks_mut(share * row).enumerate() {
            scope.spawn(move || {
                let first = first + part * share;
                let coefficients = delta.coefficients.chunks_exact(delta.rank).skip(first);
                for (row, coefficients) in rows.chunks_exact_mut(row).zip(coefficients) {
                    let basis = delta.basis.chunks_exact(row.len());
                    // The product first and then the sum, so that small steps are not lost in it.
                    let mut sum = vec![0f32; row.len()];
                    for (&coefficient, basis) in coefficients.iter().zip(basis) {
                        for (sum, basis) in sum.iter_mut().zip(basis) {
                            *sum += coefficient * basis;
                        }
                    }
                    for (number, sum) in row.iter_mut().zip(sum) {
                        *number += delta.scale * sum;
                    }
                }
            });
        }
    });
}

#[cfg(test)]
mod tests;
