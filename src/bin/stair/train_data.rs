//! `stair train-data`: an index and questions to examples for a trainer.

use crate::model::Vocabulary;
use crate::output::{self, Failure, thousands};
use serde_json::{Value, json};
use stair::train_data::{Options, Report, Task, TaskReport, write};
use stair::{Error, Index, questions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Make training data from an index and questions
#[derive(clap::Args)]
pub struct Args {
    /// The index
    #[arg(short, long, value_name = "X.stair")]
    index: PathBuf,
    #[command(flatten)]
    vocabulary: Vocabulary,
    /// The questions, a JSON object a line: id, query, section and split
    #[arg(short, long, value_name = "Q.jsonl")]
    questions: Option<PathBuf>,
    /// The split whose questions to take
    #[arg(long, default_value = "train")]
    split: String,
    /// Where to write the examples
    #[arg(short, long, value_name = "OUT.jsonl")]
    output: PathBuf,
    /// Leave the table of contents out of the prompt (DSI)
    #[arg(long)]
    no_toc: bool,
    /// What to make examples of
    #[arg(long, value_name = "TASK,...", value_delimiter = ',', default_value = "retrieval,ingestion,terms", value_parser = task)]
    tasks: Vec<Task>,
    /// Words of a window of text
    #[arg(long, value_name = "WORDS", default_value_t = 64)]
    window: usize,
    /// Words that a window shares with the one before
    #[arg(long, value_name = "WORDS", default_value_t = 32)]
    overlap: usize,
    /// Fewest words of a sentence that is an example of its own
    #[arg(long, value_name = "WORDS", default_value_t = 6)]
    min_sentence: usize,
    /// Most words of a sentence that is an example of its own
    #[arg(long, value_name = "WORDS", default_value_t = 60)]
    max_sentence: usize,
    /// Most parts of text of one leaf, evenly spread over it [default: all]
    #[arg(long, value_name = "N")]
    most_per_leaf: Option<usize>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn task(name: &str) -> Result<Task, String> {
    let found = Task::ALL.into_iter().find(|task| task.name() == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = Task::ALL.into_iter().map(Task::name).collect();
        format!("use {}", names.join(", "))
    })
}

pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let vocabulary = [&args.vocabulary.model, &args.vocabulary.tokenizer];
    let inputs = [Some(&args.index), args.questions.as_ref()];
    let inputs = inputs.into_iter().chain(vocabulary.map(Option::as_ref));
    output::not_an_input(&args.output, inputs.flatten())?;
    let mut options = Options::default();
    options.tasks = args.tasks.iter().copied().collect();
    options.split.clone_from(&args.split);
    options.contents = !args.no_toc;
    options.window = args.window;
    options.overlap = args.overlap;
    options.most_per_leaf = args.most_per_leaf;
    options.sentence = args.min_sentence..=args.max_sentence;

    let index = Index::open(&args.index)?;
    let (asked, leaves) = match &args.questions {
        Some(path) => {
            let asked = questions::read(path)?;
            let leaves = questions::leaves(&asked, &index, path)?;
            (asked, leaves)
        }
        None if options.tasks.contains(&Task::Retrieval) => {
            let what = "no questions to make examples of: name their file with --questions, or \
                        leave retrieval out of --tasks";
            return Err(Error::InvalidArgument(what.to_owned()).into());
        }
        None => (Vec::new(), Vec::new()),
    };
    let (tokenizer, _) = args.vocabulary.open()?;
    let report = write(&index, &*tokenizer, &asked, &leaves, &options, &args.output)?;
    match args.json {
        true => output::json_line(&report_json(&args.output, &report))?,
        false => print_report(&args.output, &report)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn print_report(output: &Path, report: &Report) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", output.display())?;
    writeln!(
        out,
        "  examples           {}",
        thousands(examples(report) as u64)
    )?;
    for task in &report.tasks {
        let TaskReport {
            min, median, max, ..
        } = task;
        writeln!(
            out,
            "  {:<18} {}; a leaf has {min} to {max}, median {median}; none: {}",
            task.task.name(),
            thousands(task.examples as u64),
            listed(&task.without),
        )?;
    }
    let none = &report.without_examples;
    match none.is_empty() {
        true => writeln!(out, "  leaves with none   0")?,
        false => writeln!(
            out,
            "  leaves with none   {}: {}",
            none.len(),
            none.join("; ")
        )?,
    }
    writeln!(
        out,
        "  unanswerable       {}",
        thousands(report.unanswerable as u64)
    )?;
    writeln!(
        out,
        "  left out           {} of other splits",
        thousands(report.other_splits as u64)
    )?;
    writeln!(out, "  longest example    {} tokens", report.longest)
}

fn examples(report: &Report) -> usize {
    report.tasks.iter().map(|task| task.examples).sum::<usize>() + report.unanswerable
}

/// How many there are and the first of them; all of them are in the JSON.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 6;
    match names.len() {
        0 => "0".to_owned(),
        count @ 1..=SHOWN => format!("{count}: {}", names.join("; ")),
        count => format!("{count}: {}; ...", names[..SHOWN].join("; ")),
    }
}

fn report_json(output: &Path, report: &Report) -> Value {
    let task = |task: &TaskReport| {
        let per_leaf: serde_json::Map<String, Value> = report
            .per_leaf(task.task)
            .map(|(leaf, count)| (leaf.to_owned(), count.into()))
            .collect();
        json!({
            "task": task.task.name(),
            "examples": task.examples,
            "per_leaf": {"min": task.min, "median": task.median, "max": task.max},
            "without": task.without,
            "leaves": per_leaf,
        })
    };
    json!({
        "output": output.display().to_string(),
        "examples": examples(report),
        "tasks": report.tasks.iter().map(task).collect::<Vec<_>>(),
        "without_examples": report.without_examples,
        "unanswerable": report.unanswerable,
        "other_splits": report.other_splits,
        "longest_tokens": report.longest,
    })
}
