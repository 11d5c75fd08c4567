//! `stair report`: figures as a page.

use crate::compare;
use crate::output::{self, Failure};
use stair::{eval, files};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Make one page of the figures of several systems
///
/// The page is one file that needs nothing else, for light and dark screens.
#[derive(clap::Args)]
pub struct Args {
    /// The predictions, a file for each system over the same questions
    #[arg(required = true, value_name = "PRED.jsonl")]
    predictions: Vec<PathBuf>,
    /// Where the page goes
    #[arg(short, long, value_name = "REPORT.html")]
    out: PathBuf,
    /// Heading of the page
    #[arg(long, default_value = "Which section answers the question")]
    title: String,
}

pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    output::not_an_input(&args.out, &args.predictions)?;
    let page = eval::report::page(&args.title, &compare::read(&args.predictions)?)?;
    files::write_atomically(&args.out, page.as_bytes())?;
    writeln!(io::stdout().lock(), "{}", args.out.display())?;
    Ok(ExitCode::SUCCESS)
}
