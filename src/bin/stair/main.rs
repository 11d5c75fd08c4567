//! The command `stair`: arguments in, text or JSON out. All work is the library's.

mod build;
mod import_openstax;
mod inspect;
mod merge;
mod model;
mod output;
mod quantize;
mod retrieve;
mod train_data;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Which section of this document answers this question?
#[derive(Parser)]
#[command(name = "stair", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make an index from a document
    Build(build::Args),
    /// Ask an index questions
    Retrieve(retrieve::Args),
    /// Show what is in an index
    Inspect(inspect::Args),
    /// Check every invariant of an index
    Verify(inspect::VerifyArgs),
    /// Make a benchmark of a book of OpenStax
    ImportOpenstax(import_openstax::Args),
    /// Make training data from an index and questions
    TrainData(train_data::Args),
    /// Merge a LoRA adapter into a model
    Merge(merge::Args),
    /// Write a model in another number type
    Quantize(quantize::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Build(args) => build::run(&args),
        Command::Retrieve(args) => retrieve::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Verify(args) => inspect::verify(&args),
        Command::ImportOpenstax(args) => import_openstax::run(&args),
        Command::TrainData(args) => train_data::run(&args),
        Command::Merge(args) => merge::run(&args),
        Command::Quantize(args) => quantize::run(&args),
    };
    match result {
        Ok(code) => code,
        // The reader of our output has heard enough: `stair inspect | head`.
        Err(output::Failure::Pipe) => ExitCode::SUCCESS,
        Err(output::Failure::Stair(error)) => {
            eprintln!("stair: {error} [{}]", error.code().name());
            ExitCode::FAILURE
        }
    }
}
