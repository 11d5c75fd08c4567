//! `stair eval`: the figures of one system over a split of questions.

use crate::cache::CacheArgs;
use crate::figures;
use crate::model::ModelArgs;
use crate::output::{self, Failure};
use crate::tuned;
use clap::ValueEnum;
use serde_json::json;
use stair::eval::by_the_book::ByTheBook;
use stair::eval::menu::Menu;
use stair::eval::run::{RunOptions, run as ask};
use stair::eval::system::{Retrieving, Setup, System};
use stair::eval::tuning::Refusal;
use stair::eval::{Prediction, Summary, Tuning, predictions};
use stair::search::Scoring;
use stair::{Error, Index, Model, Retriever, RetrieverOptions, files, questions};
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
    /// How much the words count in the system hybrid [default: what `stair tune` chose]
    #[arg(long, value_name = "W")]
    lexical_weight: Option<f32>,
    /// Leave out what `stair tune` chose
    #[arg(long)]
    no_tune: bool,
    /// Number of sections to find for each question
    #[arg(short, default_value_t = 10)]
    k: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Threads that compute [default: all that the process may use]
    #[arg(long, value_name = "N")]
    threads: Option<u32>,
    #[command(flatten)]
    cache: CacheArgs,
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
    /// BM25 by the book: each section's number, title and text as one document; no model
    Bm25,
    /// The words of the question and of sections, passages and known questions alone; no model
    Lexical,
    /// The model with the table of contents and the words together
    Hybrid,
    /// An untrained chat model with a numbered menu of the sections; titles where it wants none
    Number,
}

impl SystemArg {
    fn name(self) -> &'static str {
        match self {
            Self::Stair => "stair",
            Self::StairLocal => "stair-local",
            Self::Dsi => "dsi",
            Self::Bm25 => "bm25",
            Self::Lexical => "lexical",
            Self::Hybrid => "hybrid",
            Self::Number => "number",
        }
    }
}

pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    if let Some(out) = &args.out {
        let inputs = [
            Some(&args.index),
            Some(&args.questions),
            args.model.model.as_ref(),
        ];
        output::not_an_input(out, inputs.into_iter().flatten())?;
    }
    let questions = questions::read(&args.questions)?;
    let index = Arc::new(Index::open(&args.index)?);
    if matches!(args.system, SystemArg::Bm25) {
        let bm25 = ByTheBook::new(Arc::clone(&index), args.k);
        return measure(args, &bm25, None, &index, &questions);
    }
    if matches!(args.system, SystemArg::Number) {
        let menu = Menu::new(&index, Arc::new(model(args)?), &options(args), args.k)?;
        return measure(args, &menu, None, &index, &questions);
    }
    let retriever = match args.system {
        SystemArg::Lexical => Retriever::lexical(Arc::clone(&index)),
        _ => Retriever::new(Arc::new(model(args)?), Arc::clone(&index), &options(args))?,
    };
    let tuning = match (&args.model.model, args.no_tune) {
        (Some(model), false) => tuned::beside(model, &index),
        _ => None,
    };
    let setup = Setup {
        name: args.system.name().to_owned(),
        k: args.k,
        scoring: match args.system {
            SystemArg::StairLocal => Scoring::Local,
            _ => Scoring::Exact,
        },
        lexical_weight: weight(args, tuning.as_ref())?,
    };
    // What was chosen for one score says nothing about another.
    let applies = |tuning: &Tuning| {
        setup.scoring == Scoring::Exact
            && setup.lexical_weight == tuning.lexical_weight
            && !matches!(args.system, SystemArg::Lexical)
    };
    let mut refusal = tuning.filter(applies).and_then(|tuning| tuning.refusal);
    if let Some(needs) = refusal.map(|refusal| refusal.needs())
        && needs > args.k
    {
        eprintln!(
            "stair: the tuned refusal needs {needs} hits and -k is {}, so no question is refused",
            args.k
        );
        refusal = None;
    }
    let system = Retrieving::new(&retriever, setup);
    measure(args, &system, refusal, &index, &questions)
}

fn model(args: &Args) -> Result<Model, Failure> {
    args.model.open()?.ok_or_else(|| {
        let system = args.system.name();
        let what = format!("the system {system} needs a model: give it with -m");
        Failure::Stair(Error::InvalidArgument(what))
    })
}

fn options(args: &Args) -> RetrieverOptions {
    let mut options = RetrieverOptions::default();
    options.threads = args.threads;
    options.cache_dir = args.cache.folder();
    options
}

fn weight(args: &Args, tuning: Option<&Tuning>) -> Result<f32, Failure> {
    let asked = args
        .lexical_weight
        .or(tuning.map(|tuning| tuning.lexical_weight));
    match (args.system, asked) {
        (SystemArg::Hybrid, Some(weight)) => Ok(weight),
        (SystemArg::Hybrid, None) => {
            let what =
                "the system hybrid needs a weight: give --lexical-weight, or run `stair tune`";
            Err(Error::InvalidArgument(what.to_owned()).into())
        }
        _ => Ok(0.0),
    }
}

fn measure(
    args: &Args,
    system: &dyn System,
    refusal: Option<Refusal>,
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
    let mut predictions = ask(system, index, questions, &options, &|done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    })?;
    bar.finish_and_clear();
    if let Some(name) = &args.name {
        let named = |prediction: &mut Prediction| prediction.system.clone_from(name);
        predictions.iter_mut().for_each(named);
    }
    if let Some(refusal) = refusal {
        refusal.mark(&mut predictions);
    }
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
