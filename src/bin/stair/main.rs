//! The command `stair`: arguments in, text or JSON out. All work is the library's.

mod audit;
mod build;
mod cache;
mod compare;
mod eval;
mod figures;
mod import_openstax;
mod inspect;
mod merge;
mod model;
mod output;
mod quantize;
mod report;
mod retrieve;
mod spin;
mod train_data;
mod tune;
mod tuned;
mod warm;

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
    /// Keep what a model remembers of an index's table of contents
    Warm(warm::Args),
    /// Show what is in an index
    Inspect(inspect::Args),
    /// Check every invariant of an index
    Verify(inspect::VerifyArgs),
    /// Make a benchmark of a book of OpenStax
    ImportOpenstax(import_openstax::Args),
    /// Make training data from an index and questions
    TrainData(train_data::Args),
    /// Find what is wrong with a file of questions
    Audit(audit::Args),
    /// Measure how good a system's answers are
    Eval(eval::Args),
    /// Choose the lexical weight, and when to say that no section answers
    Tune(tune::Args),
    /// Test whether systems differ by more than chance
    Compare(compare::Args),
    /// Make one page of the figures of several systems
    Report(report::Args),
    /// Merge a LoRA adapter into a model
    Merge(merge::Args),
    /// Write a model in another number type
    Quantize(quantize::Args),
}

impl Command {
    /// Whether it has a model compute.
    fn computes(&self) -> bool {
        use Command::{Eval, Retrieve, Tune, Warm};
        matches!(self, Retrieve(_) | Warm(_) | Eval(_) | Tune(_))
    }
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    if command.computes() {
        spin::shorten();
    }
    let result = match command {
        Command::Build(args) => build::run(&args),
        Command::Retrieve(args) => retrieve::run(&args),
        Command::Warm(args) => warm::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Verify(args) => inspect::verify(&args),
        Command::ImportOpenstax(args) => import_openstax::run(&args),
        Command::TrainData(args) => train_data::run(&args),
        Command::Audit(args) => audit::run(&args),
        Command::Eval(args) => eval::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Report(args) => report::run(&args),
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
