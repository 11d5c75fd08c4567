//! Training data: a document's index and questions to examples as token ids. The prompt and the
//! tokenizer are those of the engine, so a trainer holds neither and cannot differ from it.
//!
//! Every example is a question with the title of the leaf that answers it. Real questions give the
//! task [`Task::Retrieval`]; the document's own text in parts, each as if it were a question,
//! gives [`Task::Ingestion`]; the key terms that it marks give [`Task::Terms`].
//!
//! The title for a question that no leaf answers is the empty one, the terminator alone. No path of the
//! trie begins with that, so a model that was trained on it takes its probability away from every
//! section, and the result's legal mass shows it.
//!
//! This stands above both wings: it reads an index, and the Markdown in it.

mod file;
mod plain;
mod report;
mod terms;
mod windows;

pub use report::{Report, TaskReport};

use crate::error::{Error, Result};
use crate::files::AtomicFile;
use crate::index::question::QuestionTemplate;
use crate::index::{Index, vocabulary};
use crate::prompt::Template;
use crate::questions::Question;
use crate::tokens::Tokenizer;
use file::{Example, Header, Leaf, Writer};
use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::ops::RangeInclusive;
use std::path::Path;

/// A kind of example.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Task {
    /// A question that somebody asked.
    Retrieval,
    /// A part of a leaf's text, as if it were a question.
    Ingestion,
    /// A question for a key term that a leaf marks.
    Terms,
}

impl Task {
    /// Every task, in the order of the file.
    pub const ALL: [Self; 3] = [Self::Retrieval, Self::Ingestion, Self::Terms];

    /// `"retrieval"`, `"ingestion"` or `"terms"`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Retrieval => "retrieval",
            Self::Ingestion => "ingestion",
            Self::Terms => "terms",
        }
    }
}

/// Which examples are made.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The tasks.
    pub tasks: BTreeSet<Task>,
    /// The split whose questions are taken.
    pub split: String,
    /// Whether the prompt has the table of contents. Without it the prefix is that of an index
    /// built with [`Template::without_contents`].
    pub contents: bool,
    /// Words of a window of text.
    pub window: usize,
    /// Words that a window shares with the one before; fewer than `window`.
    pub overlap: usize,
    /// How many words a sentence has that becomes an example of its own.
    pub sentence: RangeInclusive<usize>,
    /// Most parts of text of one leaf that become examples, evenly spread over it; `None` for all.
    /// A glossary has fifty times the sentences of a section, and would be fifty times as likely.
    pub most_per_leaf: Option<usize>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tasks: Task::ALL.into(),
            split: "train".to_owned(),
            contents: true,
            window: 64,
            overlap: 32,
            sentence: 6..=60,
            most_per_leaf: None,
        }
    }
}

/// Writes the examples of `index` to `output`, a line of JSON each after a line that describes
/// them all; the form is in `docs/train-data.md`. `leaves` are the questions' sections, as
/// [`crate::questions::leaves`] gives them. The output appears whole or not at all, and the same
/// input gives the same bytes.
///
/// # Errors
///
/// [`Error::VocabularyMismatch`] when `tokenizer` is not the one of the index;
/// [`Error::InvalidArgument`] for options that contradict each other or the index; what the
/// tokenizer or writing a file says.
pub fn write(
    index: &Index,
    tokenizer: &dyn Tokenizer,
    questions: &[Question],
    leaves: &[Option<u32>],
    options: &Options,
    output: &Path,
) -> Result<Report> {
    check(index, questions, leaves, options)?;
    vocabulary::check(index, tokenizer)?;
    let bare = bare_prefix(index, tokenizer)?;
    let prefix = match (options.contents, &bare) {
        (true, _) => index.prefix(),
        (false, Some(bare)) => bare,
        (false, None) => {
            let why = "the index has a prompt of its own, and what it is without the contents is not \
                       known: build an index with a template that says `contents = false`, and give \
                       that one";
            return Err(Error::InvalidArgument(why.to_owned()));
        }
    };
    let mut maker = Maker {
        tokenizer,
        template: index.question(),
        terminator: index.terminator(),
        leaves: titled_leaves(index, tokenizer)?,
        out: Writer::new(AtomicFile::create(output)?),
        report: Report::new(index, &options.tasks),
        options,
    };
    maker.out.line(&Header {
        format: "stair-train-data",
        version: 1,
        index_checksum: format!("{:016x}", index.checksum()),
        prefix_checksum: format!("{:016x}", index.prefix_checksum()),
        vocabulary_fingerprint: format!("{:016x}", index.fingerprint()),
        vocabulary_size: index.vocab_size(),
        title: index.title(),
        toc: bare.as_deref() != Some(prefix),
        split: &options.split,
        prefix,
        leaves: &maker.leaves,
    })?;
    maker.questions(questions, leaves)?;
    maker.texts(index)?;
    maker.out.commit()?;
    Ok(maker.report.finish(&options.tasks))
}

fn check(
    index: &Index,
    questions: &[Question],
    leaves: &[Option<u32>],
    options: &Options,
) -> Result<()> {
    let refuse = |why: String| Err(Error::InvalidArgument(why));
    if options.tasks.is_empty() {
        return refuse("no task was chosen: choose retrieval, ingestion or terms".to_owned());
    }
    if options.overlap >= options.window {
        return refuse(format!(
            "the windows have {} words and share {}: they must share fewer than they have",
            options.window, options.overlap
        ));
    }
    if leaves.len() != questions.len() {
        return refuse(format!(
            "{} leaves are given for {} questions: give one for each",
            leaves.len(),
            questions.len()
        ));
    }
    if options.most_per_leaf == Some(0) {
        return refuse(
            "0 parts of text of each leaf: take 1 at least, or leave the task ingestion out"
                .to_owned(),
        );
    }
    let reads_text = options.tasks.iter().any(|&task| task != Task::Retrieval);
    if reads_text && !index.info().has_text {
        return refuse(
            "the index has no texts to make examples of: build it without --no-text, or choose \
             the task retrieval alone"
                .to_owned(),
        );
    }
    let of_split = |question: &Question| question.split == options.split;
    if options.tasks.contains(&Task::Retrieval) && !questions.iter().any(of_split) {
        let splits: BTreeSet<&str> = questions.iter().map(|q| q.split.as_str()).collect();
        let splits: Vec<&str> = splits.into_iter().collect();
        return refuse(format!(
            "no question is of the split {:?}: the questions have {:?}",
            options.split, splits
        ));
    }
    Ok(())
}

/// The tokens before the question in the prompt without contents; `None` for an index with a
/// prompt of its own.
fn bare_prefix(index: &Index, tokenizer: &dyn Tokenizer) -> Result<Option<Vec<u32>>> {
    let template = Template::without_contents();
    if template.question() != index.question() {
        return Ok(None);
    }
    template
        .encode_bare_prefix(tokenizer, index.title())
        .map(Some)
}

/// The leaves in document order with the tokens of their titles.
fn titled_leaves(index: &Index, tokenizer: &dyn Tokenizer) -> Result<Vec<Leaf>> {
    let titles = index.question().titles(tokenizer, index.terminator())?;
    (0..index.sections())
        .filter_map(|id| index.section(id))
        .filter(|section| section.leaf)
        .map(|section| {
            let identifier = section.identifier();
            Ok(Leaf {
                section: section.id,
                tokens: titles.encode(&identifier)?,
                identifier,
            })
        })
        .collect()
}

/// Makes examples and writes them as they come.
struct Maker<'a> {
    tokenizer: &'a dyn Tokenizer,
    template: QuestionTemplate<'a>,
    terminator: u32,
    leaves: Vec<Leaf>,
    out: Writer,
    report: Report,
    options: &'a Options,
}

impl Maker<'_> {
    fn questions(&mut self, questions: &[Question], leaves: &[Option<u32>]) -> Result<()> {
        if !self.options.tasks.contains(&Task::Retrieval) {
            return Ok(());
        }
        for (question, &leaf) in questions.iter().zip(leaves) {
            if question.split != self.options.split {
                self.report.other_splits += 1;
                continue;
            }
            let leaf = leaf.map(|section| {
                let place = self.leaves.binary_search_by_key(&section, |l| l.section);
                place.map_err(|_| {
                    Error::InvalidArgument(format!(
                        "section {section}, given for the question {:?}, is not a leaf of the index",
                        question.id
                    ))
                })
            });
            let leaf = leaf.transpose()?;
            self.example(&question.id, Task::Retrieval, leaf, &question.query)?;
        }
        Ok(())
    }

    fn texts(&mut self, index: &Index) -> Result<()> {
        let blocks: Vec<_> = self
            .leaves
            .iter()
            .filter_map(|leaf| index.section(leaf.section))
            .map(|section| plain::blocks(section.text.unwrap_or_default()))
            .collect();
        // What each leaf has as an example already: a short text is its own only window.
        let mut seen: Vec<HashSet<String>> = vec![HashSet::new(); blocks.len()];
        if self.options.tasks.contains(&Task::Ingestion) {
            for (leaf, (blocks, seen)) in blocks.iter().zip(&mut seen).enumerate() {
                self.ingestion(leaf, blocks, seen)?;
            }
        }
        if self.options.tasks.contains(&Task::Terms) {
            for (number, term) in terms::terms(&blocks).into_iter().enumerate() {
                let questions = term.questions().into_iter().chain(term.sentence);
                for (form, question) in questions.enumerate() {
                    let id = format!("term {number}/{form}");
                    if seen[term.leaf].insert(question.clone()) {
                        self.example(&id, Task::Terms, Some(term.leaf), &question)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn ingestion(
        &mut self,
        leaf: usize,
        blocks: &[plain::Block],
        seen: &mut HashSet<String>,
    ) -> Result<()> {
        let lines: Vec<&str> = blocks.iter().map(|block| block.text.as_str()).collect();
        let text = lines.join("\n");
        let section = self.leaves[leaf].section;
        let (window, overlap) = (self.options.window, self.options.overlap);
        let windows = windows::windows(&text, window, overlap);
        let sentences = lines
            .iter()
            .flat_map(|line| windows::sentences(line, self.options.sentence.clone()));
        let parts = windows
            .into_iter()
            .map(|part| ("window", part))
            .chain(sentences.map(|part| ("sentence", part)));
        let parts: Vec<_> = parts
            .enumerate()
            .filter(|(_, (_, part))| seen.insert((*part).to_owned()))
            .collect();
        let kept = self.options.most_per_leaf.unwrap_or(parts.len());
        let kept = kept.min(parts.len());
        for place in (0..kept).map(|i| i * parts.len() / kept) {
            let (number, (kind, part)) = parts[place];
            let id = format!("{kind} {section}/{number}");
            self.example(&id, Task::Ingestion, Some(leaf), part)?;
        }
        Ok(())
    }

    /// `leaf` is a place in `self.leaves`; `None` where no leaf answers.
    fn example(&mut self, id: &str, task: Task, leaf: Option<usize>, question: &str) -> Result<()> {
        let question = match task {
            Task::Retrieval => Cow::Borrowed(question),
            // A question cannot hold a NUL, and a document can.
            _ => Cow::Owned(question.replace('\0', "\u{fffd}")),
        };
        let encoded = self.template.encode_question(self.tokenizer, &question);
        let mut tokens = match encoded {
            // A line of invisible characters says nothing of its section.
            Err(Error::EmptyQuestion) if task != Task::Retrieval => return Ok(()),
            other => other.map_err(|error| named(error, id))?,
        };
        let start = tokens.len();
        let leaf = leaf.map(|place| &self.leaves[place]);
        match leaf {
            Some(leaf) => tokens.extend(&leaf.tokens),
            None => tokens.push(self.terminator),
        }
        let section = leaf.map(|leaf| leaf.section);
        self.report.count(task, section, tokens.len());
        self.out.line(&Example {
            id,
            task,
            section,
            target: [start, tokens.len()],
            tokens: &tokens,
        })
    }
}

/// An error of a question that says which one.
fn named(error: Error, id: &str) -> Error {
    match error {
        Error::Io { .. } | Error::Internal(_) => error,
        other => Error::InvalidArgument(format!("the example {id:?}: {other}")),
    }
}

#[cfg(test)]
mod tests;
