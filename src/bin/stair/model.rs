//! Options about the model that several subcommands take.

use clap::{Args, ValueEnum};
use stair::tokens::{Tokenizer, TokenizerJson};
use stair::{Error, KvType, Model, ModelOptions, Result};
use std::path::PathBuf;

/// The model, and where it runs.
#[derive(Args)]
pub struct ModelArgs {
    /// The model, a GGUF file; without one, only the words of question and sections count
    #[arg(short, long, value_name = "MODEL.gguf")]
    pub model: Option<PathBuf>,
    /// Layers to keep on the graphics processor [default: all when there is one]
    #[arg(long, value_name = "N", requires = "model")]
    pub gpu_layers: Option<u32>,
    /// Read the model into memory rather than map it, for network drives
    #[arg(long, requires = "model")]
    pub no_mmap: bool,
}

impl ModelArgs {
    pub fn open(&self) -> Result<Option<Model>> {
        let Some(path) = &self.model else {
            return Ok(None);
        };
        let mut options = ModelOptions::default();
        options.gpu_layers = self.gpu_layers;
        options.mmap = !self.no_mmap;
        Model::open(path, &options).map(Some)
    }
}

/// Number types of keys and values.
#[derive(Clone, Copy, ValueEnum)]
pub enum KvArg {
    F16,
    #[value(name = "q8_0")]
    Q8_0,
    F32,
}

impl From<KvArg> for KvType {
    fn from(arg: KvArg) -> Self {
        match arg {
            KvArg::F16 => Self::F16,
            KvArg::Q8_0 => Self::Q8_0,
            KvArg::F32 => Self::F32,
        }
    }
}

/// A vocabulary, of a model or apart from one.
#[derive(Args)]
#[group(required = true, multiple = false)]
pub struct Vocabulary {
    /// The model whose vocabulary to use; its weights are not loaded
    #[arg(short, long, value_name = "MODEL.gguf")]
    pub model: Option<PathBuf>,
    /// The model's tokenizer.json, where the model itself is not at hand
    #[arg(long, value_name = "tokenizer.json")]
    pub tokenizer: Option<PathBuf>,
}

impl Vocabulary {
    /// The tokenizer, and the model's context length where it is known.
    pub fn open(&self) -> Result<(Box<dyn Tokenizer>, Option<u32>)> {
        if let Some(path) = &self.tokenizer {
            return Ok((Box::new(TokenizerJson::open(path)?), None));
        }
        let mut options = ModelOptions::default();
        options.vocabulary_only = true;
        // clap has seen to it that one of the two is there.
        let model = Model::open(self.model.as_deref().unwrap_or("".as_ref()), &options)?;
        let context = Some(model.info().context_length).filter(|&length| length > 0);
        Ok((Box::new(model), context))
    }
}

/// Reads a whole file.
pub fn read_file(path: &PathBuf) -> Result<Vec<u8>> {
    if path.is_dir() {
        return Err(Error::NotAFile(path.clone()));
    }
    std::fs::read(path).map_err(|error| Error::io("read", path, error))
}
