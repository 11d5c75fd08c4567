//! A LoRA adapter as llama.cpp has it: for some of a model's matrices two narrow ones, whose
//! product is added.

use super::gguf_file::{GgufFile, Tensor};
use crate::error::{Error, Result};
use crate::index::Index;
use std::collections::BTreeMap;
use std::path::Path;

/// The name of the input embedding's matrix ends so. Its pair is stored the other way round than
/// all others, because llama.cpp looks rows up in it.
const EMBEDDING: &str = "token_embd.weight";

/// An adapter that belongs to a model.
pub(super) struct Adapter<'b> {
    file: GgufFile,
    base: &'b GgufFile,
    /// `adapter.lora.alpha`; 0 when the file does not say.
    alpha: f32,
    /// By the name of the model's tensor.
    pairs: BTreeMap<String, Pair>,
    /// Tensors that llama.cpp passes over.
    pub ignored: Vec<String>,
}

struct Pair {
    a: Tensor,
    b: Tensor,
}

/// What is to be added to a matrix: `scale * (coefficients x basis)`, row by row.
pub(super) struct Delta {
    /// `rank` numbers for each row of the matrix.
    pub coefficients: Vec<f32>,
    /// `rank` rows as long as the matrix's.
    pub basis: Vec<f32>,
    pub rank: usize,
    pub scale: f32,
}

impl<'b> Adapter<'b> {
    /// Opens the adapter at `path` and checks that it belongs to `base`.
    ///
    /// # Errors
    ///
    /// [`Error::Adapter`] with what is wrong; [`Error::Io`] or [`Error::NotAFile`].
    pub fn open(path: &Path, base: &'b GgufFile) -> Result<Self> {
        let refused = |why: String| Error::Adapter {
            path: path.to_path_buf(),
            why,
        };
        let file = GgufFile::open(path).map_err(|error| match error {
            Error::NotAModel { why, .. } => {
                refused(format!("it is no GGUF file ({why}): give a .gguf adapter"))
            }
            Error::ModelCorrupt { why, .. } => {
                refused(format!("it is damaged: {why}; copy it again"))
            }
            other => other,
        })?;
        let text = |file: &GgufFile, key| file.text(key).unwrap_or_default();
        for (key, expected) in [(c"general.type", "adapter"), (c"adapter.type", "lora")] {
            let found = text(&file, key);
            if found != expected {
                return Err(refused(format!(
                    "its {} is {found:?} and that of a LoRA {expected:?}: give a LoRA adapter in \
                     llama.cpp's form",
                    key.to_string_lossy()
                )));
            }
        }
        let architecture = |file| text(file, c"general.architecture");
        if architecture(&file) != architecture(base) {
            return Err(refused(format!(
                "it is for the architecture {:?} and the model has {:?}: use the model that it was \
                 trained on",
                architecture(&file),
                architecture(base)
            )));
        }
        // What the model has learnt already is no part of what the adapter was trained on.
        let merged = |file: &GgufFile, key| file.text(key).filter(|merged| !merged.is_empty());
        let (in_base, in_training) = (
            merged(base, c"stair.provenance.adapter"),
            merged(&file, c"stair.train.base_adapter"),
        );
        if in_base != in_training {
            let merged = |adapter: Option<String>| {
                adapter.map_or("no adapter".to_owned(), |it| format!("the adapter {it}"))
            };
            return Err(refused(format!(
                "the model {} has {} merged into it already, and the one that it was trained on \
                 {}: merge into the model that it was trained on",
                base.path().display(),
                merged(in_base),
                merged(in_training)
            )));
        }
        if file.has(c"adapter.alora.invocation_tokens") {
            let why = "it is an activated LoRA, which acts after certain tokens only, so it cannot \
                       be merged: train a plain LoRA";
            return Err(refused(why.to_owned()));
        }
        let mut adapter = Self {
            alpha: file.f32(c"adapter.lora.alpha").unwrap_or(0.0),
            pairs: BTreeMap::new(),
            ignored: Vec::new(),
            file,
            base,
        };
        adapter.pair_up().map_err(refused)?;
        for (name, pair) in &adapter.pairs {
            adapter.check(name, pair).map_err(refused)?;
        }
        Ok(adapter)
    }

    /// Checks that it was trained with the table of contents of `index`, as far as it says which.
    ///
    /// # Errors
    ///
    /// [`Error::Adapter`] with what is wrong.
    pub fn check_contents(&self, index: &Index) -> Result<()> {
        let ours = format!("{:016x}", index.prefix_checksum());
        match self.file.text(c"stair.train.prefix_checksum") {
            Some(theirs) if theirs != ours => Err(Error::Adapter {
                path: self.file.path().to_path_buf(),
                why: format!(
                    "it was trained with another table of contents ({theirs}) than this index's \
                     ({ours}): give the index of the document that it was trained on"
                ),
            }),
            _ => Ok(()),
        }
    }

    /// How many of the model's tensors it changes.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether it changes the model's tensor of that name.
    pub fn changes(&self, name: &str) -> bool {
        self.pairs.contains_key(name)
    }

    /// The error of an adapter that makes more of the tensor's numbers than `file_type` can hold.
    pub fn too_large(&self, name: &str, file_type: &str) -> Error {
        Error::Adapter {
            path: self.file.path().to_path_buf(),
            why: format!(
                "with it numbers of {name:?} are not finite, or too large for {file_type}: its \
                 training diverged, train it again with a lower rate"
            ),
        }
    }

    /// What is to be added to the matrix `layer` of the tensor: 0, but for a stack of experts.
    ///
    /// # Errors
    ///
    /// [`Error::Adapter`] for numbers that are none; [`Error::Io`].
    pub fn delta(&self, name: &str, layer: usize) -> Result<Option<Delta>> {
        let Some(Pair { a, b }) = self.pairs.get(name) else {
            return Ok(None);
        };
        let read = |tensor: &Tensor| {
            let numbers = self
                .file
                .rows(tensor, layer * tensor.shape[1], tensor.shape[1])?;
            match numbers.iter().all(|number| number.is_finite()) {
                true => Ok(numbers),
                false => Err(Error::Adapter {
                    path: self.file.path().to_path_buf(),
                    why: format!(
                        "the tensor {:?} holds numbers that are not finite: its training diverged, \
                         train it again with a lower rate",
                        tensor.name
                    ),
                }),
            }
        };
        let rank = b.shape[0];
        let (a, b) = (read(a)?, read(b)?);
        let (coefficients, basis) = match name.ends_with(EMBEDDING) {
            false => (b, a),
            true => (a, transposed(&b, rank)),
        };
        Ok(Some(Delta {
            coefficients,
            basis,
            rank,
            // As llama.cpp has it: without an alpha, nothing is scaled.
            scale: match self.alpha {
                0.0 => 1.0,
                alpha => alpha / rank as f32,
            },
        }))
    }

    fn pair_up(&mut self) -> Result<(), String> {
        let mut halves: BTreeMap<String, [Option<Tensor>; 2]> = BTreeMap::new();
        for tensor in self.file.tensors() {
            let name = &tensor.name;
            if let Some(of) = name.strip_suffix(".lora_a") {
                halves.entry(of.to_owned()).or_default()[0] = Some(tensor.clone());
            } else if let Some(of) = name.strip_suffix(".lora_b") {
                halves.entry(of.to_owned()).or_default()[1] = Some(tensor.clone());
            } else if name.ends_with("_norm.weight") {
                self.ignored.push(name.clone());
            } else {
                return Err(format!(
                    "its tensor {name:?} ends neither with .lora_a nor with .lora_b: convert it \
                     with llama.cpp's convert_lora_to_gguf.py"
                ));
            }
        }
        for (name, pair) in halves {
            match pair {
                [Some(a), Some(b)] => self.pairs.insert(name, Pair { a, b }),
                [a, _] => {
                    let missing = if a.is_none() { "lora_a" } else { "lora_b" };
                    return Err(format!(
                        "{name}.{missing} is missing, the other half is there: convert it again"
                    ));
                }
            };
        }
        match self.pairs.is_empty() {
            true => Err("it changes nothing: it holds no pair of tensors".to_owned()),
            false => Ok(()),
        }
    }

    /// Checks that a pair fits the model's tensor.
    fn check(&self, name: &str, Pair { a, b }: &Pair) -> Result<(), String> {
        let Some(tensor) = self.base.tensor(name) else {
            return Err(format!(
                "it changes the tensor {name:?}, which the model does not have: use the model that \
                 it was trained on"
            ));
        };
        let [width, height, ..] = tensor.shape;
        let fits = match name.ends_with(EMBEDDING) {
            false => a.shape[0] == width && b.shape[1] == height && a.shape[1] == b.shape[0],
            true => b.shape[1] == width && a.shape[1] == height && a.shape[0] == b.shape[0],
        };
        if !fits || a.shape[2..] != tensor.shape[2..] || b.shape[2..] != tensor.shape[2..] {
            return Err(format!(
                "its pair for {name:?} has the shapes {} and {}, and the model's tensor {}: use the \
                 model that it was trained on",
                a.shape_text(),
                b.shape_text(),
                tensor.shape_text()
            ));
        }
        if b.shape[0] == 0 {
            return Err(format!("its pair for {name:?} has rank 0: train it again"));
        }
        if tensor.shape.contains(&0) {
            return Err(format!(
                "it changes {name:?}, and the model's tensor {} holds no numbers: copy the model \
                 again",
                tensor.shape_text()
            ));
        }
        if name.ends_with(EMBEDDING) && self.base.tensor("output.weight").is_none() {
            return Err(format!(
                "it changes {name:?}, which this model uses for its output too, and llama.cpp knows \
                 no adapter of both: train it without the embedding"
            ));
        }
        // Numbers that are scaled again when the model computes are not what the adapter saw.
        let scale = name
            .strip_suffix("weight")
            .map(|stem| format!("{stem}scale"));
        if scale.is_some_and(|scale| self.base.tensor(&scale).is_some()) {
            return Err(format!(
                "it changes {name:?}, whose numbers the model scales with a tensor of their own: \
                 take the model in another number type"
            ));
        }
        Ok(())
    }
}

/// `matrix`, rows of `width` numbers, with rows and columns exchanged.
fn transposed(matrix: &[f32], width: usize) -> Vec<f32> {
    (0..width)
        .flat_map(|column| matrix.iter().skip(column).step_by(width).copied())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_columns_are_exchanged() {
        let matrix = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        assert_eq!(transposed(&matrix, 2), [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
    }
}
