//! A model and an index together: questions in, sections out. Without a model, the words of the
//! question and of the sections decide.

mod drafts;
mod generator;
mod options;

use crate::cancel::CancelToken;
use crate::engine::Model;
use crate::engine::queue::Outcome;
use crate::error::{Error, Result};
use crate::index::{Index, question};
use crate::lexical::{Lexicon, Scores};
use crate::pool::Pool;
use crate::search::{Scoring, SearchOptions};
use generator::Generator;
pub use options::{RetrieveOptions, RetrieverOptions};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// One section that may answer a question. Everything in it comes from the index by the section's
/// id; nothing was generated.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Hit {
    /// The section's id: its position in document order, from 0.
    pub section: u32,
    /// Its number; empty when it has none.
    pub number: String,
    /// Its title.
    pub title: String,
    /// Identifiers from the chapter down to the section itself.
    pub path: Vec<String>,
    /// Page in the original.
    pub page: Option<u32>,
    /// Bytes of the original document.
    pub span: Range<u64>,
    /// Its text, when the index has texts.
    pub text: Option<String>,
    /// What it is ranked by: `log_prob`, plus `lexical_weight` times `lexical` when that was asked
    /// for; `lexical` without a model.
    pub score: f64,
    /// Natural logarithm of the probability that the model gives its title; `None` without a
    /// model.
    pub log_prob: Option<f64>,
    /// Its [lexical score](crate::lexical) for the question, 0 when neither the section nor its known
    /// questions share a word with it; `None` with a model and a `lexical_weight` of 0.
    pub lexical: Option<f32>,
}

/// The answer to one question.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Hits {
    /// The sections, best first; between equals the one that stands first in the document.
    pub hits: Vec<Hit>,
    /// How much of its probability the model gave to tokens that this document allows, along the
    /// best hit: near 1 when it wanted one of these sections, low when it wanted something else.
    /// `None` without a model.
    pub legal_mass: Option<f64>,
    /// What it cost.
    pub stats: Stats,
}

/// What the answer to one question cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Decodes that the question had a part in.
    pub decodes: u32,
    /// Tokens of the question, with the template's own around it.
    pub question_tokens: u32,
    /// Tokens that the search evaluated.
    pub search_tokens: u32,
    /// Tokens of the table of contents that were decoded while this question waited: all of them
    /// for a retriever's first question, then 0.
    pub prefix_tokens: u32,
    /// Tokens of the table of contents that were read from the warm file while this question
    /// waited, rather than decoded.
    pub restored_tokens: u32,
    /// Time for both.
    pub prefill: Duration,
    /// Time for the question and the search.
    pub search: Duration,
    /// Time for the whole call, with waiting.
    pub total: Duration,
}

/// Answers questions about one document. Any number of threads may ask at once; their questions
/// share decodes.
pub struct Retriever {
    index: Arc<Index>,
    /// Made for the first question that needs it.
    lexicon: OnceLock<Lexicon>,
    /// Lexical scores of questions that were answered.
    scores: Pool<Scores>,
    generator: Option<Generator>,
}

impl Retriever {
    /// A retriever over `index` with `model`. It starts a thread that waits for questions; the
    /// table of contents is decoded for the first one, or by [`Retriever::warm`].
    ///
    /// # Errors
    ///
    /// [`Error::VocabularyMismatch`] when the index was built for another vocabulary;
    /// [`Error::ContextTooSmall`] when the table of contents does not fit;
    /// [`Error::InvalidArgument`]; [`Error::OutOfMemory`], also when [`context_memory`] has no room
    /// and in five minutes no other retriever gave way.
    ///
    /// [`context_memory`]: crate::ModelOptions::context_memory
    pub fn new(model: Arc<Model>, index: Arc<Index>, options: &RetrieverOptions) -> Result<Self> {
        let generator = Generator::new(model, Arc::clone(&index), options)?;
        Ok(Self {
            index,
            lexicon: OnceLock::new(),
            scores: Pool::new(),
            generator: Some(generator),
        })
    }

    /// A retriever over `index` without a model: it ranks by the words that question and section
    /// have in common ([`lexical`](crate::lexical)). It starts no thread; the sections' words are
    /// read for the first question, or by [`Retriever::warm`]. For any `k` there are `k` hits; when
    /// no section has a word of the question, those are the first ones with a score of 0.
    pub fn lexical(index: Arc<Index>) -> Self {
        Self {
            index,
            lexicon: OnceLock::new(),
            scores: Pool::new(),
            generator: None,
        }
    }

    /// The index.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The file in [`RetrieverOptions::cache_dir`] that this retriever reads the table of contents
    /// from, or writes after its first answer; dropping the retriever waits until that is done.
    /// `None` without a folder, without a model, and when the model's file is not the one that was
    /// loaded any more.
    pub fn warm_file(&self) -> Option<&Path> {
        Some(self.generator.as_ref()?.warm_file()?.path())
    }

    /// Ends the retriever as dropping it does, and waits until the warm file is written. Returns
    /// where it lies, and `None` when this retriever neither read it nor wrote it whole: the log says
    /// why, and whatever stands there is of no use.
    pub fn close(mut self) -> Option<PathBuf> {
        let generator = self.generator.take()?;
        let file = generator.warm_file()?.clone();
        drop(generator);
        file.is_good().then(|| file.path().to_path_buf())
    }

    /// Reads the sections' words and, with a model, decodes the table of contents, if that is not done
    /// yet, so that the first question need not wait. Returns what it cost.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`], [`Error::Busy`], [`Error::Decode`], [`Error::OutOfMemory`] where the context
    /// had given way and has no room, or [`Error::Closed`].
    pub fn warm(&self, cancel: &CancelToken) -> Result<Stats> {
        let started = Instant::now();
        still_wanted(cancel, started, None)?;
        self.lexicon();
        let Some(generator) = &self.generator else {
            return Ok(Stats {
                total: started.elapsed(),
                ..Stats::default()
            });
        };
        let outcome = generator.ask(None, cancel, started, None)?;
        Ok(stats(&outcome, started))
    }

    /// Finds the sections that answer `question`.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyQuestion`], [`Error::NulInQuestion`], [`Error::QuestionTooLong`] (with a
    /// model), [`Error::InvalidK`], [`Error::LexicalWeight`], [`Error::Cancelled`],
    /// [`Error::Timeout`], and those of [`Retriever::warm`].
    pub fn retrieve(&self, question: &str, options: &RetrieveOptions) -> Result<Hits> {
        let started = Instant::now();
        let leaves = self.index.leaves() as usize;
        let k = options.k.unwrap_or(leaves.min(3));
        if k == 0 || k > leaves {
            return Err(Error::InvalidK { k, leaves });
        }
        let weight = options.lexical_weight;
        if !(weight.is_finite() && weight >= 0.0) {
            return Err(Error::LexicalWeight { weight });
        }
        match &self.generator {
            Some(generator) => self.by_model(generator, question, k, options, started),
            None => self.by_words(question, k, options, started),
        }
    }

    fn by_model(
        &self,
        generator: &Generator,
        question: &str,
        k: usize,
        options: &RetrieveOptions,
        started: Instant,
    ) -> Result<Hits> {
        let weight = options.lexical_weight;
        let search = SearchOptions {
            k,
            scoring: options.scoring,
            // Local scoring does not look ahead; there two at a time are cheapest for several titles.
            width: match options.scoring {
                Scoring::Local if k > 1 => 2,
                _ => 1,
            },
        };
        // Before the words are looked at: it refuses what is too long.
        let mut asked = generator.question(&self.index, question, search)?;
        still_wanted(&options.cancel, started, options.timeout)?;
        let mut scores = self.scores.take().unwrap_or_default();
        // Nobody else holds the two, so nothing is copied.
        let (request, lexical) = (Arc::make_mut(&mut asked), Arc::make_mut(&mut scores));
        self.lexicon().score(question, lexical);
        let lexical = lexical.sections();
        // The search wants finite numbers, which the product of two need not be.
        let weighed = |weight: f32| {
            lexical
                .iter()
                .map(move |score| (weight * score).min(f32::MAX))
        };
        if weight > 0.0 {
            request.prior.extend(weighed(weight));
        }
        let says = if weight > 0.0 { weight } else { drafts::WEIGHT };
        request.expected.extend(weighed(says));
        drafts::choose(lexical, &request.expected, &mut request.drafts);
        let outcome = generator.ask(Some(asked), &options.cancel, started, options.timeout)?;
        let lexical = (weight > 0.0).then_some(lexical);
        let hits = outcome.found.iter().filter_map(|found| {
            let score = Score {
                score: found.score,
                log_prob: Some(found.log_prob),
                lexical: lexical.and_then(|scores| scores.get(found.section as usize).copied()),
            };
            self.hit(found.section, score)
        });
        let hits = hits.collect();
        self.scores.give_back(scores);
        Ok(Hits {
            hits,
            legal_mass: Some(
                outcome
                    .found
                    .first()
                    .map_or(0.0, |best| best.log_legal.exp()),
            ),
            stats: stats(&outcome, started),
        })
    }

    fn by_words(
        &self,
        question: &str,
        k: usize,
        options: &RetrieveOptions,
        started: Instant,
    ) -> Result<Hits> {
        question::check(question)?;
        still_wanted(&options.cancel, started, options.timeout)?;
        let lexicon = self.lexicon();
        let scores = lexicon.scores(question);
        let hits = lexicon.best(&scores, k).into_iter().filter_map(|section| {
            let lexical = scores.get(section as usize).copied()?;
            let score = Score {
                score: lexical.into(),
                log_prob: None,
                lexical: Some(lexical),
            };
            self.hit(section, score)
        });
        let hits = hits.collect();
        still_wanted(&options.cancel, started, options.timeout)?;
        let elapsed = started.elapsed();
        Ok(Hits {
            hits,
            legal_mass: None,
            stats: Stats {
                search: elapsed,
                total: elapsed,
                ..Stats::default()
            },
        })
    }

    fn lexicon(&self) -> &Lexicon {
        self.lexicon.get_or_init(|| Lexicon::new(&self.index))
    }

    fn hit(&self, id: u32, score: Score) -> Option<Hit> {
        let section = self.index.section(id)?;
        let mut path: Vec<String> = self
            .index
            .upwards(section.id)
            .map(|section| section.identifier())
            .collect();
        path.reverse();
        Some(Hit {
            section: section.id,
            number: section.number.to_owned(),
            title: section.title.to_owned(),
            path,
            page: section.page,
            span: section.span,
            text: section.text.map(str::to_owned),
            score: score.score,
            log_prob: score.log_prob,
            lexical: score.lexical,
        })
    }
}

/// What a hit is ranked by, and where that comes from.
struct Score {
    score: f64,
    log_prob: Option<f64>,
    lexical: Option<f32>,
}

/// Refuses to go on for a caller who does not wait any more.
fn still_wanted(cancel: &CancelToken, started: Instant, timeout: Option<Duration>) -> Result<()> {
    if cancel.is_triggered() {
        return Err(Error::Cancelled);
    }
    match timeout {
        Some(timeout) if started.elapsed() >= timeout => Err(Error::Timeout {
            timeout_ms: timeout.as_millis().try_into().unwrap_or(u64::MAX),
        }),
        _ => Ok(()),
    }
}

fn stats(outcome: &Outcome, started: Instant) -> Stats {
    Stats {
        decodes: outcome.decodes,
        question_tokens: outcome.question_tokens,
        search_tokens: outcome.search_tokens,
        prefix_tokens: outcome.prefix_tokens,
        restored_tokens: outcome.restored_tokens,
        prefill: outcome.prefill,
        search: outcome.search,
        total: started.elapsed(),
    }
}

impl std::fmt::Debug for Retriever {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Retriever")
            .field("index", &self.index)
            .field("model", &self.generator.as_ref().map(Generator::model))
            .finish_non_exhaustive()
    }
}
