//! `stair eval`: the figures of one system over a split of questions.

use crate::figures;
use crate::model::ModelArgs;
use crate::output::{self, Failure};
use clap::ValueEnum;
use serde_json::json;
use stair::eval::run::{RunOptions, run as ask};
use stair::eval::system::{Retrieving, Setup, System};
use stair::eval::{Summary, predictions};
use stair::search::Scoring;
use stair::{Index, Retriever, RetrieverOptions, files, questions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// Measure how good a system's answers are
///
/// Asks the questions of a split, writes what was answered to each as a line of JSON, and prints
/// Recall@1 and @3, nDCG@3, MRR and more, each with its 95 % interval.
#[derive(clap::Args)]
pub struct Args {
    /// The index
    #[arg(short, long, value_name = "X.stair")]
    index: PathBuf,
    #[command(flatten)]
    model: ModelArgs,
    /// The questions: a JSON object a line
    questions: PathBuf,
    /// The split to ask
    #[arg(long, default_value = "test")]
    split: String,
    /// The split in which the training questions of each leaf are counted
    #[arg(long, value_name = "SPLIT", default_value = "train")]
    train_split: String,
    /// The system to ask
    #[arg(long, value_enum, default_value = "stair")]
    system: SystemArg,
    /// Name of the system in the predictions [default: that of --system]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Where the predictions go
    #[arg(short, long, value_name = "PRED.jsonl")]
    out: Option<PathBuf>,
    /// Number of sections to find for each question
    #[arg(short, default_value_t = 10)]
    k: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Threads that compute [default: all that the process may use]
    #[arg(long, value_name = "N")]
    threads: Option<u32>,
    /// Questions to ask at the same time; with more than 1 no times are recorded
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=8))]
    callers: u32,
    /// Ask only the first N questions of the split
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

#[derive(Clone, Copy, ValueEnum)]
enum SystemArg {
    /// The model with the table of contents; exact search
    Stair,
    /// The same, with scores renormalised at each step
    StairLocal,
    /// A model trained without the table of contents, over an index built with --no-toc
    Dsi,
}

impl SystemArg {
    fn name(self) -> &'static str {
        match self {
            Self::Stair => "stair",
            Self::StairLocal => "stair-local",
            Self::Dsi => "dsi",
        }
    }
}

pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let questions = questions::read(&args.questions)?;
    let index = Arc::new(Index::open(&args.index)?);
    let mut options = RetrieverOptions::default();
    options.threads = args.threads;
    let retriever = Retriever::new(Arc::new(args.model.open()?), Arc::clone(&index), &options)?;
    let setup = Setup {
        name: args
            .name
            .clone()
            .unwrap_or_else(|| args.system.name().to_owned()),
        k: args.k,
        scoring: match args.system {
            SystemArg::Stair | SystemArg::Dsi => Scoring::Exact,
            SystemArg::StairLocal => Scoring::Local,
        },
    };
    measure(
        args,
        &Retrieving::new(&retriever, setup),
        &index,
        &questions,
    )
}

fn measure(
    args: &Args,
    system: &dyn System,
    index: &Index,
    questions: &[questions::Question],
) -> Result<ExitCode, Failure> {
    let options = RunOptions {
        split: args.split.clone(),
        train_split: args.train_split.clone(),
        callers: args.callers as usize,
        limit: args.limit,
    };
    let bar = output::progress("questions");
    let predictions = ask(system, index, questions, &options, &|done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    })?;
    bar.finish_and_clear();
    if let Some(out) = &args.out {
        files::write_atomically(out, &predictions::format(&predictions)?)?;
    }
    let summary = Summary::new(&predictions);
    if args.json {
        output::json_line(&json!(summary))?;
    } else {
        io::stdout()
            .lock()
            .write_all(figures::table(&summary).as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}
