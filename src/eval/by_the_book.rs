//! BM25 by the book: the baseline that everybody knows.
//!
//! Each leaf is one document of its number, title and text. What the library itself makes of words
//! has passages and known questions beside that; see [`crate::lexical`].

use super::predictions::PredictedHit;
use super::system::{Answer, System};
use crate::error::{Error, Result};
use crate::index::{Index, question};
use crate::lexical::Lexicon;
use std::sync::Arc;

/// The leaves of one index as documents.
#[derive(Debug)]
pub struct ByTheBook {
    index: Arc<Index>,
    lexicon: Lexicon,
    k: usize,
}

impl ByTheBook {
    /// The leaves of `index`, of which `k` are found.
    pub fn new(index: Arc<Index>, k: usize) -> Self {
        let lexicon = Lexicon::by_the_book(&index);
        Self {
            index,
            lexicon,
            k: k.max(1),
        }
    }

    fn hit(&self, id: u32, score: f32) -> Option<PredictedHit> {
        Some(PredictedHit {
            section: Some(id),
            identifier: self.index.section(id)?.identifier(),
            score: score.into(),
            log_prob: None,
            lexical: Some(score.into()),
        })
    }
}

impl System for ByTheBook {
    fn name(&self) -> &str {
        "bm25"
    }

    fn answer(&self, question: &str) -> Result<Answer> {
        question::check(question)?;
        let scores = self.lexicon.scores(question);
        let best = self.lexicon.best(&scores, self.k);
        let hits = best.iter().map(|&id| self.hit(id, scores[id as usize]));
        let no_section = || Error::Internal("a leaf is no section".to_owned());
        Ok(Answer {
            hits: hits.collect::<Option<_>>().ok_or_else(no_section)?,
            ..Answer::default()
        })
    }
}
