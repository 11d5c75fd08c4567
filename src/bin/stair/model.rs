//! Options about the model that several subcommands take.

use clap::Args;
use stair::{Error, Model, ModelOptions, Result};
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

/// Reads a whole file.
pub fn read_file(path: &PathBuf) -> Result<Vec<u8>> {
    if path.is_dir() {
        return Err(Error::NotAFile(path.clone()));
    }
    std::fs::read(path).map_err(|error| Error::io("read", path, error))
}
