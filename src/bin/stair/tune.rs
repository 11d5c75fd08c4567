//! `stair tune`: what a model and an index need to know of each other.

use crate::cache::CacheArgs;
use crate::figures::percent;
use crate::model::ModelArgs;
use crate::output::{self, Failure};
use serde_json::json;
use stair::eval::tune::{Chosen, TuneOptions, WEIGHTS, tune};
use stair::eval::{Tuning, tuning::Refusal};
use stair::{CancelToken, Error, Index, Retriever, RetrieverOptions, questions};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Choose the lexical weight, and when to say that no section answers
///
/// Chooses on the questions of a split that is used for nothing else, and writes what it chose
/// beside the model, where `stair retrieve` finds it.
#[derive(clap::Args)]
pub struct Args {
    /// The index
    #[arg(short, long, value_name = "X.stair")]
    index: PathBuf,
    #[command(flatten)]
    model: ModelArgs,
    /// The questions: a JSON object a line
    questions: PathBuf,
    /// The split to choose on
    #[arg(long, default_value = "dev")]
    split: String,
    /// Where it is written [default: beside the model, M.tune.json for M.gguf]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Weights to try
    #[arg(long, value_name = "W,W,...", value_delimiter = ',', default_values_t = WEIGHTS)]
    weights: Vec<f32>,
    /// Hits that are asked for in use: the refusal looks at no more
    #[arg(short, default_value_t = 3)]
    k: usize,
    /// Largest part of the answerable questions that may be refused
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0)]
    most_refused: f64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Threads that compute [default: all that the process may use]
    #[arg(long, value_name = "N")]
    threads: Option<u32>,
    #[command(flatten)]
    cache: CacheArgs,
}

pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let Some(path) = &args.model.model else {
        let what = "there is nothing to tune without a model: give it with -m";
        return Err(Error::InvalidArgument(what.to_owned()).into());
    };
    let out = args.out.clone().unwrap_or_else(|| Tuning::path(path));
    output::not_an_input(&out, [&args.index, &args.questions, path])?;
    let questions = questions::read(&args.questions)?;
    let index = Arc::new(Index::open(&args.index)?);
    let retriever = retriever(args, path, &index)?;
    let options = TuneOptions {
        split: args.split.clone(),
        weights: args.weights.clone(),
        hits: args.k,
        most_refused: args.most_refused / 100.0,
    };
    let bar = output::progress("searches");
    retriever.warm(&CancelToken::new())?;
    let chosen = tune(&retriever, &questions, &options, &|done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    })?;
    bar.finish_and_clear();
    let tuning = Tuning::new(
        path,
        &index,
        args.split.clone(),
        chosen.weights.clone(),
        chosen.lexical_weight,
        chosen.refusal,
    )?;
    tuning.write(&out)?;
    if args.json {
        output::json_line(&json!(tuning))?;
    } else {
        io::stdout()
            .lock()
            .write_all(text(&chosen, &out).as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn retriever(args: &Args, model: &Path, index: &Arc<Index>) -> Result<Retriever, Failure> {
    let mut options = RetrieverOptions::default();
    options.threads = args.threads;
    options.cache_dir = args.cache.folder();
    let Some(model) = args.model.open()? else {
        return Err(Error::NotAFile(model.to_path_buf()).into());
    };
    Ok(Retriever::new(
        Arc::new(model),
        Arc::clone(index),
        &options,
    )?)
}

fn text(chosen: &Chosen, out: &Path) -> String {
    let mut text = String::from("  weight   Recall@1 %   nDCG@3 %\n");
    // Writing to a String cannot fail.
    for figures in &chosen.weights {
        let mark = if figures.weight == chosen.lexical_weight {
            '*'
        } else {
            ' '
        };
        let _ = writeln!(
            text,
            "{mark} {:<6}   {:>10}   {:>8}",
            figures.weight,
            percent(figures.recall_at_1),
            percent(figures.ndcg_at_3)
        );
    }
    match &chosen.refusal {
        None => text.push_str("no question is unanswerable, so no refusal was chosen\n"),
        Some(Refusal {
            statistic,
            threshold,
            unanswerable,
            unanswerable_refused,
            answerable,
            answerable_refused,
            ..
        }) => {
            let _ = writeln!(
                text,
                "refusal: {} below {threshold:.4}; it refuses {unanswerable_refused} of \
                 {unanswerable} unanswerable questions and {answerable_refused} of {answerable} \
                 answerable ones",
                statistic.name()
            );
        }
    }
    let _ = writeln!(text, "written to {}", out.display());
    text
}
