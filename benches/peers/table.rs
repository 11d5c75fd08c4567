//! The table of a run, and the figures that have a goal.

use crate::Anything;
use crate::run::predictions_path;
use crate::systems::{self, System};
use serde::{Deserialize, Serialize};
use stair::eval::bootstrap::{Estimate, estimate};
use stair::eval::metrics::quantile;
use stair::eval::predictions::{self, Prediction};
use stair::eval::summary::Summary;
use stair::files;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// The arguments of `peers table`.
#[derive(clap::Args)]
pub struct Args {
    /// The folder of a run
    out: PathBuf,
    /// Where the figures go: name to number
    #[arg(long, value_name = "PEERS.json")]
    figures: Option<PathBuf>,
}

/// What a run noted besides predictions.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// The machine's load average when the last question was answered.
    pub load_average: String,
    /// Each system's process.
    pub processes: BTreeMap<String, Process>,
    /// Systems that could not be run, or not to the end, and why.
    pub not_run: BTreeMap<String, String>,
}

/// A system's process.
#[derive(Debug, Serialize, Deserialize)]
pub struct Process {
    pub versions: BTreeMap<String, String>,
    /// Seconds until it could be asked.
    pub start_seconds: f64,
    /// Most memory until then, in bytes.
    pub start_bytes: Option<u64>,
    /// Most memory after that, in bytes.
    pub peak_bytes: Option<u64>,
    /// Of it, without mapped files, at the end.
    pub own_bytes: Option<u64>,
}

/// A figure with a goal: the p50 of one system over that of another, on the questions of both.
struct Goal {
    name: &'static str,
    over: &'static str,
    under: &'static str,
    goal: Bound,
}

enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

const GOALS: [Goal; 7] = [
    Goal {
        name: "transformers_cold_over_stair",
        over: "transformers-cold",
        under: "stair",
        goal: Bound::AtLeast(40.0),
    },
    Goal {
        name: "transformers_warm_over_stair",
        over: "transformers-warm",
        under: "stair",
        goal: Bound::AtLeast(5.0),
    },
    Goal {
        name: "grammar_over_stair",
        over: "grammar",
        under: "stair",
        goal: Bound::AtLeast(3.0),
    },
    Goal {
        name: "llguidance_over_stair",
        over: "llguidance",
        under: "stair",
        goal: Bound::AtLeast(3.0),
    },
    Goal {
        name: "nprompt_over_stair",
        over: "nprompt",
        under: "stair",
        goal: Bound::AtLeast(10.0),
    },
    Goal {
        name: "p50_top3_over_floor",
        over: "stair",
        under: "floor",
        goal: Bound::AtMost(1.0),
    },
    Goal {
        name: "p50_top1_over_floor",
        over: "stair-top1",
        under: "floor",
        goal: Bound::AtMost(0.7),
    },
];

/// One system's part of a run.
struct Row {
    system: &'static System,
    predictions: Vec<Prediction>,
    seconds: HashMap<String, f64>,
}

pub fn run(args: &Args) -> Anything {
    print(&args.out, args.figures.as_deref())
}

/// Where a run in `out` keeps its record.
pub fn record_path(out: &Path) -> PathBuf {
    out.join("record.json")
}

/// Prints the table of the run in `out`, and writes its figures.
pub fn print(out: &Path, figures: Option<&Path>) -> Anything {
    let record: Record = serde_json::from_slice(&std::fs::read(record_path(out))?)?;
    let mut rows = Vec::new();
    for system in &systems::ALL {
        let path = predictions_path(out, system);
        if record.processes.contains_key(system.name) {
            rows.push(Row::new(system, predictions::read(path)?));
        }
    }
    systems_table(&rows, &record);
    ratios(&rows);
    agreement(&rows);
    let figures_found = goals(&rows);
    println!("\nload average at the end: {}", record.load_average);
    if let Some(path) = figures {
        let text = serde_json::to_string_pretty(&figures_found)?;
        files::write_atomically(path, format!("{text}\n").as_bytes())?;
        println!("written to {}", path.display());
    }
    Ok(())
}

fn systems_table(rows: &[Row], record: &Record) {
    println!(
        "\n| system | what | n | p50 ms | p95 ms | queries/s | Recall@1 % | Recall@3 % | decodes | tokens | peak MiB | of its own | start s |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for row in rows {
        let summary = Summary::new(&row.predictions);
        let n = row.predictions.len();
        let milliseconds = |estimate: Option<Estimate>| number(estimate.map(|e| 1e3 * e.value), 0);
        let percent = |estimate: Option<Estimate>| number(estimate.map(|e| 1e2 * e.value), 1);
        let latency = summary.latency.as_ref();
        let ranking = summary.answerable.as_ref();
        let process = &record.processes[row.system.name];
        let mebibytes = |bytes: Option<u64>| number(bytes.map(|b| b as f64 / 1048576.0), 0);
        println!(
            "| {} | {} | {n} | {} | {} | {:.2} | {} | {} | {} | {} | {} | {} | {:.1} |",
            row.system.name,
            row.system.what,
            milliseconds(latency.map(|l| l.p50)),
            milliseconds(latency.map(|l| l.p95)),
            n as f64 / row.seconds.values().sum::<f64>(),
            percent(ranking.map(|r| r.recall_at_1)),
            match row.finds_several() {
                true => percent(ranking.map(|r| r.recall_at_3)),
                false => "-".to_owned(),
            },
            number(summary.decodes.map(|e| e.value), 1),
            number(summary.tokens.map(|e| e.value), 1),
            mebibytes(process.peak_bytes),
            mebibytes(process.own_bytes),
            process.start_seconds,
        );
    }
    for (system, why) in &record.not_run {
        println!("| {system} | not run: {why} |");
    }
    println!();
    for (system, process) in &record.processes {
        let versions: Vec<String> = process
            .versions
            .iter()
            .map(|(name, version)| format!("{name} {version}"))
            .collect();
        println!("{system}: {}", versions.join(", "));
    }
}

/// p50 of the row's system over that of the column's.
fn ratios(rows: &[Row]) {
    println!("\np50 of the row over that of the column, on the questions that both were asked:\n");
    let names: Vec<&str> = rows.iter().map(|row| row.system.name).collect();
    println!("| | {} |", names.join(" | "));
    println!("|---|{}", "---|".repeat(names.len()));
    for over in rows {
        let cells: Vec<String> = rows
            .iter()
            .map(|under| number(ratio(over, under).map(|e| e.value), 2))
            .collect();
        println!("| {} | {} |", over.system.name, cells.join(" | "));
    }
}

/// Whether scoring every title ranks as the search does, which is the same sum of logarithms.
fn agreement(rows: &[Row]) {
    let row = |name| rows.iter().find(|row| row.system.name == name);
    let (Some(ours), Some(every)) = (row("stair"), row("nprompt")) else {
        return;
    };
    let of_ours: HashMap<&str, &Prediction> = ours
        .predictions
        .iter()
        .map(|prediction| (prediction.id.as_str(), prediction))
        .collect();
    let (mut first, mut all, mut most) = (0, 0, 0.0f64);
    for prediction in &every.predictions {
        let Some(ours) = of_ours.get(prediction.id.as_str()) else {
            continue;
        };
        let pairs = || ours.hits.iter().zip(&prediction.hits);
        let same = pairs().take_while(|(a, b)| a.section == b.section).count();
        first += usize::from(same > 0);
        all += usize::from(same == prediction.hits.len());
        for (a, b) in pairs().filter(|(a, b)| a.section == b.section) {
            most = most.max((a.score - b.score).abs());
        }
    }
    println!(
        "\nnprompt and stair: the same first section for {first} of {n} questions, the same {k} in the same \
         order for {all}; log-probabilities of the same section differ by at most {most:.3}",
        n = every.predictions.len(),
        k = every
            .predictions
            .first()
            .map_or(0, |prediction| prediction.hits.len()),
    );
}

fn goals(rows: &[Row]) -> BTreeMap<&'static str, f64> {
    println!("\n| figure | value | 95 % interval | n | goal | |");
    println!("|---|---|---|---|---|---|");
    let mut figures = BTreeMap::new();
    for goal in &GOALS {
        let row = |name| rows.iter().find(|row| row.system.name == name);
        let (Some(over), Some(under)) = (row(goal.over), row(goal.under)) else {
            println!("| {} | not measured | | | | |", goal.name);
            continue;
        };
        let Some(found) = ratio(over, under) else {
            println!("| {} | no question in common | | | | |", goal.name);
            continue;
        };
        let (sign, bound, reached) = match goal.goal {
            Bound::AtLeast(bound) => (">=", bound, found.value >= bound),
            Bound::AtMost(bound) => ("<=", bound, found.value <= bound),
        };
        println!(
            "| {} | {:.2} | {:.2} to {:.2} | {} | {sign} {bound} | {} |",
            goal.name,
            found.value,
            found.low,
            found.high,
            found.questions,
            if reached { "" } else { "missed" },
        );
        figures.insert(goal.name, found.value);
    }
    figures
}

/// p50 of `over` divided by p50 of `under`, over the questions that both were asked.
fn ratio(over: &Row, under: &Row) -> Option<Estimate> {
    let pairs: Vec<(f64, f64)> = over
        .predictions
        .iter()
        .filter_map(|prediction| {
            let id = &prediction.id;
            Some((*over.seconds.get(id)?, *under.seconds.get(id)?))
        })
        .collect();
    let p50 = |draw: &[usize], part: fn(&(f64, f64)) -> f64| {
        let mut values: Vec<f64> = draw.iter().map(|&i| part(&pairs[i])).collect();
        quantile(&mut values, 0.5)
    };
    estimate(pairs.len(), |draw| {
        p50(draw, |pair| pair.0) / p50(draw, |pair| pair.1)
    })
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

impl Row {
    fn new(system: &'static System, predictions: Vec<Prediction>) -> Self {
        let seconds = predictions
            .iter()
            .filter_map(|prediction| Some((prediction.id.clone(), prediction.seconds?)))
            .collect();
        Self {
            system,
            predictions,
            seconds,
        }
    }

    fn finds_several(&self) -> bool {
        self.predictions
            .iter()
            .any(|prediction| prediction.hits.len() > 1)
    }
}
