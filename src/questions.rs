//! Files of questions: a JSON object a line, each a question and the section that answers it.

use crate::error::{Error, Result};
use crate::index::{Index, question};
use crate::toc::Toc;
use serde::de::Deserializer;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A question, and which section answers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// What the question is called; unique in its file.
    #[serde(deserialize_with = "text_or_number")]
    pub id: String,
    /// The question.
    pub query: String,
    /// Identifier of the leaf that answers it, `"4.2 Claims and receipts"`; `None` (`null` in the
    /// file) when no section does.
    #[serde(deserialize_with = "present")]
    pub section: Option<String>,
    /// The part of the questions that it belongs to: `"train"`, `"dev"`, `"test"`.
    pub split: String,
    /// Its line in the file, from 1.
    #[serde(skip)]
    pub line: usize,
}

/// Reads the questions in the file at `path`, in its order. Blank lines count and say nothing;
/// fields other than [`Question`]'s are ignored.
///
/// # Errors
///
/// [`Error::Questions`] with the line of what is no question, of an empty question, and of an id
/// that stood before; for a file without questions. [`Error::Io`] or [`Error::NotAFile`].
pub fn read(path: impl AsRef<Path>) -> Result<Vec<Question>> {
    let path = path.as_ref();
    parse(&bytes(path)?, path)
}

/// As [`read`], but empty questions and repeated ids pass: for looking at what is wrong in a file.
///
/// # Errors
///
/// As [`read`], apart from those two.
pub fn read_unchecked(path: impl AsRef<Path>) -> Result<Vec<Question>> {
    let path = path.as_ref();
    parse_unchecked(&bytes(path)?, path)
}

/// As [`read`], of the bytes of a file; `path` is what the errors call it.
///
/// # Errors
///
/// [`Error::Questions`], as [`read`].
pub fn parse(bytes: &[u8], path: &Path) -> Result<Vec<Question>> {
    let questions = parse_unchecked(bytes, path)?;
    let mut lines: HashMap<&str, usize> = HashMap::new();
    for question in &questions {
        let refuse = |why| Err(refused(path, question.line, why));
        if question::check(&question.query).is_err() {
            return refuse(format!(
                "the question {:?} has nothing to see, or a NUL: write it, or take the line out",
                question.id
            ));
        }
        if let Some(first) = lines.insert(&question.id, question.line) {
            return refuse(format!(
                "the id {:?} is that of line {first} too: give each question its own",
                question.id
            ));
        }
    }
    Ok(questions)
}

fn bytes(path: &Path) -> Result<Vec<u8>> {
    if path.is_dir() {
        return Err(Error::NotAFile(path.to_path_buf()));
    }
    std::fs::read(path).map_err(|error| Error::io("read", path, error))
}

fn parse_unchecked(bytes: &[u8], path: &Path) -> Result<Vec<Question>> {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let mut questions = Vec::new();
    for (line, bytes) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        let mut question: Question = serde_json::from_slice(bytes)
            .map_err(|error| refused(path, line, explained(&error)))?;
        question.line = line;
        questions.push(question);
    }
    if questions.is_empty() {
        let why = "there is no question: give a JSON object a line";
        return Err(refused(path, 1, why.to_owned()));
    }
    Ok(questions)
}

/// The leaf of each question in `index`, as its section id; `None` where no section answers it.
/// `path` is where the questions come from, for the error.
///
/// # Errors
///
/// [`Error::Questions`] with the line of a section that is not a leaf of the index.
pub fn leaves(questions: &[Question], index: &Index, path: &Path) -> Result<Vec<Option<u32>>> {
    let sections = (0..index.sections()).filter_map(|id| index.section(id));
    let names = Names::new(sections.map(|section| (section.identifier(), section.leaf)));
    let leaf = |question| names.leaf(question, path);
    questions.iter().map(leaf).collect()
}

/// The questions of `split` that a leaf of `toc` answers, each with that leaf, as
/// [`BuildOptions::asked`] wants them. Each file of `files` is its path, for the error, and what
/// was read from it.
///
/// # Errors
///
/// [`Error::Questions`] with the line of a section that is not a leaf, in any split;
/// [`Error::InvalidArgument`] when no question is left.
///
/// [`BuildOptions::asked`]: crate::index::BuildOptions::asked
pub fn known(
    files: &[(PathBuf, Vec<Question>)],
    split: &str,
    toc: &Toc,
) -> Result<Vec<(u32, String)>> {
    let sections = toc.sections.iter();
    let names = Names::new(sections.map(|section| (section.identifier(), section.leaf)));
    let mut known = Vec::new();
    for (path, questions) in files {
        for question in questions {
            match names.leaf(question, path)? {
                Some(leaf) if question.split == split => known.push((leaf, question.query.clone())),
                _ => (),
            }
        }
    }
    match known.is_empty() {
        true => Err(Error::InvalidArgument(format!(
            "no question of the split {split:?} has a section: name another split"
        ))),
        false => Ok(known),
    }
}

/// Sections by identifier.
struct Names(HashMap<String, Named>);

struct Named {
    id: u32,
    leaf: bool,
}

impl Names {
    /// Of all sections in their order, each its identifier and whether it is a leaf.
    fn new(sections: impl Iterator<Item = (String, bool)>) -> Self {
        let mut names = HashMap::new();
        for (id, (name, leaf)) in (0..).zip(sections) {
            // Identifiers of leaves are unique; an interior section may be called as a leaf is.
            if leaf || !names.contains_key(&name) {
                names.insert(name, Named { id, leaf });
            }
        }
        Self(names)
    }

    /// The leaf that answers `question`; `None` where no section does.
    fn leaf(&self, question: &Question, path: &Path) -> Result<Option<u32>> {
        let Some(name) = &question.section else {
            return Ok(None);
        };
        let why = match self.0.get(name) {
            Some(named) if named.leaf => return Ok(Some(named.id)),
            Some(_) => "has subsections, and only a leaf can be an answer: name one of them",
            None => "is not in the index: write its number and title as `stair inspect` shows them",
        };
        let why = format!("the section {name:?} {why}");
        Err(refused(path, question.line, why))
    }
}

fn refused(path: &Path, line: usize, why: String) -> Error {
    Error::Questions {
        path: path.to_path_buf(),
        line,
        why,
    }
}

/// What is wrong with a line. Its number is told apart: the parser saw that line alone.
fn explained(error: &serde_json::Error) -> String {
    let what = error.to_string();
    let what = what.split(" at line ").next().unwrap_or(&what);
    format!(
        "{what} (at byte {}): a line is an object with id, query, section and split",
        error.column()
    )
}

/// A field that must be there and may be `null`.
fn present<'de, D: Deserializer<'de>>(field: D) -> Result<Option<String>, D::Error> {
    Option::deserialize(field)
}

/// Ids are often numbers.
fn text_or_number<'de, D: Deserializer<'de>>(field: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "the id is neither a text nor a whole number")]
    enum Id {
        Text(String),
        Number(u64),
    }
    Ok(match Id::deserialize(field)? {
        Id::Text(text) => text,
        Id::Number(number) => number.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{BuildOptions, build};
    use crate::toc::{ReadOptions, read_markdown};
    use crate::tokens::testing::Bytes;

    fn written(text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("q.jsonl");
        std::fs::write(&path, text).expect("writes");
        (folder, path)
    }

    #[track_caller]
    fn refusal(text: &str) -> (usize, String) {
        let (_folder, path) = written(text);
        match read(&path) {
            Err(Error::Questions { line, why, .. }) => (line, why),
            other => panic!("{other:?}"),
        }
    }

    const GOOD: &str = r#"{"id": "a", "query": "Who?", "section": "1 A", "split": "train"}"#;

    #[test]
    fn questions_come_in_the_files_order_with_their_lines() {
        let (_folder, path) = written(&format!(
            "\u{feff}{GOOD}\r\n\n{}\n",
            r#"{"split": "dev", "id": 7, "section": null, "query": " x ", "more": [1]}"#
        ));
        let questions = read(&path).expect("reads");
        let [first, second] = &questions[..] else {
            panic!("{questions:?}");
        };
        assert_eq!((&*first.id, first.line), ("a", 1));
        assert_eq!(first.section.as_deref(), Some("1 A"));
        assert_eq!((&*second.id, second.line), ("7", 3));
        assert_eq!((&*second.query, &second.section), (" x ", &None));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, line, word) in [
            ("", 1, "no question"),
            ("\n \n", 1, "no question"),
            (&format!("{GOOD}\n{GOOD}"), 2, "line 1 too"),
            (&format!("{GOOD}\n\n{{"), 3, "at byte"),
            (&GOOD.replace("Who?", " \\t"), 1, "nothing to see"),
            (&GOOD.replace("Who?", "\\u200b"), 1, "nothing to see"),
            (&GOOD.replace("Who?", "a\\u0000"), 1, "a NUL"),
            (&GOOD.replace("section", "sections"), 1, "section"),
            (&GOOD.replace("\"a\"", "1.5"), 1, "whole number"),
            (&GOOD.replace("\"Who?\"", "3"), 1, "expected a string"),
        ] {
            let (found, why) = refusal(text);
            assert_eq!(found, line, "{text:?}");
            assert!(why.contains(word), "no {word:?} in: {why}");
        }
        let (_folder, path) = written("{\"id\": \"\u{e9}\"");
        let bytes = [b"\xff".as_slice(), GOOD.as_bytes()].concat();
        std::fs::write(&path, bytes).expect("writes");
        assert!(matches!(read(&path), Err(Error::Questions { line: 1, .. })));
    }

    #[test]
    fn only_leaves_of_the_index_are_answers() {
        let toc = read_markdown(
            b"# A\n\n## B\n\nb\n\n# C\n\nc\n",
            "t",
            &ReadOptions::default(),
        );
        let built = build(
            &toc.expect("reads"),
            &Bytes,
            &BuildOptions::default(),
            &|_| (),
        );
        let index = Index::from_bytes(&built.expect("builds").0).expect("opens");
        let question = |section: Option<&str>| Question {
            id: "a".to_owned(),
            query: "q".to_owned(),
            section: section.map(str::to_owned),
            split: "train".to_owned(),
            line: 4,
        };
        let of = |section| leaves(&[question(section)], &index, Path::new("q.jsonl"));
        assert_eq!(of(None).expect("unanswerable"), [None]);
        assert_eq!(of(Some("1.1 B")).expect("a leaf"), [Some(1)]);
        for (section, word) in [("1 A", "subsections"), ("B", "not in the index")] {
            let error = of(Some(section)).expect_err("refused").to_string();
            assert!(error.contains(word) && error.contains("line 4"), "{error}");
        }
    }

    #[test]
    fn known_questions_are_those_of_the_split_that_have_a_leaf() {
        let toc = read_markdown(
            b"# A\n\n## B\n\nb\n\n# C\n\nc\n",
            "t",
            &ReadOptions::default(),
        );
        let toc = toc.expect("reads");
        let question = |id: &str, section: Option<&str>, split: &str| Question {
            id: id.to_owned(),
            query: format!("{id}?"),
            section: section.map(str::to_owned),
            split: split.to_owned(),
            line: 1,
        };
        let files = [
            (
                PathBuf::from("p"),
                vec![
                    question("a", Some("2 C"), "train"),
                    question("b", None, "train"),
                    question("c", Some("2 C"), "test"),
                ],
            ),
            (
                PathBuf::from("q"),
                vec![question("d", Some("1.1 B"), "train")],
            ),
        ];
        let expected = [(2, "a?".to_owned()), (1, "d?".to_owned())];
        assert_eq!(known(&files, "train", &toc).expect("known"), expected);
        let error = known(&files, "dev", &toc).expect_err("none").to_string();
        assert!(error.contains("\"dev\""), "{error}");
        // Of another split, and wrong all the same.
        let wrong = [(PathBuf::from("q"), vec![question("e", Some("3 D"), "test")])];
        assert!(matches!(
            known(&wrong, "train", &toc),
            Err(Error::Questions { line: 1, .. })
        ));
    }
}
