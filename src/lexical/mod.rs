//! Lexical evidence: which leaves share words with a question, and how telling the words are.
//!
//! Every leaf section is one document: its number, title and text, and the questions that it is
//! known to answer, where the index has them; [`Lexicon`] scores all of them against a question by
//! [`bm25`]. It is made from what an index stores, and it knows no language model. An index that was
//! built without text still has its titles.
//!
//! Questions bring the words that askers use and authors do not ("document expansion"; Nogueira et
//! al. 2019 generate them). Beside that, each of them is a document of its own: a leaf is worth more
//! when questions *like this one* are known for it (nearest neighbours), and not only their words.
//! A leaf's score is that of its document and, as far as there are [`ENOUGH`] questions, the mean of
//! those of its [`NEAREST`] best ones.
//!
//! The scorer is this crate's own because it is small and what it must do is particular: scores of
//! *all* leaves for each question, in a time that does not grow with the length of the document,
//! and the same bits every time. The crate `bm25` (2.3) looks every word of the question up by a
//! scan of each candidate's words, counts words by a 32-bit hash, so that some share a count, and
//! stands on a hash crate that is no longer maintained.

pub mod bm25;
mod stem;
mod words;

use crate::index::Index;
use bm25::{Bm25, Counter};
use std::collections::HashMap;
use words::words;

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
    /// Each known question as a document, leaf by leaf.
    questions: Bm25,
    /// Where each leaf's questions begin, and the end of the last one's.
    starts: Vec<u32>,
    /// What the mean of the nearest questions counts.
    nearest_weight: f32,
    sections: usize,
}

impl Lexicon {
    /// Reads the titles and texts of the leaves of `index`. Takes some 30 ms for each million
    /// characters.
    pub fn new(index: &Index) -> Self {
        let mut terms = Terms::default();
        let (mut counter, mut questions) = (Counter::default(), Counter::default());
        let (mut starts, mut word) = (vec![0], String::new());
        let mut leaves = Vec::with_capacity(index.leaves() as usize);
        let sections = (0..index.sections()).filter_map(|id| index.section(id));
        for section in sections.filter(|section| section.leaf) {
            leaves.push(section.id);
            let text = section.text.unwrap_or("");
            for text in [section.number, section.title, text] {
                words(text, &mut word, |word| counter.count(terms.number(word)));
            }
            for question in index.asked(section.id).lines() {
                words(question, &mut word, |word| {
                    let term = terms.number(word);
                    counter.count(term);
                    questions.count(term);
                });
                questions.end_document();
            }
            counter.end_document();
            starts.push(questions.documents() as u32);
        }
        let known = questions.documents() as f32 / leaves.len().max(1) as f32;
        Self {
            nearest_weight: (known / ENOUGH).min(1.0),
            terms: terms.by_stem,
            bm25: counter.finish(),
            leaves,
            questions: questions.finish(),
            starts,
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
            near,
            word,
        } = scores;
        terms.clear();
        words(question, word, |word| {
            stem::stem(word);
            terms.extend(self.terms.get(word.as_str()).copied());
        });
        sections.clear();
        sections.resize(self.sections, 0.0);
        for posting in terms.iter().flat_map(|&term| self.bm25.postings(term)) {
            sections[self.leaves[posting.document as usize] as usize] += posting.weight;
        }
        let known = self.starts.last().copied().unwrap_or_default() as usize;
        near.clear();
        near.resize(known, 0.0);
        for posting in terms.iter().flat_map(|&term| self.questions.postings(term)) {
            near[posting.document as usize] += posting.weight;
        }
        for (leaf, bounds) in self.leaves.iter().zip(self.starts.windows(2)) {
            let near = &mut near[bounds[0] as usize..bounds[1] as usize];
            sections[*leaf as usize] += self.nearest_weight * nearest(near) / NEAREST as f32;
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

/// The sum of the [`NEAREST`] highest scores, which it puts first.
fn nearest(scores: &mut [f32]) -> f32 {
    if scores.len() > NEAREST {
        scores.select_nth_unstable_by(NEAREST - 1, |a, b| b.total_cmp(a));
    }
    let count = scores.len().min(NEAREST);
    let best = &mut scores[..count];
    // Sums in one order are the same bits every time.
    best.sort_unstable_by(|a, b| b.total_cmp(a));
    best.iter().sum()
}

/// One question's scores, and the memory in which they were computed.
#[derive(Debug, Clone, Default)]
pub struct Scores {
    sections: Vec<f32>,
    terms: Vec<u32>,
    near: Vec<f32>,
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
