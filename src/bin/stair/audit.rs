//! `stair audit`: what is wrong with a file of questions.

use crate::output::{self, Failure};
use serde_json::json;
use stair::eval::audit::Audit;
use stair::{Index, questions};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Problems of a kind that are printed before they are only counted.
const SHOWN: usize = 10;

/// Find what is wrong with a file of questions
///
/// Fails when ids repeat, when questions are empty or when no question is answered by a leaf;
/// with --strict also for orphans, questions that stand twice and splits that leak.
#[derive(clap::Args)]
pub struct Args {
    /// The index
    #[arg(short, long, value_name = "X.stair")]
    index: PathBuf,
    /// The questions: a JSON object a line
    questions: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Fail for what may mislead, too
    #[arg(long)]
    strict: bool,
}

pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let index = Index::open(&args.index)?;
    let audit = Audit::new(&questions::read_unchecked(&args.questions)?, &index);
    if args.json {
        output::json_line(&json!(audit))?;
    } else {
        io::stdout().lock().write_all(text(&audit).as_bytes())?;
    }
    Ok(
        match audit.has_errors() || args.strict && audit.has_warnings() {
            true => ExitCode::FAILURE,
            false => ExitCode::SUCCESS,
        },
    )
}

fn text(audit: &Audit) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "{} questions about {} leaves",
        audit.questions, audit.leaves
    );
    for (name, split) in &audit.splits {
        let _ = writeln!(
            out,
            "  {name}: {} questions; {} that a leaf answers, {} orphans ({:.1} %), {} that no \
             section answers; {} leaves without a question",
            split.questions,
            split.answerable,
            split.orphans,
            100.0 * split.orphans as f64 / split.questions.max(1) as f64,
            split.unanswerable,
            split.leaves_without_questions.len()
        );
    }
    let train = audit.splits.get("train");
    let untrained = train.map_or(&[][..], |split| &split.leaves_without_questions);
    let lines = |lines: &[usize]| {
        let lines: Vec<String> = lines.iter().map(usize::to_string).collect();
        format!("lines {}", lines.join(", "))
    };
    list(
        &mut out,
        "error: the same id",
        &audit.duplicate_ids,
        |repeated| format!("{:?}, {}", repeated.what, lines(&repeated.lines)),
    );
    list(&mut out, "error: empty questions", &audit.empty, |line| {
        format!("line {line}")
    });
    if !audit.splits.values().any(|split| split.answerable > 0) {
        out.push_str("error: no question is answered by a leaf of this index\n");
    }
    list(
        &mut out,
        "orphans: the section is not a leaf",
        &audit.orphans,
        |orphan| {
            let why = match orphan.has_subsections {
                true => "has subsections",
                false => "is not in the index",
            };
            format!("line {}: {:?} {why}", orphan.line, orphan.section)
        },
    );
    list(
        &mut out,
        "the same question twice",
        &audit.duplicate_questions,
        |repeated| format!("{}, {}", repeated.what, lines(&repeated.lines)),
    );
    for (heading, leaks) in [
        ("leaks between splits", &audit.leaks),
        ("reworded between splits", &audit.reworded),
    ] {
        list(&mut out, heading, leaks, |leak| {
            format!(
                "{} line {} and {} line {}: {:.0} % of the words",
                leak.a_split,
                leak.a_line,
                leak.b_split,
                leak.b_line,
                100.0 * leak.overlap
            )
        });
    }
    match &audit.leaves_without_text {
        Some(leaves) => list(&mut out, "leaves without text", leaves, String::clone),
        None => out.push_str("the index has no texts\n"),
    }
    list(
        &mut out,
        "leaves without a training question",
        untrained,
        String::clone,
    );
    out
}

/// The first of `items` under a heading with their number; nothing when there are none.
fn list<T>(out: &mut String, heading: &str, items: &[T], line: impl Fn(&T) -> String) {
    if items.is_empty() {
        return;
    }
    let _ = writeln!(out, "{heading}: {}", items.len());
    for item in items.iter().take(SHOWN) {
        let _ = writeln!(out, "  {}", line(item));
    }
    if items.len() > SHOWN {
        let _ = writeln!(out, "  and {} more (--json has all)", items.len() - SHOWN);
    }
}
