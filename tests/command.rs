//! The command `stair`, from outside.

#![cfg(all(feature = "cli", feature = "building"))]

mod common;

use common::{handbook, handbook_path, model_path, scratch};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn stair() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stair"));
    // Nothing in the cache folder of whoever runs the tests.
    command.env("XDG_CACHE_HOME", scratch().join("cache"));
    command
}

fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().expect("starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Checks success, and silence on standard error.
fn ok(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{}: {}",
        output.status,
        stderr(output)
    );
    assert_eq!(stderr(output), "");
    stdout(output)
}

/// Checks that it failed with `status` and said so in one line, with the code's name.
fn fails(output: &Output, status: i32, words: &[&str]) {
    let error = stderr(output);
    assert_eq!(output.status.code(), Some(status), "{error}");
    for word in words {
        assert!(error.contains(word), "no {word:?} in: {error}");
    }
    assert!(!error.contains("panicked"), "{error}");
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(scratch()).expect("a folder")
}

fn build(document: &Path) -> Command {
    let mut command = stair();
    command
        .arg("build")
        .arg(document)
        .arg("-m")
        .arg(model_path());
    command
}

fn retrieve() -> Command {
    let mut command = stair();
    let index = &handbook().path;
    command
        .arg("retrieve")
        .arg("-i")
        .arg(index)
        .arg("-m")
        .arg(model_path())
        .arg("--no-cache");
    command
}

#[test]
fn build_says_what_it_made() {
    let folder = folder();
    let document = folder.path().join("handbook.md");
    std::fs::copy(handbook_path(), &document).expect("copies");
    let text = ok(&run(&mut build(&document)));
    for word in [
        "leaves             56",
        "contents prompt",
        "of the model's",
        "trie nodes",
    ] {
        assert!(text.contains(word), "no {word:?} in: {text}");
    }
    // Beside the document, under its name, and the same bytes as the library makes.
    let index = std::fs::read(folder.path().join("handbook.stair")).expect("was made");
    assert!(index == handbook().index.bytes());

    let other = folder.path().join("other.stair");
    let text = ok(&run(build(&document)
        .args(["--json", "--no-text", "--title", "Other", "-o"])
        .arg(&other)));
    let report = json(&text);
    assert_eq!(
        (&report["leaves"], &report["title"]),
        (&56.into(), &"Other".into())
    );
    let bytes = std::fs::metadata(&other).expect("was made").len();
    assert_eq!(report["bytes"], bytes);
    assert!(bytes < index.len() as u64);
}

#[test]
fn build_refuses_what_it_cannot_do() {
    let folder = folder();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("writes");
        path
    };
    let document = file("d.md", "# A\n\na\n");
    let same = run(build(&document).arg("-o").arg(&document));
    fails(
        &same,
        1,
        &["also what this is made from", "INVALID_ARGUMENT"],
    );
    let questions = file("q.jsonl", "");
    let other_name = folder.path().join("./q.jsonl");
    fails(
        &run(build(&document)
            .arg("-q")
            .arg(&questions)
            .arg("-o")
            .arg(other_name)),
        1,
        &["also what this is made from"],
    );
    assert_eq!(std::fs::read(&document).expect("is there"), b"# A\n\na\n");
    let stair_document = file("d.stair", "# A\n\na\n");
    fails(
        &run(&mut build(&stair_document)),
        1,
        &["also what this is made from"],
    );
    let headless = file("h.md", "Nothing but text.\n");
    fails(
        &run(&mut build(&headless)),
        1,
        &["no headings", "NO_HEADINGS"],
    );
    let broken = file("b.json", "{");
    fails(&run(&mut build(&broken)), 1, &["DOCUMENT"]);
    fails(
        &run(&mut build(&folder.path().join("no.md"))),
        1,
        &["no.md", "NOT_FOUND"],
    );
    fails(&run(&mut build(folder.path())), 1, &["NOT_A_FILE"]);
    let nowhere = run(build(&document)
        .arg("-o")
        .arg(folder.path().join("no/x.stair")));
    fails(&nowhere, 1, &["NOT_FOUND"]);
    let mut no_model = stair();
    let no_model = run(no_model.arg("build").arg(&document).args(["-m", "no.gguf"]));
    fails(&no_model, 1, &["no.gguf", "NOT_FOUND"]);
    assert!(!folder.path().join("h.stair").exists());
}

#[test]
fn wrong_arguments_are_a_usage_error() {
    for arguments in [
        &["nonesuch"][..],
        &["build"],
        &["build", "x.md"],
        &["build", "x.md", "-m", "a", "--tokenizer", "b"],
        &["retrieve", "-m", "x.gguf"],
        &["retrieve", "-i", "x.stair", "--gpu-layers", "1"],
        &["retrieve", "-i", "x.stair", "--lexical-weight", "much"],
        &["retrieve", "-i", "x", "-m", "y", "-k", "three"],
        &["inspect", "x.stair", "--json", "--dot"],
        &["quantize", "a.gguf", "-o", "b.gguf", "--type", "q7"],
    ] {
        let output = run(stair().args(arguments));
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            stderr(&output)
        );
        assert!(stderr(&output).contains("Usage") || stderr(&output).contains("--help"));
    }
    for arguments in [["--help"], ["--version"]] {
        assert!(!ok(&run(stair().args(arguments))).is_empty());
    }
}

#[test]
fn inspect_shows_the_tree_and_the_trie() {
    let index = &handbook().path;
    let text = ok(&run(stair().arg("inspect").arg(index)));
    assert!(
        text.contains("56 leaves") && text.contains("1.3.1 Eligibility"),
        "{text}"
    );
    let value = json(&ok(&run(stair().arg("inspect").arg(index).arg("--json"))));
    let leaves = value["sections"].as_array().expect("sections");
    assert_eq!(leaves.iter().filter(|s| s["leaf"] == true).count(), 56);
    assert_eq!(
        value["trie"].as_array().expect("nodes").len(),
        handbook().index.trie().len()
    );
    let dot = ok(&run(stair().arg("inspect").arg(index).arg("--dot")));
    assert!(dot.starts_with("digraph") && dot.ends_with("}\n"));
    assert_eq!(dot.matches("shape=box").count(), 56);
}

#[test]
fn verify_says_where_the_damage_is() {
    let folder = folder();
    let text = ok(&run(stair().arg("verify").arg(&handbook().path)));
    assert!(
        text.contains("whole") && text.contains("56 leaves"),
        "{text}"
    );
    let path = folder.path().join("damaged.stair");
    let mut bytes = handbook().index.bytes().to_vec();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    std::fs::write(&path, &bytes).expect("writes");
    let output = run(stair().arg("verify").arg(&path));
    fails(&output, 1, &["damaged at byte", "INDEX_CORRUPT"]);
    assert_eq!(stdout(&output), "");
    std::fs::write(&path, b"# Not an index\n").expect("writes");
    fails(&run(stair().arg("verify").arg(&path)), 1, &["NOT_AN_INDEX"]);
    fails(
        &run(stair().arg("verify").arg(folder.path())),
        1,
        &["NOT_A_FILE"],
    );
}

#[test]
fn retrieve_answers_its_arguments_and_then_lines_of_standard_input() {
    let questions = ["How long is my notice period?", "Who approves a trip?"];
    let text = ok(&run(retrieve()
        .args(["--json", "--stats", "--text", "-k", "2"])
        .args(questions)));
    let answers: Vec<Value> = text.lines().map(json).collect();
    assert_eq!(answers.len(), 2);
    for (answer, question) in answers.iter().zip(questions) {
        assert_eq!(answer["query"], question);
        let hits = answer["hits"].as_array().expect("hits");
        assert_eq!(hits.len(), 2);
        for hit in hits {
            let id = hit["section"].as_u64().expect("a section") as u32;
            let section = handbook().index.section(id).expect("of the index");
            assert!(section.leaf);
            assert_eq!(hit["title"], section.title);
            assert_eq!(hit["text"].as_str(), section.text);
            assert_eq!(
                hit["path"].as_array().and_then(|p| p.last()),
                Some(&section.identifier().into())
            );
        }
        assert!(
            answer["legal_mass"]
                .as_f64()
                .is_some_and(|mass| (0.0..=1.0).contains(&mass))
        );
        // The command warms the retriever before it asks.
        assert_eq!(answer["stats"]["prefix_tokens"], 0);
    }

    let mut child = retrieve()
        .args(["-k", "1", "--stats"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut input = child.stdin.take().expect("a pipe");
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut prefix = Vec::new();
    // The next line is written only when the last one was answered: nothing is held back.
    for (line, error) in [
        (&b"How long is my notice period?\n"[..], None),
        (b"\r\n", Some("EMPTY_QUESTION")),
        (b"caf\xE9 opening hours\n", Some("INVALID_UTF8")),
        (b"May I swap shifts?", None),
    ] {
        input.write_all(line).expect("reads on");
        if !line.ends_with(b"\n") {
            drop(std::mem::replace(&mut input, dummy_stdin()));
        }
        let mut answer = String::new();
        output.read_line(&mut answer).expect("answers");
        let answer = json(&answer);
        assert_eq!(answer["error"]["name"].as_str(), error, "{answer}");
        assert!(answer["query"].is_string());
        if error.is_none() {
            assert_eq!(answer["hits"].as_array().map(Vec::len), Some(1));
            prefix.push(answer["stats"]["prefix_tokens"].as_u64());
        } else {
            assert!(answer["error"]["code"].is_number() && answer["error"]["message"].is_string());
        }
    }
    let mut rest = String::new();
    output.read_to_string(&mut rest).expect("ends");
    assert_eq!(rest, "");
    assert!(child.wait().expect("ends").success());
    assert_eq!(
        prefix,
        [Some(handbook().index.prefix().len() as u64), Some(0)]
    );
}

/// What `stair retrieve`, which computes, has in its environment when `setting` is what the user gave it.
#[cfg(all(target_os = "linux", feature = "portable"))]
fn waiting_of(setting: Option<(&str, &str)>) -> Vec<String> {
    let mut command = stair();
    command
        .env_remove("GOMP_SPINCOUNT")
        .env_remove("OMP_WAIT_POLICY");
    let mut child = command
        .envs(setting)
        .args(["retrieve", "-k", "1", "-i"])
        .arg(&handbook().path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut input = child.stdin.take().expect("a pipe");
    input
        .write_all(b"When are salaries paid?\n")
        .expect("writes");
    let mut answer = String::new();
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    output.read_line(&mut answer).expect("reads");
    // The same process, however often it began.
    let variables = std::fs::read(format!("/proc/{}/environ", child.id())).expect("reads");
    drop(input);
    assert!(child.wait().expect("ends").success());
    assert!(answer.contains("salaries"), "{answer}");
    String::from_utf8_lossy(&variables)
        .split('\0')
        .filter(|line| line.starts_with("GOMP_SPINCOUNT=") || line.starts_with("OMP_WAIT_POLICY="))
        .map(str::to_owned)
        .collect()
}

#[cfg(all(target_os = "linux", feature = "portable"))]
#[test]
fn threads_that_wait_turn_for_a_moment_only_unless_the_user_says_otherwise() {
    assert_eq!(waiting_of(None), ["GOMP_SPINCOUNT=1000"]);
    for (name, value) in [("GOMP_SPINCOUNT", "7"), ("OMP_WAIT_POLICY", "active")] {
        assert_eq!(waiting_of(Some((name, value))), [format!("{name}={value}")]);
    }
}

/// A standard input to put in place of one that is to be closed.
fn dummy_stdin() -> std::process::ChildStdin {
    let mut child = Command::new("true")
        .stdin(Stdio::piped())
        .spawn()
        .expect("starts");
    let input = child.stdin.take().expect("a pipe");
    child.wait().expect("ends");
    input
}

#[test]
fn retrieve_fails_with_a_status_and_a_reason() {
    let long = "word ".repeat(100_000 / 5);
    fails(&run(retrieve().arg(long)), 1, &["QUESTION_TOO_LONG"]);
    fails(
        &run(retrieve().args(["-k", "57", "What?"])),
        1,
        &["INVALID_K", "1 to 56"],
    );
    fails(
        &run(retrieve().args(["--timeout-ms", "1", "What?"])),
        1,
        &["TIMEOUT"],
    );
    let mut no_index = stair();
    no_index
        .args(["retrieve", "-i", "no.stair", "-m"])
        .arg(model_path())
        .arg("What?");
    fails(&run(&mut no_index), 1, &["no.stair", "NOT_FOUND"]);
    let small = run(retrieve().args(["--context", "100", "What?"]));
    fails(&small, 1, &["CONTEXT_TOO_SMALL"]);
}

#[test]
fn retrieve_without_a_model_ranks_by_words() {
    let words = || {
        let mut command = stair();
        command.args(["retrieve", "-i"]).arg(&handbook().path);
        command
    };
    let question = "notice periods while on probation";
    let text =
        ok(&run(words().args([
            "--json", "--stats", "-k", "5", question, "zebra?",
        ])));
    let answers: Vec<Value> = text.lines().map(json).collect();
    for answer in &answers {
        let hits = answer["hits"].as_array().expect("hits");
        assert_eq!(hits.len(), 5);
        assert!(answer["legal_mass"].is_null() && answer["stats"]["decodes"] == 0);
        for hit in hits {
            assert!(hit["log_prob"].is_null() && hit["score"].is_number());
            assert_eq!(hit["score"], hit["lexical"]);
        }
    }
    assert!(
        answers[0]["hits"][0]["lexical"].as_f64() > Some(1.0),
        "{text}"
    );
    let hits = answers[1]["hits"].as_array().expect("hits");
    let sections: Vec<u64> = hits
        .iter()
        .filter_map(|hit| hit["section"].as_u64())
        .collect();
    assert!(sections.is_sorted() && hits.iter().all(|hit| hit["score"] == 0.0));

    let text = ok(&run(words().arg(question)));
    assert!(
        text.lines().count() >= 4 && text.starts_with(question),
        "{text}"
    );
    fails(&run(words().arg(" ")), 1, &["EMPTY_QUESTION"]);
    for weight in ["-1", "inf", "NaN"] {
        let output = run(words().args(["--lexical-weight", weight, "What?"]));
        fails(&output, 1, &["INVALID_ARGUMENT", weight, "finite"]);
    }
}

#[test]
fn lines_are_answered_in_their_order_and_not_read_without_end() {
    use std::io::{Read, Write};
    let mut command = stair();
    command.args(["retrieve", "--json", "--callers", "4", "-k", "1", "-i"]);
    let mut child = command
        .arg(&handbook().path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut input = child.stdin.take().expect("piped");
    let mut output = child.stdout.take().expect("piped");
    const LINES: usize = 20_000;
    // Nobody reads the answers yet: where they are all kept, all questions are taken.
    let (took, taken) = std::sync::mpsc::channel();
    let asker = std::thread::spawn(move || {
        for line in 0..LINES {
            let padding = "x".repeat(100);
            writeln!(input, "question {line} {padding}").expect("is read");
            took.send(line).expect("is counted");
        }
    });
    let mut last = 0;
    while let Ok(line) = taken.recv_timeout(std::time::Duration::from_secs(2)) {
        last = line;
    }
    assert!(last < LINES - 1, "all of {LINES} lines were read");
    let mut text = String::new();
    output.read_to_string(&mut text).expect("reads");
    asker.join().expect("ends");
    assert!(child.wait().expect("ends").success());
    let answers: Vec<Value> = text.lines().map(json).collect();
    assert_eq!(answers.len(), LINES);
    for (line, answer) in answers.iter().enumerate() {
        let query = answer["query"].as_str().expect("a text");
        assert!(query.starts_with(&format!("question {line} ")), "{query}");
    }
}

#[test]
fn retrieve_says_what_a_score_is_made_of() {
    let question = "May I swap shifts with a colleague?";
    let text = ok(&run(retrieve().args([
        "--json",
        "--lexical-weight",
        "0.5",
        question,
    ])));
    for hit in json(&text)["hits"].as_array().expect("hits") {
        let number = |name: &str| hit[name].as_f64().expect("a number");
        let sum = number("log_prob") + 0.5 * number("lexical");
        assert!((number("score") - sum).abs() < 1e-5, "{hit}");
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_command_quietly() {
    for arguments in [
        &["inspect", "--dot"][..],
        &["inspect", "--json"],
        &["inspect"],
    ] {
        let mut child = stair()
            .args(arguments)
            .arg(&handbook().path)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("ends");
        assert_eq!(stderr(&output), "", "{arguments:?}");
        assert!(output.status.success(), "{arguments:?}: {}", output.status);
    }
    let document = folder();
    let path = document.path().join("d.md");
    std::fs::write(&path, "# A\n\na\n").expect("writes");
    for arguments in [&[][..], &["--json"]] {
        let mut child = build(&path)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("ends");
        assert_eq!(stderr(&output), "", "{arguments:?}");
    }
}

#[test]
fn quantize_writes_a_model_that_opens() {
    let folder = folder();
    let path = folder.path().join("q4.gguf");
    let mut command = stair();
    command
        .arg("quantize")
        .arg(model_path())
        .arg("-o")
        .arg(&path);
    let text = ok(&run(command.args(["--type", "q4_0"])));
    assert!(text.contains("bytes, from"), "{text}");
    let model = stair::Model::open(&path, &common::vocabulary_only()).expect("opens");
    assert_eq!(
        model.info().fingerprint,
        common::vocabulary().info().fingerprint
    );
    let mut command = stair();
    command
        .arg("quantize")
        .arg(handbook_path())
        .arg("-o")
        .arg(&path);
    fails(&run(&mut command), 1, &["NOT_A_MODEL"]);
}

#[test]
fn train_data_is_encoded_as_the_engine_encodes() {
    let folder = folder();
    let questions = folder.path().join("q.jsonl");
    let output = folder.path().join("out.jsonl");
    let index = &handbook().index;
    let leaf = (0..index.sections())
        .filter_map(|id| index.section(id))
        .find(|section| section.leaf)
        .expect("a leaf");
    let lines = [
        serde_json::json!({"id": 1, "query": "When must I be\n there?", "section": leaf.identifier(), "split": "train"}),
        serde_json::json!({"id": 2, "query": "Who won?", "section": null, "split": "train"}),
    ];
    let lines = lines.map(|line| format!("{line}\n")).concat();
    std::fs::write(&questions, lines).expect("writes");
    let train_data = |more: &[&str]| {
        let mut command = stair();
        command.args(["train-data", "-m"]).arg(model_path());
        command.arg("-i").arg(&handbook().path);
        command.arg("--questions").arg(&questions);
        command.arg("-o").arg(&output).args(more);
        run(&mut command)
    };
    let report = json(&ok(&train_data(&["--json"])));
    assert_eq!(report["unanswerable"], 1);
    assert_eq!(report["without_examples"], serde_json::json!([]));
    let text = std::fs::read_to_string(&output).expect("was made");
    let mut lines = text.lines().map(json);
    let header = lines.next().expect("a header");
    assert_eq!(header["prefix"], serde_json::json!(index.prefix()));
    let vocabulary = common::vocabulary();
    let question = index.question();
    let mut tokens = question
        .encode_question(vocabulary, "When must I be\n there?")
        .expect("encodes");
    let start = tokens.len();
    let titles = question.titles(vocabulary, index.terminator());
    tokens.extend(
        titles
            .and_then(|t| t.encode(&leaf.identifier()))
            .expect("encodes"),
    );
    let first = lines.next().expect("an example");
    assert_eq!(first["tokens"], serde_json::json!(tokens));
    assert_eq!(first["target"], serde_json::json!([start, tokens.len()]));

    let text = ok(&train_data(&["--no-toc", "--tasks", "retrieval"]));
    assert!(text.contains("unanswerable       1\n"), "{text}");
    let bare = folder.path().join("bare.stair");
    ok(&run(build(&handbook_path())
        .arg("--no-toc")
        .arg("-o")
        .arg(&bare)));
    let bare = stair::Index::open(bare).expect("opens");
    let text = std::fs::read_to_string(&output).expect("was made");
    let header = json(text.lines().next().expect("a header"));
    assert_eq!(header["prefix"], serde_json::json!(bare.prefix()));

    fails(&train_data(&["--split", "dev"]), 1, &["\"dev\"", "train"]);
    fails(
        &train_data(&["--tasks", "x"]),
        2,
        &["retrieval, ingestion, terms"],
    );
    std::fs::write(&questions, "{\"id\": 1}\n").expect("writes");
    fails(&train_data(&[]), 1, &["line 1", "QUESTIONS"]);
    // What stood there before a failure still does.
    assert_eq!(std::fs::read_to_string(&output).expect("reads"), text);
}

#[cfg(target_os = "linux")]
#[test]
fn warm_succeeds_only_with_a_file_that_it_read_or_wrote() {
    let folder = folder();
    let document = folder.path().join("small.md");
    std::fs::write(&document, "# A\n\na\n\n# B\n\nb\n").expect("writes");
    ok(&run(&mut build(&document)));
    let index = folder.path().join("small.stair");
    let cache = folder.path().join("cache");
    let warm = |program: &mut Command| {
        program.args(["warm", "--json", "-i"]).arg(&index);
        run(program.arg("-m").arg(model_path()).arg("-o").arg(&cache))
    };
    let first = json(&ok(&warm(&mut stair())));
    assert_eq!(first["restored"], false);
    let file = Path::new(first["path"].as_str().expect("a path")).to_path_buf();
    assert_eq!(json(&ok(&warm(&mut stair())))["restored"], true);

    // Damaged, and no file may grow to the length that it should have.
    let whole = std::fs::read(&file).expect("reads");
    let damaged = &whole[..whole.len() - 1];
    std::fs::write(&file, damaged).expect("writes");
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$@\"", "sh"]);
    limited.arg(env!("CARGO_BIN_EXE_stair"));
    fails(&warm(&mut limited), 1, &["[IO]"]);
    assert!(std::fs::read(&file).expect("reads") == damaged, "untouched");

    assert_eq!(json(&ok(&warm(&mut stair())))["restored"], false);
    assert!(std::fs::read(&file).expect("reads") == whole);
}
