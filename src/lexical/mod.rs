//! Lexical evidence: which leaves share words with a question, and how telling the words are.
//!
//! Every leaf section is one document: its number, title and text, and the questions that it is
//! known to answer, where the index has them; [`Lexicon`] scores all of them against a question by
//! [`bm25`]. It is made from what an index stores, and it knows no language model. An index that was
//! built without text still has its titles.
//!
//! A long section says much beside what is asked for, so each [`PASSAGE`] words of it are a document
//! too, and the mean of those of its [`PASSAGES`] best ones counts beside the whole ("passage
//! retrieval"; Callan, SIGIR 1994).
//!
//! Questions bring the words that askers use and authors do not ("document expansion"; Nogueira et
//! al. 2019 generate them). Beside that, each of them is a document of its own: a leaf is worth more
//! when questions *like this one* are known for it (nearest neighbours), and not only their words.
//! As far as there are [`ENOUGH`] questions, the mean of those of its [`NEAREST`] best ones counts.
//!
//! The scorer is this crate's own because it is small and what it must do is particular: scores of
//! *all* leaves for each question, in a time that does not grow with the length of the document,
//! and the same bits every time. The crate `bm25` (2.3) looks every word of the question up by a
//! scan of each candidate's words, counts words by a 32-bit hash, so that some share a count, and
//! stands on a hash crate that is no longer maintained.

pub mod bm25;
mod parts;
pub(crate) mod stem;
mod words;

use crate::index::Index;
use bm25::{Bm25, Counter};
use parts::{Collector, Parts, Rule};
use std::collections::HashMap;
use words::words;

/// Words of a passage. Chosen with [`PASSAGES`] and [`PASSAGES_WEIGHT`] on the development and training
/// exercises of *Microbiology* and the development ones of *Economics*; 60 to 150 do alike.
pub const PASSAGE: usize = 100;

/// Passages of a leaf whose mean counts; 2 to 4 do alike.
pub const PASSAGES: usize = 3;

/// What that mean counts beside the whole leaf; 0.3 to 1 do alike.
pub const PASSAGES_WEIGHT: f32 = 0.5;

/// Known questions of a leaf that count as near: a mean over a few forgives one that is filed wrongly.
/// A leaf that has fewer lacks them. Chosen on the development and training exercises of
/// *Microbiology* and the development questions of the handbook; 3 to 12 do alike.
pub const NEAREST: usize = 5;

/// Known questions for each leaf, on average, from which on the mean of the nearest counts in full; with
/// fewer it counts in proportion, since there may be none near. Chosen like [`NEAREST`], and on the
/// development questions of *Economics*, which knows 3 for each leaf.
pub const ENOUGH: f32 = 25.0;

/// The words of one index's leaves. It never changes, and any number of threads may use it.
#[derive(Debug)]
pub struct Lexicon {
    /// The number of each word's stem.
    terms: HashMap<Box<str>, u32>,
    bm25: Bm25,
    /// The section that each document is, ascending.
    leaves: Vec<u32>,
    passages: Parts,
    questions: Parts,
    sections: usize,
}

impl Lexicon {
    /// Reads the titles and texts of the leaves of `index`. Takes some 30 ms for each million
    /// characters.
    pub fn new(index: &Index) -> Self {
        Self::read(index, true)
    }

    /// Of each leaf the number, title and text as one document, and nothing else: what BM25 is by the
    /// book, for comparison.
    pub fn by_the_book(index: &Index) -> Self {
        Self::read(index, false)
    }

    fn read(index: &Index, parts: bool) -> Self {
        let mut terms = Terms::default();
        let mut counter = Counter::default();
        let (mut passages, mut questions) = (Collector::new(), Collector::new());
        let mut word = String::new();
        let mut leaves = Vec::with_capacity(index.leaves() as usize);
        let sections = (0..index.sections()).filter_map(|id| index.section(id));
        for section in sections.filter(|section| section.leaf) {
            leaves.push(section.id);
            let text = section.text.unwrap_or("");
            let mut in_passage = 0;
            for text in [section.number, section.title, text] {
                words(text, &mut word, |word| {
                    let term = terms.number(word);
                    counter.count(term);
                    if parts {
                        if in_passage == PASSAGE {
                            passages.end_part();
                            in_passage = 0;
                        }
                        passages.count(term);
                        in_passage += 1;
                    }
                });
            }
            if parts {
                passages.end_part();
                for question in index.asked(section.id).lines() {
                    words(question, &mut word, |word| {
                        let term = terms.number(word);
                        counter.count(term);
                        questions.count(term);
                    });
                    questions.end_part();
                }
            }
            passages.end_leaf();
            questions.end_leaf();
            counter.end_document();
        }
        let known = questions.parts() as f32 / leaves.len().max(1) as f32;
        let of_passages = Rule {
            best: PASSAGES,
            weight: PASSAGES_WEIGHT,
        };
        let of_questions = Rule {
            best: NEAREST,
            weight: (known / ENOUGH).min(1.0),
        };
        Self {
            terms: terms.by_stem,
            bm25: counter.finish(),
            leaves,
            passages: passages.finish(of_passages),
            questions: questions.finish(of_questions),
            sections: index.sections() as usize,
        }
    }

    /// How well each section's words match those of `question`: for every section id from 0 its
    /// score, which is finite and not negative. It is 0 for a leaf without a word of the question,
    /// and for what is not a leaf. A word that the question says twice counts twice.
    pub fn scores(&self, question: &str) -> Vec<f32> {
        let mut scores = Scores::default();
        self.score(question, &mut scores);
        scores.sections
    }

    /// The same into memory that is used again.
    pub fn score(&self, question: &str, scores: &mut Scores) {
        let Scores {
            sections,
            terms,
            counted,
            parts,
            word,
        } = scores;
        terms.clear();
        words(question, word, |word| {
            stem::stem(word);
            terms.extend(self.terms.get(word.as_str()).copied());
        });
        // Each word once with its number, so that a long question takes no longer than all words.
        terms.sort_unstable();
        counted.clear();
        counted.extend(terms.chunk_by(|a, b| a == b).map(|same| Said {
            term: same[0],
            times: same.len() as f32,
        }));
        sections.clear();
        sections.resize(self.sections, 0.0);
        for said in counted.iter() {
            for posting in self.bm25.postings(said.term) {
                let section = self.leaves[posting.document as usize] as usize;
                sections[section] += said.times * posting.weight;
            }
        }
        for all in [&self.passages, &self.questions] {
            all.add(counted, &self.leaves, sections, parts);
        }
    }

    /// The `k` leaves with the highest of `scores`, which [`Lexicon::scores`] gave, best first;
    /// between equals the one that stands first in the document.
    pub fn best(&self, scores: &[f32], k: usize) -> Vec<u32> {
        let score = |section: u32| scores.get(section as usize).copied().unwrap_or_default();
        let mut best = self.leaves.clone();
        let order = |a: &u32, b: &u32| score(*b).total_cmp(&score(*a)).then(a.cmp(b));
        if k < best.len() {
            best.select_nth_unstable_by(k, order);
            best.truncate(k);
        }
        best.sort_unstable_by(order);
        best
    }
}

/// A word of a question, and how often it says it.
#[derive(Debug, Clone, Copy)]
struct Said {
    term: u32,
    times: f32,
}

/// One question's scores, and the memory in which they were computed.
#[derive(Debug, Clone, Default)]
pub struct Scores {
    sections: Vec<f32>,
    terms: Vec<u32>,
    counted: Vec<Said>,
    parts: Vec<f32>,
    word: String,
}

impl Scores {
    /// For every section id from 0 its score, as [`Lexicon::scores`] gives it.
    pub fn sections(&self) -> &[f32] {
        &self.sections
    }
}

/// Numbers words by their stems. A text says the same words again and again, so each form is
/// stemmed once.
#[derive(Default)]
struct Terms {
    by_form: HashMap<Box<str>, u32>,
    by_stem: HashMap<Box<str>, u32>,
}

impl Terms {
    /// The number of `word`, which is then its stem.
    fn number(&mut self, word: &mut String) -> u32 {
        if let Some(&term) = self.by_form.get(word.as_str()) {
            return term;
        }
        let form = word.as_str().into();
        stem::stem(word);
        let next = self.by_stem.len() as u32;
        let term = match self.by_stem.get(word.as_str()) {
            Some(&term) => term,
            None => *self.by_stem.entry(word.as_str().into()).or_insert(next),
        };
        self.by_form.insert(form, term);
        term
    }
}

#[cfg(all(test, feature = "building"))]
mod tests;
