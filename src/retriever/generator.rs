//! The half of a retriever that has a model: the context's sizes, and the worker's thread.

use super::options::RetrieverOptions;
use crate::cancel::CancelToken;
use crate::engine::context::MAX_SEQUENCES;
use crate::engine::log::{self, Level};
use crate::engine::queue::{Outcome, Question, Queue, Request};
use crate::engine::warm::WarmFile;
use crate::engine::worker::{Division, Worker};
use crate::engine::{Context, ContextOptions, Model, heap};
use crate::error::{Error, Result};
use crate::index::question::FixedTokens;
use crate::index::{Index, vocabulary};
use crate::panics;
use crate::pool::Pool;
use crate::search::model::{Capacity, LanguageModel};
use crate::search::{Room, SearchOptions};
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// States that a search may hold; a peaked model needs a few, and with fewer than it would like a
/// search only evaluates some tokens again.
const STATES: usize = 24;

/// Tokens that a question usually has at most. The context has room for `max_parallel` of these; when
/// longer ones are asked together, fewer are in flight.
const USUAL_QUESTION: usize = 64;

/// Rows of logits in one decode. Each is a number for every token of the vocabulary.
const ROWS: usize = 128;

/// Longest wait of a new retriever for a place in the memory budget: longer than a worker takes for
/// those whom it serves, if it had to decode its table of contents for them. Nothing else ends this
/// wait; later on each question has its own deadline.
const PATIENCE: Duration = Duration::from_secs(300);

/// Threads that ggml takes at most (`GGML_MAX_N_THREADS`).
const MOST_THREADS: u32 = 512;

/// Tokens in one decode, unless a title or a question is longer.
const BATCH: usize = 512;

/// A model with an index's table of contents, and the thread that serves it.
pub(super) struct Generator {
    model: Arc<Model>,
    /// The part of a question's tokens that is the same for all.
    fixed: FixedTokens,
    max_question_tokens: usize,
    warm_file: Option<WarmFile>,
    queue: Arc<Queue>,
    /// Questions that were answered.
    spare: Pool<Question>,
    worker: Option<JoinHandle<()>>,
}

impl Generator {
    /// Checks that model and index belong together and starts the thread.
    pub fn new(model: Arc<Model>, index: Arc<Index>, options: &RetrieverOptions) -> Result<Self> {
        vocabulary::check(&index, &*model)?;
        let layout = Layout::new(&model, &index, options)?;
        let fixed = index.question().fixed(&*model)?;
        let max_question_tokens = layout.max_question_tokens;
        let queue = Arc::new(Queue::new(options.max_waiting as usize));
        let worker = std::thread::Builder::new().name("stair-worker".to_owned());
        let (ready, is_ready) = std::sync::mpsc::sync_channel(1);
        let handle = {
            let (model, queue) = (Arc::clone(&model), Arc::clone(&queue));
            // The host may change its working directory later. Where there is none, the folder cannot
            // be used under either name.
            let absolute = |folder: &PathBuf| std::path::absolute(folder).ok();
            let folder = options.cache_dir.as_ref();
            let folder = folder.map(|folder| absolute(folder).unwrap_or_else(|| folder.clone()));
            worker.spawn(move || {
                let service = Service {
                    model,
                    index,
                    queue,
                    layout,
                    folder,
                    warm_file: OnceLock::new(),
                };
                let served = panics::catch(|| {
                    service.run(&mut |opened| {
                        // Nobody listens any more after the first.
                        let _ = ready.try_send(opened);
                    });
                });
                // Nobody is left who would answer.
                if let Err(Error::Panic(message)) = served {
                    service.queue.abandon(Some(message));
                }
            })
        };
        let handle =
            handle.map_err(|e| Error::OutOfMemory(format!("cannot start a thread: {e}")))?;
        let panicked = |_| Error::Panic("the worker's thread, at its beginning".to_owned());
        let opened = is_ready.recv().map_err(panicked);
        let warm_file = match opened.and_then(|opened| opened) {
            Ok(warm_file) => warm_file,
            Err(error) => {
                // It is at its end, and holds model and index as long as it runs.
                let _ = handle.join();
                return Err(error);
            }
        };
        Ok(Self {
            warm_file,
            model,
            fixed,
            max_question_tokens,
            queue,
            spare: Pool::new(),
            worker: Some(handle),
        })
    }

    pub fn model(&self) -> &Model {
        &self.model
    }

    pub fn warm_file(&self) -> Option<&WarmFile> {
        self.warm_file.as_ref()
    }

    /// `text` as the worker takes it, without prior and drafts. Its tokens are at least one and not too
    /// many.
    pub fn question(
        &self,
        index: &Index,
        text: &str,
        search: SearchOptions,
    ) -> Result<Arc<Question>> {
        let mut shared = self.spare.take().unwrap_or_else(|| {
            Arc::new(Question {
                text: String::new(),
                tokens: Vec::new(),
                search,
                prior: Vec::new(),
                expected: Vec::new(),
                drafts: Vec::new(),
            })
        });
        // Nobody else holds it, so nothing is copied.
        let question = Arc::make_mut(&mut shared);
        question.search = search;
        question.prior.clear();
        question.expected.clear();
        question.drafts.clear();
        self.encode(index, text, question)?;
        Ok(shared)
    }

    fn encode(&self, index: &Index, question: &str, into: &mut Question) -> Result<()> {
        let too_long = |tokens, at_least| Error::QuestionTooLong {
            tokens,
            at_least,
            max: self.max_question_tokens,
        };
        // No token is longer than some dozens of bytes, so a novel is refused before its
        // tokenisation takes seconds.
        if question.len() > self.max_question_tokens.saturating_mul(256) {
            return Err(too_long(question.len() / 256, true));
        }
        let template = index.question();
        let Question { text, tokens, .. } = into;
        template.encode_question_into(&*self.model, &self.fixed, question, text, tokens)?;
        match tokens.len() {
            0 => Err(Error::EmptyQuestion),
            len if len > self.max_question_tokens => Err(too_long(len, false)),
            _ => Ok(()),
        }
    }

    /// Has the worker answer `question`, or only decode the table of contents, and waits for it,
    /// until `timeout` after `started`.
    pub fn ask(
        &self,
        question: Option<Arc<Question>>,
        cancel: &CancelToken,
        started: Instant,
        timeout: Option<Duration>,
    ) -> Result<Outcome> {
        let answer = self.queue.ask(Request {
            question: question.clone(),
            cancel: cancel.clone(),
            deadline: timeout.and_then(|timeout| started.checked_add(timeout)),
            timeout_ms: timeout.map_or(0, |t| t.as_millis().try_into().unwrap_or(u64::MAX)),
        });
        if let Some(question) = question {
            self.spare.give_back(question);
        }
        answer
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(worker) = self.worker.take() {
            // It ends after its current decode, and when the warm file is written. Its panic, if it had one, was already an answer.
            let _ = worker.join();
        }
    }
}

/// What the worker's thread does: it has a context while there is memory for one.
struct Service {
    model: Arc<Model>,
    index: Arc<Index>,
    queue: Arc<Queue>,
    layout: Layout,
    folder: Option<PathBuf>,
    /// Once there was a context, from which it has its name.
    warm_file: OnceLock<Option<WarmFile>>,
}

impl Service {
    /// Answers until the queue is closed. `opened` is called after each try to make a context, with
    /// the warm file; when the first one fails this is the end.
    fn run(&self, opened: &mut dyn FnMut(Result<Option<WarmFile>>)) {
        let mut first = true;
        loop {
            match self.serve(opened, first.then_some(PATIENCE)) {
                Ok(true) => (),
                Ok(false) => return,
                Err(error) if first => return opened(Err(error)),
                // Who asks later may be luckier.
                Err(error) => self.queue.refuse(&error),
            }
            first = false;
            if !self.queue.wait() {
                return self.queue.abandon(None);
            }
        }
    }

    /// Answers with one context, until its memory is needed elsewhere (true) or the queue is closed
    /// (false). It waits no longer than `patience` for that memory.
    fn serve(
        &self,
        opened: &mut dyn FnMut(Result<Option<WarmFile>>),
        patience: Option<Duration>,
    ) -> Result<bool> {
        let bytes = self.layout.context.bytes(&self.model);
        let queue: Arc<Queue> = Arc::clone(&self.queue);
        // Before there is a seat: from then on whoever needs it may ask for it.
        self.queue.stay();
        let Some(_seat) = self.model.memory.take(bytes, queue, patience)? else {
            return Ok(true);
        };
        // Later on OpenMP has its helpers already.
        if patience.is_some() {
            can_start(self.layout.context.threads)?;
        }
        // The context borrows the model, so it lives on this thread's stack.
        let context = Context::new(&self.model, &self.layout.context)?;
        let warm = self.warm_file.get_or_init(|| {
            let folder = self.folder.as_deref()?;
            let Some(key) = context.state_key() else {
                log::emit(
                    Level::Warn,
                    "no warm file: the model's file cannot be read any more, or is another one",
                );
                return None;
            };
            Some(WarmFile::new(folder, key, self.index.prefix()))
        });
        opened(Ok(warm.clone()));
        let mut worker = Worker::new(context, &self.index, &self.queue, self.layout.division)
            .with_warm_file(warm.clone());
        let left = worker.run();
        drop(worker);
        // Before the seat is free: who gets it next takes as much.
        heap::give_back();
        Ok(left)
    }
}

/// Starts as many threads as compute beside this one, and ends them. Where the system has no room for
/// them, OpenMP and ggml would end the process in the first decode.
fn can_start(threads: u32) -> Result<()> {
    let gate = Mutex::new(());
    std::thread::scope(|scope| {
        // Dropped, at the end or for an error, it lets all of them go.
        let _closed = gate.lock();
        for started in 1..threads {
            let helper = std::thread::Builder::new();
            let helper = helper.spawn_scoped(scope, || drop(gate.lock()));
            helper.map_err(|error| {
                Error::OutOfMemory(format!(
                    "{started} of {threads} threads can run ({error}): set threads to less, or raise \
                     the limit of processes"
                ))
            })?;
        }
        Ok(())
    })
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
        if options.max_waiting == 0 {
            return Err(Error::InvalidArgument(
                "max_waiting is 0: every question waits for a moment, so allow 1 at least"
                    .to_owned(),
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
        let division = Division { parallel, room };
        let needed = prefix + division.cells(question);
        let usual = prefix + parallel * division.cells(question.min(USUAL_QUESTION));
        let context = options
            .context_tokens
            .map_or(usual.max(needed), |tokens| tokens as usize);
        if context < needed {
            return Err(Error::ContextTooSmall {
                needed,
                prefix,
                available: context,
                remedy: "raise context_tokens or leave it out, or lower max_question_tokens",
            });
        }
        let threads = options.threads.unwrap_or_else(|| {
            let all = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
            all.min(MOST_THREADS)
        });
        if threads == 0 || threads > MOST_THREADS {
            let what = format!("threads is {threads} and may be 1 to {MOST_THREADS}");
            return Err(Error::InvalidArgument(what));
        }
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
            division,
            max_question_tokens: question,
        })
    }
}
