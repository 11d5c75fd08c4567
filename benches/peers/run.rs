//! Asking all systems, in turn.

use crate::Anything;
use crate::child::{Patience, Running};
use crate::document::{self, Asked};
use crate::protocol::Answer;
use crate::systems::{self, Engine, System};
use crate::table::{self, Process, Record};
use stair::eval::gold::Sections;
use stair::eval::predictions::{self, Gold, Prediction};
use stair::{Index, files};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The arguments of `peers run`.
#[derive(clap::Args)]
pub struct Args {
    /// The index
    #[arg(long, value_name = "X.stair")]
    index: PathBuf,
    /// The model, trained for it
    #[arg(long, value_name = "M.gguf")]
    model: PathBuf,
    /// The questions: a JSON object a line
    #[arg(long, value_name = "Q.jsonl")]
    questions: PathBuf,
    /// The split to ask
    #[arg(long, default_value = "test")]
    split: String,
    /// Number of questions
    #[arg(short, default_value_t = 100)]
    n: usize,
    /// Number of sections to find
    #[arg(short, default_value_t = 3)]
    k: usize,
    /// Threads that compute, in every system [default: all that the process may use]
    #[arg(long)]
    threads: Option<u32>,
    /// Questions for transformers without a prefix cache, which takes long: so many of the others,
    /// evenly spread
    #[arg(long, value_name = "N", default_value_t = 20)]
    cold: usize,
    /// The Python of an environment with PyTorch and transformers
    #[arg(long)]
    python: Option<PathBuf>,
    /// Folder with node-llama-cpp in its node_modules
    #[arg(long)]
    node: Option<PathBuf>,
    /// Only these systems
    #[arg(long, value_delimiter = ',')]
    systems: Vec<String>,
    /// Folder for predictions, logs and the record of the run
    #[arg(long)]
    out: PathBuf,
    /// Where the figures go: name to number
    #[arg(long, value_name = "PEERS.json")]
    figures: Option<PathBuf>,
}

struct Contender {
    system: &'static System,
    running: Running,
    predictions: Vec<Prediction>,
}

pub fn run(args: &Args) -> Anything {
    std::fs::create_dir_all(&args.out)?;
    let threads = args
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get() as u32));
    let questions = document::questions(&args.questions, &args.split, args.n)?;
    let (document, asked) =
        document::document(&args.model, &args.index, questions, threads, args.k)?;
    let path = args.out.join("document.json");
    files::write_atomically(&path, &serde_json::to_vec(&document)?)?;
    println!(
        "{} questions, {} leaves, {} tokens of table of contents, {threads} threads; load average {}",
        asked.len(),
        document.titles.len(),
        document.prefix.len(),
        load()
    );

    let mut record = Record::default();
    let mut contenders = Vec::new();
    for system in &systems::ALL {
        let wanted = args.systems.is_empty() || args.systems.iter().any(|s| s == system.name);
        // What an earlier run left must not be taken for this one's.
        let _ = std::fs::remove_file(predictions_path(&args.out, system));
        if !wanted {
            continue;
        }
        match start(args, system, &path) {
            Ok(running) => {
                println!(
                    "{}: ready after {:.1} s",
                    system.name, running.start_seconds
                );
                contenders.push(Contender {
                    system,
                    running,
                    predictions: Vec::new(),
                });
            }
            Err(error) => {
                println!("{}: not run: {error}", system.name);
                record
                    .not_run
                    .insert(system.name.to_owned(), error.to_string());
            }
        }
    }
    let index = Index::open(&args.index)?;
    let sections = Sections::new(&index);
    let count = asked.len();
    for (i, asked) in asked.iter().enumerate() {
        // A system that hangs or ends is out, and the others go on.
        contenders.retain_mut(|contender| {
            if matches!(contender.system.engine, Engine::Python("cold"))
                && !is_drawn(i, count, args.cold)
            {
                return true;
            }
            let name = contender.system.name;
            match contender.running.ask(&asked.ask) {
                Ok(answer) => {
                    let prediction = prediction(contender.system, &sections, asked, answer);
                    contender.predictions.push(prediction);
                    true
                }
                Err(error) => {
                    let why = format!("question {} of {count}: {error}", i + 1);
                    println!("{name}: out: {why}");
                    record.not_run.insert(name.to_owned(), why);
                    false
                }
            }
        });
        eprintln!("question {} of {count}", i + 1);
    }
    record.load_average = load();
    for contender in contenders {
        let running = contender.running;
        let process = Process {
            versions: running.ready.versions.clone(),
            start_seconds: running.start_seconds,
            start_bytes: running.start_bytes,
            peak_bytes: running.peak_bytes(),
            own_bytes: running.own_bytes(),
        };
        running.end();
        record
            .processes
            .insert(contender.system.name.to_owned(), process);
        let bytes = predictions::format(&contender.predictions)?;
        files::write_atomically(predictions_path(&args.out, contender.system), &bytes)?;
    }
    let bytes = serde_json::to_vec_pretty(&record)?;
    files::write_atomically(table::record_path(&args.out), &bytes)?;
    table::print(&args.out, args.figures.as_deref())
}

fn start(args: &Args, system: &System, document: &Path) -> Anything<Running> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers");
    let mut command = match system.engine {
        Engine::Ours(_) | Engine::Llama(_) | Engine::EveryTitle => {
            let mut command = Command::new(std::env::current_exe()?);
            command.arg("serve").arg(system.name).arg(document);
            command
        }
        Engine::Python(variant) => {
            let python = args.python.as_ref().ok_or("no --python was given")?;
            let mut command = Command::new(python);
            command
                .arg(here.join("transformers_peer.py"))
                .arg(variant)
                .arg(document);
            command
        }
        Engine::Node => {
            let folder = args.node.as_ref().ok_or("no --node was given")?;
            // Node looks for packages from the program's own folder up.
            let program = folder.join("node_peer.mjs");
            std::fs::copy(here.join("node_peer.mjs"), &program)?;
            let mut command = Command::new("node");
            command.arg(program).arg(document);
            command
        }
    };
    if matches!(system.engine, Engine::Python(_) | Engine::Node) {
        // Cargo's names the folder of libstair's llama.cpp, which is not theirs.
        command.env_remove("LD_LIBRARY_PATH");
    }
    let log = args.out.join(format!("{}.log", system.name));
    Running::start(command, &log, Patience::default())
}

fn prediction(
    system: &System,
    sections: &Sections,
    asked: &Asked,
    mut answer: Answer,
) -> Prediction {
    let question = &asked.question;
    // Whether a hit is a leaf is measured here, not taken from the system's word.
    for hit in &mut answer.hits {
        hit.section = hit
            .section
            .filter(|id| sections.is_leaf(*id, &hit.identifier));
    }
    Prediction {
        id: question.id.clone(),
        query: question.query.clone(),
        split: question.split.clone(),
        system: system.name.to_owned(),
        gold: match sections.gold(question) {
            Gold::Leaf(leaf) => Some(leaf),
            Gold::Orphan | Gold::Nothing => None,
        },
        gold_identifier: question.section.clone(),
        hits: answer.hits,
        legal_mass: None,
        seconds: Some(answer.seconds),
        decodes: answer.decodes,
        tokens: answer.tokens,
        train_examples: 0,
        answerable: None,
        error: None,
    }
}

/// Whether the `i`th of `count` is among `drawn` that are evenly spread.
fn is_drawn(i: usize, count: usize, drawn: usize) -> bool {
    let drawn = drawn.min(count);
    i * drawn / count != (i + 1) * drawn / count
}

pub fn predictions_path(out: &Path, system: &System) -> PathBuf {
    out.join(format!("{}.jsonl", system.name))
}

fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_whitespace()
        .take(3)
        .collect::<Vec<_>>()
        .join(" ")
}
