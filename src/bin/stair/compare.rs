//! `stair compare`: whether systems differ by more than chance.

use crate::figures::percent;
use crate::output::{self, Failure};
use serde_json::json;
use stair::eval::compare::{Comparison, compare_all};
use stair::eval::randomization::Difference;
use stair::eval::{Estimate, Prediction, predictions};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Test whether systems differ by more than chance
///
/// Takes the predictions of several systems over the same questions. Each pair of systems is
/// compared by the paired randomization test, two-sided, over the questions that a leaf answers.
#[derive(clap::Args)]
pub struct Args {
    /// The predictions, a file for each system
    #[arg(required = true, value_name = "PRED.jsonl")]
    predictions: Vec<PathBuf>,
    /// Print one JSON object, with all figures of each system
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let comparison = compare_all(&read(&args.predictions)?)?;
    if args.json {
        output::json_line(&json!(comparison))?;
    } else {
        io::stdout()
            .lock()
            .write_all(table(&comparison).as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The files' names, and the predictions in them.
pub fn read(paths: &[PathBuf]) -> stair::Result<Vec<(String, Vec<Prediction>)>> {
    paths
        .iter()
        .map(|path| Ok((path.display().to_string(), predictions::read(path)?)))
        .collect()
}

fn table(comparison: &Comparison) -> String {
    let mut out = String::new();
    let width = comparison
        .systems
        .iter()
        .map(|s| s.system.len())
        .max()
        .unwrap_or(0)
        .max(6);
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "{:<width$}  {:>5}   {:<22}{:<22}{:<22}",
        "system", "n", "Recall@1 %", "Recall@3 %", "nDCG@3 %"
    );
    for system in &comparison.systems {
        let Some(ranking) = &system.answerable else {
            let _ = writeln!(
                out,
                "{:<width$}  no question that a leaf answers",
                system.system
            );
            continue;
        };
        let _ = writeln!(
            out,
            "{:<width$}  {:>5}   {:<22}{:<22}{:<22}",
            system.system,
            system.counts.answerable,
            interval(&ranking.recall_at_1),
            interval(&ranking.recall_at_3),
            interval(&ranking.ndcg_at_3)
        );
    }
    if comparison.pairs.is_empty() {
        return out;
    }
    let width = 2 * width + 3;
    let _ = writeln!(
        out,
        "\n{:<width$}   {:<28}{:<28}{:<28}",
        "difference in points", "Recall@1", "Recall@3", "nDCG@3"
    );
    for pair in &comparison.pairs {
        let _ = writeln!(
            out,
            "{:<width$}   {:<28}{:<28}{:<28}",
            format!("{} - {}", pair.a, pair.b),
            difference(&pair.recall_at_1),
            difference(&pair.recall_at_3),
            difference(&pair.ndcg_at_3)
        );
    }
    out.push_str("\n+a/-b: the first system is better at a questions and the second at b; p is not corrected\nfor the number of pairs.\n");
    out
}

fn interval(estimate: &Estimate) -> String {
    let Estimate {
        value, low, high, ..
    } = estimate;
    format!(
        "{} ({} to {})",
        percent(*value),
        percent(*low),
        percent(*high)
    )
}

fn difference(of: &Difference) -> String {
    let (points, p) = (100.0 * of.difference, of.p);
    format!("{points:+.1} p={p:.4} +{}/-{}", of.better, of.worse)
}
