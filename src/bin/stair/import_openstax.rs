//! `stair import-openstax`: a book of OpenStax to a document and questions.

use crate::output::{self, Failure, thousands};
use serde_json::json;
use stair::openstax::{Book, read, write};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Make a benchmark of a book of OpenStax
#[derive(clap::Args)]
pub struct Args {
    /// A checkout of the book's repository: the folder with `collections` and `modules`
    checkout: PathBuf,
    /// The collection: NAME of collections/NAME.collection.xml
    #[arg(long, value_name = "NAME")]
    collection: String,
    /// The folder to write book.md and questions.jsonl into
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let book = read(&args.checkout, &args.collection)?;
    write(&book, &args.output)?;
    let mut splits: BTreeMap<&str, u64> = BTreeMap::new();
    for question in &book.questions {
        *splits.entry(question.split.as_str()).or_default() += 1;
    }
    if args.json {
        output::json_line(&json!({
            "title": book.title,
            "licence": book.licence,
            "leaves": book.leaves,
            "questions": book.questions.len(),
            "splits": splits,
            "left_out": book.left_out,
            "repeated": book.repeated,
        }))?;
    } else {
        print_report(args, &book, &splits)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print_report(args: &Args, book: &Book, splits: &BTreeMap<&str, u64>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", args.output.display())?;
    writeln!(out, "  title              {}", book.title)?;
    let licence = book.licence.as_deref();
    writeln!(
        out,
        "  licence            {}",
        licence.unwrap_or("not named; see the book's repository")
    )?;
    writeln!(
        out,
        "  leaves             {}",
        thousands(book.leaves as u64)
    )?;
    let splits: Vec<String> = splits
        .iter()
        .map(|(split, count)| format!("{split} {}", thousands(*count)))
        .collect();
    writeln!(
        out,
        "  questions          {}: {}",
        thousands(book.questions.len() as u64),
        splits.join(", ")
    )?;
    writeln!(
        out,
        "  left out           {} too short or with blanks, {} repeated",
        thousands(book.left_out as u64),
        thousands(book.repeated as u64)
    )
}
