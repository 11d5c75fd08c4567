//! The commands that measure: audit, eval, compare, tune and report, from outside.

#![cfg(all(feature = "cli", feature = "evaluation"))]

mod common;

use common::{model_path, scratch};
use serde_json::{Value, json};
use stair::eval::Tuning;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const DOCUMENT: &str = "\
# House rules

## 1 Kitchen

### 1.1 Dishes

Whoever cooks washes up before midnight.

### 1.2 Fridge

Each flat has a shelf. Unlabelled food goes on Sunday.

## 2 Laundry

The drum takes six kilos. Coins are in the tin.

## 3 Guests

Visitors stay three nights at most.
";

/// A folder with an index and questions.
struct House {
    folder: tempfile::TempDir,
}

impl House {
    fn new() -> Self {
        let folder = tempfile::tempdir_in(scratch()).expect("a folder");
        let house = Self { folder };
        std::fs::write(house.path("house.md"), DOCUMENT).expect("writes");
        ok(stair(["build"])
            .arg(house.path("house.md"))
            .arg("-m")
            .arg(model_path())
            .arg("-o")
            .arg(house.path("x.stair")));
        house.questions(&[
            ("1", "Who washes the dishes?", Some("1.1 Dishes"), "train"),
            (
                "2",
                "When must dishes be washed up?",
                Some("1.1 Dishes"),
                "test",
            ),
            (
                "3",
                "How many kilos fit the drum?",
                Some("2 Laundry"),
                "test",
            ),
            ("4", "What is said of kitchens?", Some("1 Kitchen"), "test"),
            ("5", "Who won the cup in 1954?", None, "test"),
            (
                "6",
                "How many nights may visitors stay?",
                Some("3 Guests"),
                "dev",
            ),
            (
                "7",
                "What happens to unlabelled food?",
                Some("1.2 Fridge"),
                "dev",
            ),
            ("8", "Which planet is the largest?", None, "dev"),
        ]);
        house
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn questions(&self, questions: &[(&str, &str, Option<&str>, &str)]) {
        let lines: Vec<String> = questions
            .iter()
            .map(|(id, query, section, split)| {
                json!({"id": id, "query": query, "section": section, "split": split}).to_string()
            })
            .collect();
        std::fs::write(self.path("q.jsonl"), lines.join("\n")).expect("writes");
    }

    fn on(&self, command: &str) -> Command {
        let mut command = stair([command]);
        command
            .arg("-i")
            .arg(self.path("x.stair"))
            .arg(self.path("q.jsonl"));
        command
    }

    fn evaluate(&self, system: &str, name: &str, out: &str) -> Value {
        let mut command = self.on("eval");
        command.args(["--system", system, "--name", name, "--json", "--out"]);
        json(&ok(command.arg(self.path(out))))
    }
}

fn stair<const N: usize>(args: [&str; N]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stair"));
    command.args(args);
    // Nothing in the cache folder of whoever runs the tests.
    command.env("XDG_CACHE_HOME", common::scratch().join("cache"));
    command
}

fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().expect("starts")
}

#[track_caller]
fn ok(command: &mut Command) -> String {
    let output = run(command);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {error}", output.status);
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[track_caller]
fn fails(command: &mut Command, words: &[&str]) {
    let output = run(command);
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(output.status.code(), Some(1), "{said}");
    for word in words {
        assert!(said.contains(word), "no {word:?} in: {said}");
    }
    assert!(!said.contains("panicked"), "{said}");
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn an_audit_fails_for_errors_and_strictly_for_doubts() {
    let house = House::new();
    let text = ok(&mut house.on("audit"));
    assert!(text.contains("has subsections"), "{text}");
    fails(house.on("audit").arg("--strict"), &["orphans"]);
    house.questions(&[
        ("1", "Who washes up?", Some("1.1 Dishes"), "train"),
        ("1", "", Some("2 Laundry"), "test"),
    ]);
    fails(
        &mut house.on("audit"),
        &["the same id", "lines 1, 2", "empty"],
    );
    let audit = run(house.on("audit").arg("--json"));
    let audit = json(&String::from_utf8_lossy(&audit.stdout));
    assert_eq!(audit["empty"], json!([2]));
    assert_eq!(audit["splits"]["test"]["answerable"], 1);
}

#[test]
fn figures_predictions_comparison_and_report_hang_together() {
    let house = House::new();
    let summary = house.evaluate("lexical", "words", "a.jsonl");
    assert_eq!(summary["system"], "words");
    assert_eq!(summary["counts"]["orphans"], 1);
    assert_eq!(summary["counts"]["unanswerable"], 1);
    assert_eq!(summary["answerable"]["recall_at_1"]["value"], 1.0);
    assert_eq!(summary["all"]["recall_at_1"]["questions"], 3);
    assert_eq!(summary["hallucination"]["value"], 0.0);
    assert_eq!(summary["decodes"], Value::Null);

    let lines = std::fs::read_to_string(house.path("a.jsonl")).expect("reads");
    let first = json(lines.lines().next().expect("a line"));
    assert_eq!(first["gold_identifier"], "1.1 Dishes");
    assert_eq!(first["train_examples"], 1);
    assert_eq!(first["hits"][0]["identifier"], "1.1 Dishes");

    // Another system is whatever writes such a file; this one is always wrong at first.
    let other: Vec<String> = lines
        .lines()
        .map(|line| {
            let mut line = json(line);
            line["system"] = "other".into();
            let hits = line["hits"].as_array_mut().expect("a list");
            hits.remove(0);
            line.to_string()
        })
        .collect();
    std::fs::write(house.path("b.jsonl"), other.join("\n")).expect("writes");
    let files = [house.path("a.jsonl"), house.path("b.jsonl")];
    let compared = json(&ok(stair(["compare", "--json"]).args(&files)));
    let pair = &compared["pairs"][0]["recall_at_1"];
    assert_eq!((&pair["better"], &pair["worse"]), (&json!(2), &json!(0)));
    let text = ok(stair(["compare"]).args(&files));
    assert!(text.contains("words - other"), "{text}");

    let page = house.path("report.html");
    ok(stair(["report", "-o"]).arg(&page).args(&files));
    let page = std::fs::read_to_string(page).expect("reads");
    assert!(page.contains("<svg") && page.contains("Who won the cup"));

    std::fs::write(house.path("b.jsonl"), &other[0]).expect("writes");
    fails(stair(["compare"]).args(&files), &["same questions", "only"]);
    std::fs::write(house.path("b.jsonl"), "{").expect("writes");
    fails(stair(["compare"]).args(&files), &["b.jsonl, line 1"]);
}

#[test]
fn known_questions_count_in_the_lexical_score_and_not_in_bm25_by_the_book() {
    let house = House::new();
    // The document says nothing of planets; a question that is known to belong to a section does.
    let asked = |split| ("1", "Which planet is the largest?", Some("3 Guests"), split);
    house.questions(&[asked("train")]);
    ok(stair(["build"])
        .arg(house.path("house.md"))
        .arg("-m")
        .arg(model_path())
        .arg("-q")
        .arg(house.path("q.jsonl"))
        .arg("-o")
        .arg(house.path("x.stair")));
    house.questions(&[asked("test")]);
    for (system, expected) in [("lexical", 1.0), ("bm25", 0.0)] {
        let summary = house.evaluate(system, system, "a.jsonl");
        assert_eq!(summary["answerable"]["recall_at_1"]["value"], expected);
    }
}

#[test]
fn the_committed_tunings_can_be_read() {
    for book in ["handbook", "microbiology"] {
        let adapter = format!("examples/{book}/adapter/tune.json");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(adapter);
        let tuning = Tuning::read(&path).expect("a tuning of this version");
        assert!(tuning.is_some(), "{}", path.display());
    }
}

#[test]
fn systems_say_what_they_lack() {
    let house = House::new();
    fails(
        house.on("eval").args(["--system", "stair"]),
        &["needs a model"],
    );
    fails(
        house.on("eval").args(["--system", "bm25", "--split", "no"]),
        &["dev, test"],
    );
    fails(&mut house.on("tune"), &["without a model"]);
}

#[test]
fn what_was_tuned_is_used_for_this_model_and_index_alone() {
    let house = House::new();
    // Beside a model of its own name, so that other tests find no tuning.
    let model = house.path("m.gguf");
    link(&model_path(), &model);
    let with_model = |command: &str| {
        let mut command = house.on(command);
        command.arg("-m").arg(&model).args(["--threads", "2"]);
        command
    };
    fails(
        with_model("eval").args(["--system", "hybrid"]),
        &["needs a weight"],
    );
    let tuned = json(&ok(with_model("tune").args([
        "--weights",
        "0,1,2",
        "--json",
    ])));
    assert_eq!(tuned["weights"].as_array().map(Vec::len), Some(3));
    assert_eq!(tuned["refusal"]["unanswerable"], 1);
    assert!(house.path("m.tune.json").exists());

    let summary = json(&ok(
        with_model("eval").args(["--system", "hybrid", "--json"])
    ));
    assert_ne!(summary["refusal"], Value::Null);
    let ask = |more: &[&str]| {
        let mut command = stair(["retrieve", "--json", "-k", "1", "-i"]);
        command.arg(house.path("x.stair")).arg("-m").arg(&model);
        command
            .args(["--threads", "2"])
            .args(more)
            .arg("Who washes up?");
        run(&mut command)
    };
    let answer = json(&String::from_utf8_lossy(&ask(&[]).stdout));
    assert!(answer["answerable"].is_boolean(), "{answer}");
    assert_eq!(answer["hits"].as_array().map(Vec::len), Some(1));
    let plain = json(&String::from_utf8_lossy(&ask(&["--no-tune"]).stdout));
    assert_eq!(plain["answerable"], Value::Null);

    let mut other = tuned.clone();
    other["index"] = "0".repeat(32).into();
    std::fs::write(house.path("m.tune.json"), other.to_string()).expect("writes");
    let ignored = ask(&[]);
    assert!(String::from_utf8_lossy(&ignored.stderr).contains("another model or index"));
    let answer = json(&String::from_utf8_lossy(&ignored.stdout));
    assert_eq!(answer["answerable"], Value::Null);

    let menu = json(&ok(
        with_model("eval").args(["--system", "number", "--json"])
    ));
    assert_eq!(menu["hallucination"]["value"], 0.0);
}

/// A second name for a file, or a copy where the file system has no such thing.
fn link(from: &Path, to: &Path) {
    if std::fs::hard_link(from, to).is_err() {
        std::fs::copy(from, to).expect("copies");
    }
}
