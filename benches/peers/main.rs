//! Other ways to the same answer, measured beside libstair in one run: same model, same index, same
//! questions, one caller. `docs/peers.md` says what each system is and why it is configured so.
//!
//! usage: cargo bench --features peers --bench peers -- run --index X.stair --model M.gguf
//! --questions Q.jsonl --out DIR      (`make peers` gives it everything)
//!
//! Each system is a process of its own that reads a question a line and writes an answer a line
//! ([`protocol`]). The questions go to the systems in turn, so that what else the machine does
//! weighs on all of them alike.

mod child;
mod constraints;
mod document;
mod every_title;
mod generate;
mod llama;
mod ours;
mod protocol;
mod run;
mod serve;
mod systems;
mod table;

use clap::{Parser, Subcommand};
use std::error::Error;
use std::process::ExitCode;

/// The end of something that may fail for any reason.
type Anything<T = ()> = Result<T, Box<dyn Error>>;

#[derive(Parser)]
#[command(about = "Other ways to the same answer, measured beside libstair")]
struct Args {
    #[command(subcommand)]
    command: Command,
    /// What cargo adds to the arguments of a bench
    #[arg(long, global = true, hide = true)]
    bench: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Ask all systems, in turn, and print the table
    Run(run::Args),
    /// Print the table of a finished run again
    Table(table::Args),
    /// Be one system: read questions, write answers
    Serve(serve::Args),
}

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Table(args) => table::run(&args),
        Command::Serve(args) => serve::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("peers: {error}");
            ExitCode::FAILURE
        }
    }
}
