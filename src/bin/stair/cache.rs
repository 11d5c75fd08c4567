//! The folder of warm files, for the subcommands that read a table of contents.

use clap::Args;
use std::path::PathBuf;

/// Where the model's memory of a table of contents is kept.
#[derive(Args)]
pub struct CacheArgs {
    /// The folder that keeps what the model remembers of a table of contents, for the next time
    /// [default: stair in the platform's cache folder]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Keep nothing and read nothing kept
    #[arg(long, conflicts_with = "cache")]
    no_cache: bool,
}

impl CacheArgs {
    pub fn folder(&self) -> Option<PathBuf> {
        match self.no_cache {
            true => None,
            false => self.cache.clone().or_else(default_folder),
        }
    }
}

/// `$XDG_CACHE_HOME/stair` or `~/.cache/stair`, `~/Library/Caches/stair`, `%LOCALAPPDATA%\stair`.
pub fn default_folder() -> Option<PathBuf> {
    dirs::cache_dir().map(|folder| folder.join("stair"))
}
