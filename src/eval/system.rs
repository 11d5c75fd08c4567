//! The systems that an evaluation asks, behind one trait.

use super::predictions::PredictedHit;
use crate::error::{Error, Result};
use crate::retriever::{Hit, Hits, RetrieveOptions, Retriever};
use crate::search::Scoring;

/// Something that answers questions with sections. Several threads may ask it at once.
pub trait System: Sync {
    /// Its name in predictions.
    fn name(&self) -> &str;

    /// Whatever it prepares before the first question, so that no question's time pays for it.
    ///
    /// # Errors
    ///
    /// Those of the system.
    fn warm(&self) -> Result<()> {
        Ok(())
    }

    /// The sections that answer `question`, best first.
    ///
    /// # Errors
    ///
    /// Those of the system. [`Error::EmptyQuestion`], [`Error::NulInQuestion`] and
    /// [`Error::QuestionTooLong`] are taken for a miss; any other ends the evaluation.
    fn answer(&self, question: &str) -> Result<Answer>;
}

/// What a system answers to one question.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// The sections, best first.
    pub hits: Vec<PredictedHit>,
    /// Probability on legal tokens along the best hit; `None` without a model.
    pub legal_mass: Option<f64>,
    /// Decodes spent; `None` without a model.
    pub decodes: Option<u32>,
    /// Tokens evaluated; `None` without a model.
    pub tokens: Option<u32>,
}

/// How a [`Retriever`] is asked as a system. The name says what index and model make of it: `dsi`
/// is the exact search too, over an index without the table of contents in its prompt, and `lexical`
/// a retriever without a model.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Its name in predictions.
    pub name: String,
    /// Number of sections to find; fewer when the index has fewer leaves.
    pub k: usize,
    /// How titles are scored.
    pub scoring: Scoring,
    /// How much lexical evidence counts beside the model's; see
    /// [`RetrieveOptions::lexical_weight`].
    pub lexical_weight: f32,
}

/// A retriever as a system.
#[derive(Debug)]
pub struct Retrieving<'a> {
    retriever: &'a Retriever,
    setup: Setup,
}

impl<'a> Retrieving<'a> {
    /// `retriever`, asked as `setup` says.
    pub fn new(retriever: &'a Retriever, mut setup: Setup) -> Self {
        setup.k = setup.k.min(retriever.index().leaves() as usize).max(1);
        Self { retriever, setup }
    }
}

impl System for Retrieving<'_> {
    fn name(&self) -> &str {
        &self.setup.name
    }

    fn warm(&self) -> Result<()> {
        self.retriever.warm(&crate::CancelToken::new()).map(|_| ())
    }

    fn answer(&self, question: &str) -> Result<Answer> {
        let options = RetrieveOptions {
            k: Some(self.setup.k),
            scoring: self.setup.scoring,
            lexical_weight: self.setup.lexical_weight,
            ..RetrieveOptions::default()
        };
        Ok(answer(&self.retriever.retrieve(question, &options)?))
    }
}

fn answer(hits: &Hits) -> Answer {
    let by_model = hits.legal_mass.is_some();
    Answer {
        hits: hits.hits.iter().map(predicted).collect(),
        legal_mass: hits.legal_mass,
        decodes: by_model.then_some(hits.stats.decodes),
        tokens: by_model.then_some(hits.stats.question_tokens + hits.stats.search_tokens),
    }
}

fn predicted(hit: &Hit) -> PredictedHit {
    let identifier = match hit.number.as_str() {
        "" => hit.title.clone(),
        number => format!("{number} {}", hit.title),
    };
    PredictedHit {
        section: Some(hit.section),
        identifier,
        score: hit.score,
        log_prob: hit.log_prob,
        lexical: hit.lexical.map(f64::from),
    }
}

/// Whether `error` is about the question, so that the next one may well be answered.
pub(crate) fn is_the_questions(error: &Error) -> bool {
    matches!(
        error,
        Error::EmptyQuestion | Error::NulInQuestion { .. } | Error::QuestionTooLong { .. }
    )
}
