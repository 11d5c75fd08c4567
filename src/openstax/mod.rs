//! Books of OpenStax as benchmarks: their CNXML to a Markdown document, and the exercises at the
//! ends of their sections to questions, each with the section that its authors filed it under.

mod collection;
mod module;
#[cfg(test)]
mod tests;

use crate::error::{Error, Result};
use crate::files;
use crate::questions::Question;
use crate::toc::{self, ReadOptions};
use collection::{Collection, Entry};
use module::Module;
use std::collections::HashSet;
use std::path::Path;
use unicode_segmentation::UnicodeSegmentation;
use xxhash_rust::xxh3::xxh3_64;

/// A book as a document and its questions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Book {
    /// The book's title.
    pub title: String,
    /// Address of its licence, where the collection names one.
    pub licence: Option<String>,
    /// The document: headings are the table of contents, a module is a leaf.
    pub markdown: String,
    /// The questions, in the book's order.
    pub questions: Vec<Question>,
    /// Number of leaves.
    pub leaves: usize,
    /// Exercises that are no questions: too short, or with blanks to fill in.
    pub left_out: usize,
    /// Exercises that ask what another one asked before.
    pub repeated: usize,
}

/// Fewest words of a question: "Explain." asks nothing without its surroundings.
const LEAST_WORDS: usize = 5;

/// Most elements within each other; those of a book are a dozen.
const DEEPEST: usize = 256;

/// Reads the collection `name` of the checkout of a book's repository: the file
/// `collections/NAME.collection.xml`, whose ending may be given too, and the modules that it names.
///
/// # Errors
///
/// [`Error::Io`] for a file that is not there; [`Error::Document`] for one that is not in its
/// format, or a book of which no section comes back.
pub fn read(checkout: &Path, name: &str) -> Result<Book> {
    let name = name.strip_suffix(".collection.xml").unwrap_or(name);
    let collection = Collection::read(checkout, name)?;
    let mut book = Book {
        markdown: format!("# {}\n\n", collection.title),
        title: collection.title,
        licence: collection.licence,
        questions: Vec::new(),
        leaves: 0,
        left_out: 0,
        repeated: 0,
    };
    let mut seen = HashSet::new();
    let mut chapter = (String::new(), 0);
    for entry in &collection.entries {
        let (level, document, numbered) = match entry {
            Entry::Heading {
                level,
                number,
                title,
            } => {
                chapter = (number.clone(), 0);
                let heading = [number.as_str(), title].join(" ");
                book.heading(*level, heading.trim());
                continue;
            }
            Entry::Module {
                level,
                document,
                numbered,
            } => (level, document, numbered),
        };
        let module = Module::read(checkout, document)?;
        let number = match (*numbered && !chapter.0.is_empty(), module.introduction) {
            (false, _) => String::new(),
            (true, true) => format!("{}.0 ", chapter.0),
            (true, false) => {
                chapter.1 += 1;
                format!("{}.{} ", chapter.0, chapter.1)
            }
        };
        let section = format!("{number}{}", module.title);
        book.heading(*level, &section);
        book.leaves += 1;
        for paragraph in &module.paragraphs {
            book.paragraph(paragraph);
        }
        for (exercise, query) in module.exercises {
            if query.contains("__") || query.unicode_words().count() < LEAST_WORDS {
                book.left_out += 1;
                continue;
            }
            if !seen.insert(folded(&query)) {
                book.repeated += 1;
                continue;
            }
            let id = format!("{name}:{document}:{exercise}");
            book.questions.push(Question {
                split: split(&id).to_owned(),
                id,
                query,
                section: Some(section.clone()),
                line: book.questions.len() + 1,
            });
        }
    }
    book.check()?;
    Ok(book)
}

/// Writes `book.md` and `questions.jsonl` into `folder`, which is made if it is not there.
///
/// # Errors
///
/// [`Error::Io`].
pub fn write(book: &Book, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|error| Error::io("make", folder, error))?;
    let mut lines = String::new();
    for question in &book.questions {
        let line = serde_json::to_string(question)
            .map_err(|error| Error::Internal(format!("a question: {error}")))?;
        lines.push_str(&line);
        lines.push('\n');
    }
    files::write_atomically(folder.join("book.md"), book.markdown.as_bytes())?;
    files::write_atomically(folder.join("questions.jsonl"), lines.as_bytes())
}

/// The split of the question `id`: by a hash of it, so that it stays the same whatever else is in
/// the book. Of a hundred 50 are `train`, 10 `dev` and 40 `test`.
pub fn split(id: &str) -> &'static str {
    match xxh3_64(id.as_bytes()) % 100 {
        0..50 => "train",
        50..60 => "dev",
        _ => "test",
    }
}

impl Book {
    fn heading(&mut self, level: usize, text: &str) {
        self.markdown.push_str(&"#".repeat(level.clamp(2, 6)));
        self.markdown.push(' ');
        self.markdown.push_str(&escaped(text));
        self.markdown.push_str("\n\n");
    }

    fn paragraph(&mut self, text: &str) {
        // A paragraph that looks like the start of something else in Markdown is still one.
        if text.starts_with(['#', '>', '<', '`', '~']) {
            self.markdown.push('\\');
        }
        self.markdown.push_str(text);
        self.markdown.push_str("\n\n");
    }

    /// Checks that reading the document gives the sections that the questions name.
    fn check(&self) -> Result<()> {
        let options = ReadOptions {
            keep_front_matter: true,
            ..ReadOptions::default()
        };
        let toc = toc::read_markdown(self.markdown.as_bytes(), &self.title, &options)?;
        toc.check(u64::MAX)?;
        if let Some((was, is)) = toc.notes.renamed.first() {
            return Err(Error::Document(format!(
                "two sections of the book have the name {was:?}, and reading its Markdown calls one of \
                 them {is:?}: which of them questions are about cannot be told"
            )));
        }
        let leaves: HashSet<String> = toc.leaves().map(|leaf| leaf.identifier()).collect();
        let mut sections = self.questions.iter().filter_map(|q| q.section.as_ref());
        let Some(section) = sections.find(|section| !leaves.contains(*section)) else {
            return Ok(());
        };
        let title = section
            .split_once(' ')
            .map_or(section.as_str(), |(_, title)| title);
        let read = leaves.iter().find(|leaf| leaf.ends_with(title));
        Err(Error::Document(format!(
            "the section {section:?} has questions and is no leaf of the book's Markdown, which has {}",
            read.map_or("none of this title".to_owned(), |leaf| format!("{leaf:?}"))
        )))
    }
}

/// A question without what does not change it: case, punctuation, space.
fn folded(query: &str) -> String {
    let words: Vec<String> = query.unicode_words().map(str::to_lowercase).collect();
    words.join(" ")
}

/// The text of a file of the checkout.
fn text(checkout: &Path, path: &str) -> Result<String> {
    let path = checkout.join(path);
    let bytes = std::fs::read(&path).map_err(|error| Error::io("read", &path, error))?;
    String::from_utf8(bytes).map_err(|error| Error::InvalidUtf8 {
        what: path.display().to_string(),
        at: error.utf8_error().valid_up_to(),
    })
}

/// Reads XML and says in which file it fails.
fn parse<'t>(text: &'t str, path: &str) -> Result<roxmltree::Document<'t>> {
    let document = roxmltree::Document::parse(text)
        .map_err(|error| Error::Document(format!("{path}: {error}")))?;
    // The readers call themselves for what is within an element, and a stack ends.
    let too_deep = |node: roxmltree::Node<'_, '_>| node.ancestors().nth(DEEPEST).is_some();
    if document.descendants().any(too_deep) {
        let what = format!("{path}: more than {DEEPEST} elements stand within each other");
        return Err(Error::Document(what));
    }
    Ok(document)
}

/// Elements that stand apart from the text around them.
const APART: [&str; 18] = [
    "para",
    "list",
    "item",
    "newline",
    "title",
    "label",
    "equation",
    "note",
    "section",
    "div",
    "quote",
    "table",
    "row",
    "entry",
    "figure",
    "caption",
    "definition",
    "meaning",
];

/// Elements of MathML that say a formula again, for programs.
const SAID_AGAIN: [&str; 2] = ["annotation", "annotation-xml"];

/// The text of an element and of all within it, on one line.
fn text_of(element: roxmltree::Node<'_, '_>) -> String {
    text_without(element, &[])
}

/// The same without what is within elements of these names.
fn text_without(element: roxmltree::Node<'_, '_>, names: &[&str]) -> String {
    let mut text = String::new();
    collect(element, names, &mut text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn collect(element: roxmltree::Node<'_, '_>, without: &[&str], text: &mut String) {
    for node in element.children() {
        let name = node.tag_name().name();
        if node.is_text() {
            text.push_str(node.text().unwrap_or_default());
        } else if node.is_element() && !SAID_AGAIN.contains(&name) && !without.contains(&name) {
            let apart = if APART.contains(&name) { " " } else { "" };
            text.push_str(apart);
            collect(node, without, text);
            text.push_str(apart);
        }
    }
}

/// `title` as Markdown that is read back as the same text.
fn escaped(title: &str) -> String {
    let mut markdown = String::with_capacity(title.len());
    for c in title.chars() {
        if matches!(
            c,
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '&' | '#' | '~'
        ) {
            markdown.push('\\');
        }
        markdown.push(c);
    }
    markdown
}

/// The first child element of that name.
fn child<'a, 'input>(
    element: roxmltree::Node<'a, 'input>,
    name: &str,
) -> Option<roxmltree::Node<'a, 'input>> {
    element
        .children()
        .find(|node| node.is_element() && node.tag_name().name() == name)
}
