//! `stair build`: a document to an index.

use crate::model::{Vocabulary, read_file};
use crate::output::{self, Failure, thousands};
use serde_json::{Value, json};
use stair::index::{BuildOptions, BuildReport, build};
use stair::prompt::Template;
use stair::toc::{ReadOptions, Toc};
use stair::{Error, RetrieverOptions, files, questions, toc};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Make an index from a document
#[derive(clap::Args)]
pub struct Args {
    /// The document: Markdown, or a toc.json (docs/toc-json.md)
    document: PathBuf,
    #[command(flatten)]
    vocabulary: Vocabulary,
    /// Where to write the index [default: the document's name with .stair]
    #[arg(short, long, value_name = "OUT.stair")]
    output: Option<PathBuf>,
    /// The document's title [default: its own]
    #[arg(long)]
    title: Option<String>,
    /// Leave the sections' texts out of the index
    #[arg(long)]
    no_text: bool,
    /// Keep cover, copyright and contents as sections
    #[arg(long)]
    keep_front_matter: bool,
    /// A prompt other than STAIR's own
    #[arg(long, value_name = "T.toml")]
    template: Option<PathBuf>,
    /// Leave the table of contents out of the prompt (DSI), for a model trained without it
    #[arg(long, conflicts_with = "template")]
    no_toc: bool,
    /// The token that ends a title [default: the vocabulary's end of text]
    #[arg(long, value_name = "TOKEN")]
    terminator: Option<String>,
    /// Questions with the sections that answer them: their words then count for their sections. They
    /// can be read in the index
    #[arg(short, long, value_name = "Q.jsonl")]
    questions: Vec<PathBuf>,
    /// The split of them to take
    #[arg(long, default_value = "train")]
    split: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    if args.document.is_dir() {
        return Err(Failure::Stair(Error::NotAFile(args.document.clone())));
    }
    let output = match &args.output {
        Some(path) => path.clone(),
        None if args.document.exists() && !args.document.is_file() => {
            return Err(Failure::Stair(Error::InvalidArgument(format!(
                "{} is no file that the index could stand beside: say where it goes with -o",
                args.document.display()
            ))));
        }
        None => args.document.with_extension("stair"),
    };
    let vocabulary = [&args.vocabulary.model, &args.vocabulary.tokenizer];
    let inputs = [&args.document].into_iter().chain(&args.questions);
    let inputs = inputs.chain(&args.template);
    output::not_an_input(&output, inputs.chain(vocabulary.into_iter().flatten()))?;

    let source = read_file(&args.document)?;
    let read = ReadOptions {
        title: args.title.clone(),
        keep_front_matter: args.keep_front_matter,
    };
    let toc = toc::read(&source, &args.document, &read)?;
    let mut template = match &args.template {
        Some(path) => {
            let bytes = read_file(path)?;
            let text = std::str::from_utf8(&bytes).map_err(|e| Error::InvalidUtf8 {
                what: path.display().to_string(),
                at: e.valid_up_to(),
            })?;
            Template::from_toml(text)?
        }
        None if args.no_toc => Template::without_contents(),
        None => Template::default(),
    };
    if args.terminator.is_some() {
        template.terminator.clone_from(&args.terminator);
    }
    let mut options = BuildOptions {
        template,
        text: !args.no_text,
        ..BuildOptions::default()
    };
    if !args.questions.is_empty() {
        let read = |path: &PathBuf| Ok((path.clone(), questions::read(path)?));
        let files = args.questions.iter().map(read);
        let files = files.collect::<Result<Vec<_>, Error>>()?;
        options.asked = questions::known(&files, &args.split, &toc)?;
    }
    let (tokenizer, context) = args.vocabulary.open()?;
    let titles = toc.leaves().count() as u64;
    let bar = indicatif::ProgressBar::new(titles).with_message("titles");
    // A bar that is gone before it can be read only flickers.
    if titles < 20_000 {
        bar.set_draw_target(indicatif::ProgressDrawTarget::hidden());
    }
    let (bytes, report) = build(&toc, &*tokenizer, &options, &|done| {
        bar.set_position(done as u64)
    })?;
    bar.finish_and_clear();
    files::write_atomically(&output, &bytes)?;

    let mut warnings = toc.notes.warnings.clone();
    warnings.extend(context.and_then(|context| little_room(&report, context)));
    if args.json {
        let mut report = report_json(&output, &toc, &report, context);
        report["questions"] = options.asked.len().into();
        report["warnings"] = warnings.into();
        output::json_line(&report)?;
    } else {
        print_report(&output, &toc, &report, context, options.asked.len())?;
        let mut out = io::stdout().lock();
        for warning in warnings {
            writeln!(out, "  warning: {warning}")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What to do where the model's `context` leaves less than a retriever keeps for a question by default.
fn little_room(report: &BuildReport, context: u32) -> Option<String> {
    let default = RetrieverOptions::default().max_question_tokens;
    let left = context.saturating_sub(report.prefix_tokens + report.longest_title_tokens);
    if left >= default {
        return None;
    }
    let remedy = match left {
        0..64 => String::new(),
        _ => format!("retrieve with --max-question-tokens {left}, "),
    };
    Some(format!(
        "the contents leave {left} of the model's {context} tokens for a question, and {default} are asked for by default: {remedy}split the document, or use a model with a longer context"
    ))
}

fn print_report(
    output: &std::path::Path,
    toc: &Toc,
    report: &BuildReport,
    context: Option<u32>,
    asked: usize,
) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let BuildReport {
        longest_title,
        longest_title_tokens,
        ..
    } = report;
    writeln!(out, "{}", output.display())?;
    writeln!(out, "  title              {}", toc.title)?;
    writeln!(
        out,
        "  leaves             {}",
        thousands(report.leaves.into())
    )?;
    writeln!(
        out,
        "  interior titles    {}",
        thousands(report.interiors.into())
    )?;
    let prefix = thousands(report.prefix_tokens.into());
    match context {
        Some(context) => {
            let context = thousands(context.into());
            writeln!(
                out,
                "  contents prompt    {prefix} of the model's {context} tokens"
            )?;
        }
        None => writeln!(out, "  contents prompt    {prefix} tokens")?,
    }
    writeln!(
        out,
        "  trie nodes         {}",
        thousands(report.nodes.into())
    )?;
    writeln!(
        out,
        "  longest title      {longest_title_tokens} tokens: {longest_title}"
    )?;
    writeln!(out, "  dropped            {}", listed(&toc.notes.dropped))?;
    let renamed: Vec<String> = toc
        .notes
        .renamed
        .iter()
        .map(|(from, to)| format!("{from} -> {to}"))
        .collect();
    writeln!(out, "  renamed            {}", listed(&renamed))?;
    if asked > 0 {
        writeln!(out, "  questions          {}", thousands(asked as u64))?;
    }
    writeln!(out, "  bytes              {}", thousands(report.bytes))?;
    Ok(())
}

fn listed(names: &[String]) -> String {
    match names.is_empty() {
        true => "0".to_owned(),
        false => format!("{}: {}", names.len(), names.join("; ")),
    }
}

fn report_json(
    output: &std::path::Path,
    toc: &Toc,
    report: &BuildReport,
    context: Option<u32>,
) -> Value {
    let renamed: Vec<Value> = toc
        .notes
        .renamed
        .iter()
        .map(|(from, to)| json!({"from": from, "to": to}))
        .collect();
    json!({
        "index": output.display().to_string(),
        "title": toc.title,
        "leaves": report.leaves,
        "interior_titles": report.interiors,
        "prefix_tokens": report.prefix_tokens,
        "model_context": context,
        "trie_nodes": report.nodes,
        "longest_title": report.longest_title,
        "longest_title_tokens": report.longest_title_tokens,
        "dropped": toc.notes.dropped,
        "renamed": renamed,
        "bytes": report.bytes,
    })
}
