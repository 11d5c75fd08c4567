//! Training data of small documents, one token a byte.

use super::*;
use crate::index::{BuildOptions, build};
use crate::questions;
use crate::toc::{ReadOptions, read_markdown};
use crate::tokens::testing::Bytes;
use serde_json::Value;
use unicode_segmentation::UnicodeSegmentation;

fn index(markdown: &str, template: Template) -> Index {
    let toc = read_markdown(markdown.as_bytes(), "Doc", &ReadOptions::default()).expect("reads");
    let options = BuildOptions {
        template,
        text: true,
        ..BuildOptions::default()
    };
    let (bytes, _) = build(&toc, &Bytes, &options, &|_| ()).expect("builds");
    Index::from_bytes(&bytes).expect("opens")
}

fn question(id: &str, query: &str, section: Option<&str>, split: &str) -> Question {
    Question {
        id: id.to_owned(),
        query: query.to_owned(),
        section: section.map(str::to_owned),
        split: split.to_owned(),
        line: 1,
    }
}

fn made(index: &Index, asked: &[Question], options: &Options) -> Result<(Vec<Value>, Report)> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("out.jsonl");
    let leaves = questions::leaves(asked, index, Path::new("q.jsonl"))?;
    let report = write(index, &Bytes, asked, &leaves, options, &path)?;
    let text = std::fs::read_to_string(path).expect("was written");
    let lines = text.lines().map(serde_json::from_str);
    let lines: Result<Vec<Value>, _> = lines.collect();
    Ok((lines.expect("JSON"), report))
}

fn text(tokens: &[Value]) -> String {
    let token = |value: &Value| value.as_u64().expect("a token") as u32;
    let bytes = tokens.iter().map(token).map(|token| match token {
        Bytes::END => b'$',
        token => token as u8,
    });
    String::from_utf8(bytes.collect()).expect("UTF-8")
}

/// The question and the title of an example.
fn parts(example: &Value) -> (String, String) {
    let tokens = example["tokens"].as_array().expect("tokens");
    let end = |i: usize| example["target"][i].as_u64().expect("a place") as usize;
    assert_eq!(end(1), tokens.len());
    (text(&tokens[..end(0)]), text(&tokens[end(0)..]))
}

const DOCUMENT: &str = "# Doc\n\n## A\n\n### First\n\nThe **gate** is a door in the wall. Go.\n\n\
                        ### Second\n\n## B\n\nA few words.\n";

fn only(task: Task) -> Options {
    Options {
        tasks: [task].into(),
        ..Options::default()
    }
}

#[test]
fn a_question_is_what_the_engine_would_see_and_then_the_title() {
    let index = index(DOCUMENT, Template::default());
    let asked = [
        question("q1", "Which\n door? ", Some("1.1 First"), "train"),
        question("q2", "Nothing?", None, "train"),
        question("q3", "Else?", Some("2 B"), "dev"),
    ];
    let (lines, report) = made(&index, &asked, &only(Task::Retrieval)).expect("makes");
    let header = &lines[0];
    assert_eq!(header["format"], "stair-train-data");
    assert_eq!(
        (&header["version"], &header["toc"]),
        (&1.into(), &true.into())
    );
    assert_eq!(
        (&header["title"], &header["split"]),
        (&"Doc".into(), &"train".into())
    );
    let prefix = text(header["prefix"].as_array().expect("tokens"));
    assert!(prefix.ends_with("leaf 2 B\n### Query:"), "{prefix}");
    let leaves = header["leaves"].as_array().expect("leaves");
    assert_eq!(leaves.len(), 3);
    assert_eq!(leaves[0]["identifier"], "1.1 First");
    assert_eq!(leaves[0]["section"], 1);
    assert_eq!(
        text(leaves[0]["tokens"].as_array().expect("tokens")),
        " 1.1 First$"
    );

    assert_eq!(lines.len(), 3);
    assert_eq!(
        (&lines[1]["id"], &lines[1]["task"]),
        (&"q1".into(), &"retrieval".into())
    );
    let expected = (" Which door?\n### Section: leaf", " 1.1 First$");
    assert_eq!(
        parts(&lines[1]),
        (expected.0.to_owned(), expected.1.to_owned())
    );
    // Nothing answers the second: its title is the terminator.
    assert_eq!(
        (&lines[2]["id"], &lines[2]["section"]),
        (&"q2".into(), &Value::Null)
    );
    let expected = (" Nothing?\n### Section: leaf", "$");
    assert_eq!(
        parts(&lines[2]),
        (expected.0.to_owned(), expected.1.to_owned())
    );
    assert_eq!((report.unanswerable, report.other_splits), (1, 1));
    assert_eq!(report.tasks[0].without, ["1.2 Second", "2 B"]);
}

#[test]
fn windows_sentences_and_terms_are_examples_once_each() {
    let index = index(DOCUMENT, Template::default());
    let mut options = Options::default();
    options.tasks.remove(&Task::Retrieval);
    options.sentence = 3..=60;
    let (lines, report) = made(&index, &[], &options).expect("makes");
    let found: Vec<_> = lines[1..]
        .iter()
        .map(|line| {
            let question = parts(line).0;
            let question = question.trim_end_matches("\n### Section: leaf");
            format!("{}:{}", line["section"], question)
        })
        .collect();
    assert_eq!(
        found,
        [
            "1: The gate is a door in the wall. Go.",
            "1: The gate is a door in the wall.",
            // Its only sentence is its only window.
            "3: A few words.",
            "1: What is gate?",
            "1: What does gate mean?",
            "1: Define gate.",
            "1: gate",
        ]
    );
    assert_eq!(report.without_examples, ["1.2 Second"]);
    let [ingestion, terms] = &report.tasks[..] else {
        panic!("{report:?}");
    };
    assert_eq!(
        (ingestion.examples, ingestion.min, ingestion.max),
        (3, 0, 2)
    );
    assert_eq!((ingestion.median, terms.examples), (1, 4));
    assert_eq!(report.per_leaf(Task::Terms).next(), Some(("1.1 First", 4)));
}

#[test]
fn every_word_of_every_leaf_is_in_an_example() {
    let handbook = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/handbook/handbook.md");
    let markdown = std::fs::read_to_string(handbook).expect("the handbook");
    let index = index(&markdown, Template::default());
    let (lines, report) = made(&index, &[], &only(Task::Ingestion)).expect("makes");
    assert!(report.without_examples.is_empty());
    for section in (0..index.sections()).filter_map(|id| index.section(id)) {
        if !section.leaf {
            continue;
        }
        let windows: Vec<String> = lines[1..]
            .iter()
            .filter(|line| line["section"] == section.id)
            .map(|line| parts(line).0)
            .collect();
        let words: HashSet<&str> = windows.iter().flat_map(|w| w.unicode_words()).collect();
        let text = section.text.expect("texts are kept");
        // The numbers of a list's items and a code block's language are marks, not words.
        let marker = |c: char| c.is_ascii_digit() || c == '.' || c == ' ';
        let lines = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("```"))
            .map(|line| match line.trim_start_matches(marker) {
                rest if line.starts_with(|c: char| c.is_ascii_digit()) => rest,
                _ => line,
            });
        for word in lines.flat_map(|line| line.unicode_words()) {
            assert!(words.contains(word), "{word:?} of {}", section.identifier());
        }
    }
}

#[test]
fn a_long_leaf_keeps_as_many_parts_as_are_asked_for_evenly_spread() {
    let words: Vec<String> = (0..60).map(|i| format!("word{i}")).collect();
    let index = index(
        &format!("# Doc\n\n## A\n\nshort\n\n## B\n\n{}\n", words.join(" ")),
        Template::default(),
    );
    let options = Options {
        window: 10,
        overlap: 0,
        most_per_leaf: Some(3),
        ..only(Task::Ingestion)
    };
    let (lines, _) = made(&index, &[], &options).expect("makes");
    let first: Vec<String> = lines[1..]
        .iter()
        .map(|line| parts(line).0.split_whitespace().next().map(str::to_owned))
        .map(|word| word.expect("a word"))
        .collect();
    assert_eq!(first, ["short", "word0", "word20", "word40"]);
}

#[test]
fn without_contents_the_prefix_is_that_of_an_index_built_so() {
    let with = index(DOCUMENT, Template::default());
    let without = index(DOCUMENT, Template::without_contents());
    let options = Options {
        contents: false,
        ..only(Task::Ingestion)
    };
    let (lines, _) = made(&with, &[], &options).expect("makes");
    let tokens = lines[0]["prefix"].as_array().expect("tokens");
    let tokens: Vec<_> = tokens.iter().filter_map(Value::as_u64).collect();
    let prefix: Vec<_> = without.prefix().iter().map(|&t| u64::from(t)).collect();
    assert_eq!(tokens, prefix);
    assert_eq!(lines[0]["toc"], false);
    // Such an index says so itself, and its examples are the same.
    let (own, _) = made(&without, &[], &only(Task::Ingestion)).expect("makes");
    assert_eq!(own[0]["toc"], false);
    assert_eq!(own[1..], lines[1..]);
}

#[test]
fn the_same_input_gives_the_same_examples() {
    let index = index(DOCUMENT, Template::default());
    let options = Options {
        tasks: [Task::Ingestion, Task::Terms].into(),
        ..Options::default()
    };
    let made = || made(&index, &[], &options).expect("makes").0;
    assert_eq!(made(), made());
}

#[test]
fn what_cannot_be_is_refused_with_the_numbers() {
    let document = index(DOCUMENT, Template::default());
    let refused = |asked: &[Question], options: &Options| {
        let error = made(&document, asked, options).expect_err("refused");
        assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
        error.to_string()
    };
    let options = Options {
        overlap: 9,
        window: 8,
        ..only(Task::Ingestion)
    };
    let why = refused(&[], &options);
    assert!(why.contains("8 words") && why.contains("share 9"), "{why}");
    let dev = [question("a", "b?", None, "dev")];
    let why = refused(&dev, &only(Task::Retrieval));
    assert!(why.contains("\"train\"") && why.contains("dev"), "{why}");
    let none = Options {
        tasks: BTreeSet::new(),
        ..Options::default()
    };
    assert!(refused(&[], &none).contains("no task"));
    let none = Options {
        most_per_leaf: Some(0),
        ..only(Task::Ingestion)
    };
    assert!(refused(&[], &none).contains("0 parts"));
    let nul = [question("a", "b\0", Some("2 B"), "train")];
    assert!(refused(&nul, &only(Task::Retrieval)).contains("\"a\""));

    let own = Template {
        before_question: " Q ".to_owned(),
        ..Template::default()
    };
    let options = Options {
        contents: false,
        ..only(Task::Ingestion)
    };
    let error = made(&index(DOCUMENT, own), &[], &options).expect_err("refused");
    assert!(error.to_string().contains("contents = false"), "{error}");
}
