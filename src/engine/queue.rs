//! The queue: where callers leave their questions and wait for the answers. Everybody may ask at
//! any time; one worker takes the questions out.

use super::memory::Tenant;
use crate::cancel::CancelToken;
use crate::error::{Error, Result};
use crate::pool::Pool;
use crate::search::{Found, SearchOptions};
use parking_lot::{Condvar, Mutex};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a waiting caller looks at its cancel token, which may be triggered from a signal
/// handler and so cannot wake it. One without such a token only wakes for its answer or its deadline.
const CANCEL_POLL: Duration = Duration::from_millis(5);

/// A question for the worker.
pub(crate) struct Request {
    /// What to find; `None` only to have the prefix decoded.
    pub question: Option<Arc<Question>>,
    pub cancel: CancelToken,
    pub deadline: Option<Instant>,
    pub timeout_ms: u64,
}

/// What to find. Its memory is used again for another question, once caller and worker let go of it.
#[derive(Clone)]
pub(crate) struct Question {
    /// What the tokens were made of.
    pub text: String,
    /// The question with the template's own tokens around it; at least one.
    pub tokens: Vec<u32>,
    pub search: SearchOptions,
    /// What is added to the score of each section's title, by section id; empty for nothing.
    pub prior: Vec<f32>,
    /// How likely each section is by its words; see [`crate::search::Hints::expected`].
    pub expected: Vec<f32>,
    /// Sections whose titles are worth evaluating with the question, the likeliest first.
    pub drafts: Vec<u32>,
}

/// What the worker found, and what it cost.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcome {
    /// As many as are asked for by default are in place, and allocate nothing.
    pub found: SmallVec<[Found; 3]>,
    /// Decodes that this question had a part in, its own first.
    pub decodes: u32,
    pub question_tokens: u32,
    /// Tokens that the search evaluated.
    pub search_tokens: u32,
    /// Tokens of the prefix that were decoded while this question waited.
    pub prefix_tokens: u32,
    /// Tokens of the prefix that came out of the warm file while this question waited.
    pub restored_tokens: u32,
    /// Time for the prefix, decoded or restored.
    pub prefill: Duration,
    pub search: Duration,
}

/// Where callers leave requests for the worker.
pub(crate) struct Queue {
    state: Mutex<QueueState>,
    arrived: Condvar,
    /// Most requests that wait.
    most_waiting: usize,
    replies: Pool<Reply>,
}

struct QueueState {
    waiting: VecDeque<Waiting>,
    closed: bool,
    /// The worker is to end for now, as soon as nobody is in flight: its memory is needed.
    leave: bool,
    last_asked: Instant,
    /// The message of the worker's panic: it answers no more.
    panicked: Option<String>,
}

pub(super) struct Waiting {
    pub request: Request,
    pub reply: Arc<Reply>,
    pub since: Instant,
}

/// Where the worker leaves the answer to one request.
#[derive(Default)]
pub(super) struct Reply {
    answer: Mutex<Option<Result<Outcome>>>,
    given: Condvar,
}

impl Queue {
    /// A queue for at most `most_waiting` requests that are not in flight yet.
    pub fn new(most_waiting: usize) -> Self {
        Self {
            state: Mutex::new(QueueState {
                waiting: VecDeque::new(),
                closed: false,
                leave: false,
                last_asked: Instant::now(),
                panicked: None,
            }),
            arrived: Condvar::new(),
            most_waiting,
            replies: Pool::new(),
        }
    }

    /// Leaves `request` and waits for the answer.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] at once when too many wait already; [`Error::Cancelled`],
    /// [`Error::Timeout`], [`Error::Closed`], and what the worker says.
    pub fn ask(&self, request: Request) -> Result<Outcome> {
        let (cancel, deadline, timeout_ms) =
            (request.cancel.clone(), request.deadline, request.timeout_ms);
        let reply = self.replies.take().unwrap_or_default();
        {
            let mut state = self.state.lock();
            if state.closed {
                return Err(state.why_closed());
            }
            if state.waiting.len() >= self.most_waiting {
                return Err(Error::Busy {
                    waiting: state.waiting.len(),
                    max: self.most_waiting,
                });
            }
            let since = Instant::now();
            state.last_asked = since;
            state.waiting.push_back(Waiting {
                request,
                reply: Arc::clone(&reply),
                since,
            });
        }
        self.arrived.notify_one();
        let mut answer = reply.answer.lock();
        loop {
            if let Some(given) = answer.take() {
                drop(answer);
                self.replies.give_back(reply);
                return given;
            }
            // The worker notices both too; a caller does not wait for its current decode.
            if let Err(error) = give_up(&cancel, deadline, timeout_ms) {
                // `abandon` takes the two locks in the other order.
                drop(answer);
                self.forget(&reply);
                return Err(error);
            }
            let poll = cancel
                .can_be_triggered()
                .then(|| Instant::now() + CANCEL_POLL);
            match [poll, deadline].into_iter().flatten().min() {
                Some(until) => drop(reply.given.wait_until(&mut answer, until)),
                None => reply.given.wait(&mut answer),
            }
        }
    }

    /// Takes out the request of a caller who is gone, if it is not in flight: it would count as
    /// waiting, and have a prefix decoded or a context made for nobody.
    fn forget(&self, reply: &Arc<Reply>) {
        let mut state = self.state.lock();
        state
            .waiting
            .retain(|other| !Arc::ptr_eq(&other.reply, reply));
    }

    /// Refuses new requests and has the worker end; those in flight get [`Error::Closed`].
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.arrived.notify_all();
    }

    /// Waits until there is a request, for a worker that is to begin anew; false when the queue
    /// is closed.
    pub fn wait(&self) -> bool {
        let mut state = self.state.lock();
        while !state.closed && state.waiting.is_empty() {
            self.arrived.wait(&mut state);
        }
        !state.closed
    }

    /// Takes back that the worker is to leave.
    pub fn stay(&self) {
        self.state.lock().leave = false;
    }

    /// Answers everybody who waits now with `error`.
    pub fn refuse(&self, error: &Error) {
        let waiting = std::mem::take(&mut self.state.lock().waiting);
        for waiting in waiting {
            waiting.reply.give(Err(copy(error)));
        }
    }

    /// Whether a worker without anybody in flight is to end.
    pub(super) fn is_over(&self) -> bool {
        let state = self.state.lock();
        state.closed || state.leave
    }

    /// The next request; waits for one if `idle`. None if it does not fit: nobody overtakes it. A
    /// worker that is to leave gets one only when it is `fresh`: it has admitted nobody yet.
    pub(super) fn next(
        &self,
        idle: bool,
        fresh: bool,
        fits: impl Fn(&Request) -> bool,
    ) -> Option<Waiting> {
        let mut state = self.state.lock();
        loop {
            if state.closed {
                return None;
            }
            if (fresh || !state.leave)
                && let Some(next) = state.waiting.front()
            {
                return match fits(&next.request) {
                    true => state.waiting.pop_front(),
                    false => None,
                };
            }
            if state.leave || !idle {
                return None;
            }
            self.arrived.wait(&mut state);
        }
    }

    /// Answers everybody who still waits; nobody is left to do it once the worker has ended.
    pub fn abandon(&self, panicked: Option<String>) {
        let mut state = self.state.lock();
        state.closed = true;
        state.panicked = panicked;
        while let Some(waiting) = state.waiting.pop_front() {
            waiting.reply.give(Err(state.why_closed()));
        }
    }

    /// Whether somebody waits whom a worker that has admitted others before would still admit.
    pub(super) fn will_admit(&self) -> bool {
        let state = self.state.lock();
        !state.closed && !state.leave && !state.waiting.is_empty()
    }

    /// Whether somebody waits who is not in flight yet.
    pub(super) fn has_waiting(&self) -> bool {
        !self.state.lock().waiting.is_empty()
    }

    #[cfg(test)]
    pub(super) fn count_waiting(&self) -> usize {
        self.state.lock().waiting.len()
    }
}

impl Tenant for Queue {
    fn leave(&self) {
        self.state.lock().leave = true;
        self.arrived.notify_all();
    }

    fn last_asked(&self) -> Instant {
        self.state.lock().last_asked
    }

    fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    fn is_wanted(&self) -> bool {
        self.has_waiting()
    }
}

impl QueueState {
    fn why_closed(&self) -> Error {
        match &self.panicked {
            Some(message) => Error::Panic(message.clone()),
            None => Error::Closed,
        }
    }
}

impl Reply {
    pub(super) fn give(&self, answer: Result<Outcome>) {
        *self.answer.lock() = Some(answer);
        self.given.notify_all();
    }
}

/// The error of a caller who no longer waits.
pub(super) fn give_up(
    cancel: &CancelToken,
    deadline: Option<Instant>,
    timeout_ms: u64,
) -> Result<()> {
    if cancel.is_triggered() {
        return Err(Error::Cancelled);
    }
    match deadline {
        Some(deadline) if Instant::now() >= deadline => Err(Error::Timeout { timeout_ms }),
        _ => Ok(()),
    }
}

/// The same error for everybody whom it concerns.
pub(super) fn copy(error: &Error) -> Error {
    match error {
        Error::Closed => Error::Closed,
        Error::Panic(message) => Error::Panic(message.clone()),
        Error::Internal(what) => Error::Internal(what.clone()),
        Error::Decode(what) => Error::Decode(what.clone()),
        Error::OutOfMemory(what) => Error::OutOfMemory(what.clone()),
        other => Error::Decode(other.to_string()),
    }
}
