//! How a retriever is made, and how it is asked.

use crate::cancel::CancelToken;
use crate::engine::KvType;
use crate::search::Scoring;
use std::path::PathBuf;
use std::time::Duration;

/// How a retriever is made. The default fits one index on one machine.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RetrieverOptions {
    /// Threads that compute; `None` for as many as the process may use, by affinity and by the
    /// quota of its control group.
    pub threads: Option<u32>,
    /// Room for one question, in tokens, with the template's own around it.
    pub max_question_tokens: u32,
    /// Questions that share decodes; more wait their turn. So do those for which `context_tokens` has no
    /// room beside the others.
    pub max_parallel: u32,
    /// Questions that may wait for their turn, 1 at least; who comes when so many do gets
    /// [`Error::Busy`] at once.
    ///
    /// [`Error::Busy`]: crate::Error::Busy
    pub max_waiting: u32,
    /// Length of the context in tokens: for the table of contents, the questions in flight and their
    /// searches. `None` for what `max_parallel` questions of 64 tokens need, or a single one of
    /// `max_question_tokens` if that is more.
    pub context_tokens: Option<u32>,
    /// Number type of keys and values.
    pub kv_type: KvType,
    /// One question at a time: the same question gives bit-equal scores whatever else is asked.
    /// Otherwise scores differ with what shares a decode: on quantised models by tenths.
    pub deterministic: bool,
    /// A folder for the warm file: what the model remembers of the table of contents. The first
    /// question writes it, and every later retriever with the same model, table of contents and
    /// options reads it, where it would decode for seconds. It is made when it is not there. A file
    /// or a folder that cannot be used is as none, and the log says why. A relative path is taken
    /// from the working directory at the time when the retriever is made. Whoever may write to the
    /// folder can change what is answered. `None` for no file.
    pub cache_dir: Option<PathBuf>,
}

impl Default for RetrieverOptions {
    fn default() -> Self {
        Self {
            threads: None,
            max_question_tokens: 512,
            max_parallel: 8,
            max_waiting: 4096,
            context_tokens: None,
            kv_type: KvType::F16,
            deterministic: false,
            cache_dir: None,
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
    /// How much a section's words count beside what the model says: a hit's score is its
    /// log-probability and this times its lexical score. 0, the default, leaves the words out; else
    /// finite and above 0. Choose it on questions of the document that are not for testing. Under
    /// [`Scoring::Local`] it is added to the local log-probability, to which tokens without an
    /// alternative contribute nothing, so the same weight counts for more. Without a model only
    /// the words count, whatever it is.
    pub lexical_weight: f32,
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
            lexical_weight: 0.0,
            timeout: None,
            cancel: CancelToken::new(),
        }
    }
}
