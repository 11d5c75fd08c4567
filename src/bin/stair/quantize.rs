//! `stair quantize`: a model in another number type.

use crate::output::{Failure, spinner, thousands};
use stair::engine::quantize::{quantize, quantize_types};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Write a model in another number type
#[derive(clap::Args)]
pub struct Args {
    /// The model, a GGUF file
    input: PathBuf,
    /// Where to write the result
    #[arg(short, long, value_name = "OUT.gguf")]
    output: PathBuf,
    /// The number type of most weights
    #[arg(long = "type", default_value = "q8_0", value_parser = clap::builder::PossibleValuesParser::new(quantize_types()))]
    to: String,
    /// Threads that compute [default: all that the process may use]
    #[arg(long)]
    threads: Option<u32>,
}

pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let threads = args
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get() as u32));
    let bar = spinner(format!("quantising to {}", args.to));
    quantize(&args.input, &args.output, &args.to, threads)?;
    bar.finish_and_clear();
    let size = |path: &PathBuf| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    writeln!(
        io::stdout().lock(),
        "{}: {} bytes, from {}",
        args.output.display(),
        thousands(size(&args.output)),
        thousands(size(&args.input))
    )?;
    Ok(ExitCode::SUCCESS)
}
