//! `stair merge`: a model and a LoRA adapter to one model.

use crate::output::{Failure, spinner, thousands};
use stair::Index;
use stair::engine::quantize::quantize_types;
use stair::engine::{MergeOptions, merge};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Merge a LoRA adapter into a model
#[derive(clap::Args)]
pub struct Args {
    /// The model that the adapter was trained on, a GGUF file
    base: PathBuf,
    /// The adapter, a GGUF file
    adapter: PathBuf,
    /// Where to write the merged model
    #[arg(short, long, value_name = "OUT.gguf")]
    output: PathBuf,
    /// The number type of most weights [default: the model's own]
    #[arg(long = "type", value_parser = clap::builder::PossibleValuesParser::new(quantize_types()))]
    to: Option<String>,
    /// The index that the adapter was trained for: checked, and noted in the result
    #[arg(short, long, value_name = "X.stair")]
    index: Option<PathBuf>,
    /// Threads that compute [default: all that the process may use]
    #[arg(long)]
    threads: Option<u32>,
}

pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let index = args.index.as_ref().map(Index::open).transpose()?;
    let mut options = MergeOptions::default();
    options.to = args.to.as_deref();
    options.index = index.as_ref();
    options.threads = args
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get() as u32));
    let bar = spinner("merging".to_owned());
    let report = merge(&args.base, &args.adapter, &args.output, &options)?;
    bar.finish_and_clear();
    let mut out = io::stdout().lock();
    let bytes = std::fs::metadata(&args.output).map_or(0, |metadata| metadata.len());
    writeln!(
        out,
        "{}: {} bytes, {}; {} of {} tensors changed",
        args.output.display(),
        thousands(bytes),
        report.file_type,
        report.changed,
        report.tensors,
    )?;
    if !report.ignored.is_empty() {
        writeln!(out, "passed over: {}", report.ignored.join(", "))?;
    }
    Ok(ExitCode::SUCCESS)
}
