//! A model and an index together: questions in, sections out.

use crate::cancel::CancelToken;
use crate::engine::context::MAX_SEQUENCES;
use crate::engine::worker::{Division, Outcome, Queue, Request, Worker};
use crate::engine::{Context, ContextOptions, KvType, Model};
use crate::error::{Error, Result};
use crate::index::Index;
use crate::index::question::FixedTokens;
use crate::search::model::Capacity;
use crate::search::{Found, Room, Scoring, SearchOptions};
use crate::tokens::Tokenizer;
use std::ops::Range;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// States that a search may hold; a peaked model needs a few, and with fewer than it would like a
/// search only evaluates some tokens again.
const STATES: usize = 24;

/// Rows of logits in one decode. Each is a number for every token of the vocabulary.
const ROWS: usize = 128;

/// Tokens in one decode, unless a title or a question is longer.
const BATCH: usize = 512;

/// How a retriever is made. The default fits one index on one machine.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RetrieverOptions {
    /// Threads that compute; `None` for as many as the process may use, by affinity and by the
    /// quota of its control group.
    pub threads: Option<u32>,
    /// Room for one question, in tokens, with the template's own around it.
    pub max_question_tokens: u32,
    /// Questions that share decodes; more wait their turn.
    pub max_parallel: u32,
    /// Length of the context in tokens; `None` for what the table of contents, the questions and
    /// the searches need.
    pub context_tokens: Option<u32>,
    /// Number type of keys and values.
    pub kv_type: KvType,
    /// One question at a time: the same question gives bit-equal scores whatever else is asked.
    /// Otherwise scores differ with what shares a decode: on quantised models by tenths.
    pub deterministic: bool,
}

impl Default for RetrieverOptions {
    fn default() -> Self {
        Self {
            threads: None,
            max_question_tokens: 512,
            max_parallel: 8,
            context_tokens: None,
            kv_type: KvType::F16,
            deterministic: false,
        }
    }
}

/// How a question is asked.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RetrieveOptions {
    /// Number of sections to find; `None` for 3, or all when there are fewer.
    pub k: Option<usize>,
    /// How titles are scored.
    pub scoring: Scoring,
    /// Longest wait; `None` for as long as it takes.
    pub timeout: Option<Duration>,
    /// Cancels the call.
    pub cancel: CancelToken,
}

impl Default for RetrieveOptions {
    fn default() -> Self {
        Self {
            k: None,
            scoring: Scoring::Exact,
            timeout: None,
            cancel: CancelToken::new(),
        }
    }
}

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
    /// Natural logarithm of the probability that the model gives its title.
    pub log_prob: f64,
}

/// The answer to one question.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Hits {
    /// The sections, most probable first.
    pub hits: Vec<Hit>,
    /// How much of its probability the model gave to tokens that this document allows, along the
    /// best hit: near 1 when it wanted one of these sections, low when it wanted something else.
    pub legal_mass: f64,
    /// What it cost.
    pub stats: Stats,
}

/// What the answer to one question cost.
#[derive(Debug, Clone, Copy, PartialEq)]
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
    /// Time for them.
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
    model: Arc<Model>,
    /// The part of a question's tokens that is the same for all.
    fixed: FixedTokens,
    max_question_tokens: usize,
    queue: Arc<Queue>,
    worker: Option<JoinHandle<()>>,
}

impl Retriever {
    /// A retriever over `index` with `model`. It starts a thread that waits for questions; the
    /// table of contents is decoded for the first one, or by [`Retriever::warm`].
    ///
    /// # Errors
    ///
    /// [`Error::VocabularyMismatch`] when the index was built for another vocabulary;
    /// [`Error::ContextTooSmall`] when the table of contents does not fit;
    /// [`Error::InvalidArgument`] or [`Error::OutOfMemory`].
    pub fn new(model: Arc<Model>, index: Arc<Index>, options: &RetrieverOptions) -> Result<Self> {
        check_vocabulary(&model, &index)?;
        let layout = Layout::new(&model, &index, options)?;
        let fixed = index.question().fixed(&*model)?;
        let queue = Arc::new(Queue::default());
        let worker = std::thread::Builder::new().name("stair-worker".to_owned());
        let (ready, is_ready) = std::sync::mpsc::sync_channel(1);
        let handle = {
            let (model, index, queue) =
                (Arc::clone(&model), Arc::clone(&index), Arc::clone(&queue));
            worker.spawn(move || {
                // The context borrows the model, so it lives on this thread's stack.
                let context = match Context::new(&model, &layout.context) {
                    Ok(context) => context,
                    Err(error) => {
                        let _ = ready.send(Err(error));
                        return;
                    }
                };
                let mut worker = Worker::new(context, &index, &queue, layout.division);
                let _ = ready.send(Ok(()));
                worker.run();
            })
        };
        let handle =
            handle.map_err(|e| Error::OutOfMemory(format!("cannot start a thread: {e}")))?;
        // A dropped sender means that the thread panicked.
        is_ready.recv().unwrap_or(Err(Error::Closed))?;
        Ok(Self {
            index,
            model,
            fixed,
            max_question_tokens: layout.max_question_tokens,
            queue,
            worker: Some(handle),
        })
    }

    /// The index.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Decodes the table of contents, if it is not yet, so that the first question need not wait.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`], [`Error::Decode`] or [`Error::Closed`].
    pub fn warm(&self, cancel: &CancelToken) -> Result<()> {
        let request = Request {
            question: None,
            cancel: cancel.clone(),
            deadline: None,
            timeout_ms: 0,
        };
        self.queue.ask(request).map(|_| ())
    }

    /// Finds the sections that answer `question`.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyQuestion`], [`Error::NulInQuestion`], [`Error::QuestionTooLong`],
    /// [`Error::InvalidK`], [`Error::Cancelled`], [`Error::Timeout`], [`Error::Decode`] or
    /// [`Error::Closed`].
    pub fn retrieve(&self, question: &str, options: &RetrieveOptions) -> Result<Hits> {
        let started = Instant::now();
        let leaves = self.index.leaves() as usize;
        let k = options.k.unwrap_or(leaves.min(3));
        if k == 0 || k > leaves {
            return Err(Error::InvalidK { k, leaves });
        }
        let too_long = |tokens| Error::QuestionTooLong {
            tokens,
            max: self.max_question_tokens,
        };
        // No token is longer than some dozens of bytes, so a novel is refused before its
        // tokenisation takes seconds.
        if question.len() > self.max_question_tokens.saturating_mul(256) {
            return Err(too_long(question.len() / 256));
        }
        let template = self.index.question();
        let tokens = template.encode_question_with(&*self.model, &self.fixed, question)?;
        if tokens.len() > self.max_question_tokens {
            return Err(too_long(tokens.len()));
        }
        if tokens.is_empty() {
            return Err(Error::EmptyQuestion);
        }
        let search = SearchOptions {
            k,
            scoring: options.scoring,
            // Measured: one at a time is cheapest for one title; for more, two share a decode.
            width: if k == 1 { 1 } else { 2 },
        };
        let request = Request {
            question: Some((tokens, search)),
            cancel: options.cancel.clone(),
            deadline: options
                .timeout
                .and_then(|timeout| started.checked_add(timeout)),
            timeout_ms: options
                .timeout
                .map_or(0, |t| u64::try_from(t.as_millis()).unwrap_or(u64::MAX)),
        };
        let outcome = self.queue.ask(request)?;
        Ok(self.hits(outcome, started))
    }

    fn hits(&self, outcome: Outcome, started: Instant) -> Hits {
        let hits: Vec<Hit> = outcome
            .found
            .iter()
            .filter_map(|found| self.hit(found))
            .collect();
        let legal_mass = outcome
            .found
            .first()
            .map_or(0.0, |best| best.log_legal.exp());
        Hits {
            hits,
            legal_mass,
            stats: Stats {
                decodes: outcome.decodes,
                question_tokens: outcome.question_tokens,
                search_tokens: outcome.search_tokens,
                prefix_tokens: outcome.prefix_tokens,
                prefill: outcome.prefill,
                search: outcome.search,
                total: started.elapsed(),
            },
        }
    }

    fn hit(&self, found: &Found) -> Option<Hit> {
        let section = self.index.section(found.section)?;
        let identifier = |id| self.index.section(id).map(|section| section.identifier());
        Some(Hit {
            section: section.id,
            number: section.number.to_owned(),
            title: section.title.to_owned(),
            path: self
                .index
                .path(section.id)
                .into_iter()
                .filter_map(identifier)
                .collect(),
            page: section.page,
            span: section.span,
            text: section.text.map(str::to_owned),
            log_prob: found.log_prob,
        })
    }
}

impl Drop for Retriever {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(worker) = self.worker.take() {
            // It ends after its current decode. Its panic, if it had one, was already an answer.
            let _ = worker.join();
        }
    }
}

impl std::fmt::Debug for Retriever {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Retriever")
            .field("index", &self.index)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// How the context is divided.
struct Layout {
    context: ContextOptions,
    division: Division,
    max_question_tokens: usize,
}

impl Layout {
    fn new(model: &Model, index: &Index, options: &RetrieverOptions) -> Result<Self> {
        let most = usize::from(MAX_SEQUENCES - 1) / 3;
        let parallel = match options.deterministic {
            true => 1,
            false => options.max_parallel as usize,
        };
        if parallel == 0 || parallel > most {
            let what = format!("max_parallel is {parallel} and may be 1 to {most}");
            return Err(Error::InvalidArgument(what));
        }
        let question = options.max_question_tokens as usize;
        if question == 0 {
            return Err(Error::InvalidArgument(
                "max_question_tokens is 0: leave room".to_owned(),
            ));
        }
        let prefix = index.prefix().len();
        let title = index.longest_title() as usize;
        let states = STATES.min(usize::from(MAX_SEQUENCES - 1) / parallel).max(3);
        let room = Room {
            states,
            tokens: (2 * title).max(8 * states),
        };
        // Positions are what the model was trained on; cells are shared by all questions.
        let positions = prefix + question + title;
        let trained = model.info().context_length as usize;
        if trained > 0 && positions > trained {
            return Err(Error::ContextTooSmall {
                needed: positions,
                prefix,
                available: trained,
                remedy: "use a model with a longer context, allow shorter questions, or split the document",
            });
        }
        let needed = prefix + parallel * (question + room.tokens);
        let context = options
            .context_tokens
            .map_or(needed, |tokens| tokens as usize);
        if context < needed {
            return Err(Error::ContextTooSmall {
                needed,
                prefix,
                available: context,
                remedy: "raise context_tokens or leave it out, or lower max_parallel or max_question_tokens",
            });
        }
        let threads = options
            .threads
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get() as u32));
        Ok(Self {
            context: ContextOptions {
                capacity: Capacity {
                    sequences: (1 + parallel * states) as u16,
                    batch: BATCH.max(question).max(title),
                    rows: ROWS.max(title),
                    context,
                },
                threads,
                kv_type: options.kv_type,
            },
            division: Division { parallel, room },
            max_question_tokens: question,
        })
    }
}

/// Checks that model and index agree about every title, to the token: a title that the model would
/// spell otherwise could be found only by accident.
fn check_vocabulary(model: &Model, index: &Index) -> Result<()> {
    let (found, expected) = (model.vocab_size(), index.vocab_size());
    if found != expected {
        let what = format!("it has {expected} tokens and the model's has {found}");
        return Err(Error::VocabularyMismatch(what));
    }
    if model.fingerprint() != index.fingerprint() {
        let what = format!(
            "its fingerprint is {:016x} and the model's is {:016x}",
            index.fingerprint(),
            model.fingerprint()
        );
        return Err(Error::VocabularyMismatch(what));
    }
    let trie = index.trie();
    let titles = index.question().titles(model, index.terminator())?;
    for section in (0..index.sections()).filter_map(|id| index.section(id)) {
        if !section.leaf {
            continue;
        }
        let identifier = section.identifier();
        let node = trie.find(&titles.encode(&identifier)?);
        if node.and_then(|node| trie.section(node)) != Some(section.id) {
            let what = format!("the model's tokens for {identifier:?} differ from the index's");
            return Err(Error::VocabularyMismatch(what));
        }
    }
    Ok(())
}
