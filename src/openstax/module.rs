//! A module: the text of one section, and the exercises at its end.

use super::{child, parse, text, text_of, text_without};
use crate::error::{Error, Result};
use crate::toc;
use roxmltree::Node;
use std::path::Path;

/// A section of a book.
pub(super) struct Module {
    pub title: String,
    /// Whether it opens a chapter and is no section of its own.
    pub introduction: bool,
    /// Its text, a line each; titles of parts in bold.
    pub paragraphs: Vec<String>,
    /// Its exercises: what each is called, and what it asks.
    pub exercises: Vec<(String, String)>,
}

/// Elements that are no text of the section.
const NO_TEXT: [&str; 9] = [
    "exercise", "glossary", "metadata", "title", "media", "figure", "table", "note", "problem",
];

/// Beginnings and parts of the classes of sections that hold exercises.
const EXERCISES: [&str; 11] = [
    "question",
    "choice",
    "exercise",
    "review",
    "critical",
    "thought",
    "self-check",
    "true-false",
    "matching",
    "problem",
    "short-answer",
];

/// More parts of classes: exercises too, and lists of literature.
const OTHERS: [&str; 8] = [
    "fill",
    "practice",
    "check",
    "references",
    "further-research",
    "key-equations",
    "bibliography",
    "suggested-reading",
];

impl Module {
    /// Reads `modules/DOCUMENT/index.cnxml`.
    pub fn read(checkout: &Path, document: &str) -> Result<Self> {
        let path = format!("modules/{document}/index.cnxml");
        let text = text(checkout, &path)?;
        let parsed = parse(&text, &path)?;
        let root = parsed.root_element();
        let title = child(root, "title").map(text_of).unwrap_or_default();
        if toc::is_blank(&title) {
            return Err(Error::Document(format!("{path}: the module has no title")));
        }
        let mut module = Self {
            title,
            introduction: root.attribute("class") == Some("introduction"),
            paragraphs: Vec::new(),
            exercises: Vec::new(),
        };
        if let Some(content) = child(root, "content") {
            module.prose(content);
            let exercises = content
                .descendants()
                .filter(|n| n.has_tag_name_of("exercise"));
            for (number, exercise) in exercises.enumerate() {
                module.exercise(exercise, number);
            }
        }
        Ok(module)
    }

    fn prose(&mut self, element: Node<'_, '_>) {
        for element in element.children().filter(Node::is_element) {
            match element.tag_name().name() {
                "section" => {
                    let class = element.attribute("class").unwrap_or_default();
                    let class = class.to_ascii_lowercase();
                    if EXERCISES
                        .iter()
                        .chain(&OTHERS)
                        .any(|part| class.contains(part))
                    {
                        continue;
                    }
                    let title = child(element, "title").map(text_of).unwrap_or_default();
                    if class.is_empty() && !title.is_empty() {
                        self.paragraphs.push(format!("**{title}**"));
                    }
                    self.prose(element);
                }
                name if NO_TEXT.contains(&name) => {}
                "para" | "list" | "equation" | "item" => {
                    let text = text_of(element);
                    if !text.is_empty() {
                        self.paragraphs.push(text);
                    }
                }
                _ => self.prose(element),
            }
        }
    }

    /// What an exercise asks is the first paragraph of its problem; choices follow it.
    fn exercise(&mut self, exercise: Node<'_, '_>, number: usize) {
        let Some(problem) = child(exercise, "problem") else {
            return;
        };
        let first = problem.descendants().find(|n| n.has_tag_name_of("para"));
        let query = text_without(first.unwrap_or(problem), &["list"]);
        let id = match exercise.attribute("id") {
            Some(id) => id.to_owned(),
            None => (number + 1).to_string(),
        };
        self.exercises
            .push((id, without_objective(&query).to_owned()));
    }
}

/// `query` without the number of a learning objective before it, `LO 3.2`.
fn without_objective(query: &str) -> &str {
    let number = |text: &str| text.chars().all(|c| c.is_ascii_digit() || c == '.');
    let rest = query
        .strip_prefix("LO ")
        .and_then(|rest| rest.split_once(' '));
    match rest {
        Some((objective, rest)) if number(objective) => rest.trim_start(),
        _ => query,
    }
}

trait NamedNode {
    fn has_tag_name_of(&self, name: &str) -> bool;
}

impl NamedNode for Node<'_, '_> {
    /// Whether it is an element of that name, in whatever namespace.
    fn has_tag_name_of(&self, name: &str) -> bool {
        self.is_element() && self.tag_name().name() == name
    }
}
