//! The worker: one thread that owns a model's context and answers the questions of all callers
//! with it. In each round every question in flight says what it needs next, and one decode serves
//! them together.
//!
//! It is written against [`LanguageModel`], so its tests need no model.

use super::memory::Tenant;
use super::warm::WarmFile;
use crate::cancel::CancelToken;
use crate::error::{Error, Result};
use crate::index::Index;
use crate::panics;
use crate::pool::Pool;
use crate::search::model::{Batch, LanguageModel, Seq};
use crate::search::{Found, Room, Search, SearchOptions};
use parking_lot::{Condvar, Mutex};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often a waiting caller looks at its cancel token, which may be triggered from a signal
/// handler and so cannot wake it.
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

struct Waiting {
    request: Request,
    reply: Arc<Reply>,
    since: Instant,
}

/// Where the worker leaves the answer to one request.
#[derive(Default)]
struct Reply {
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
            let poll = Instant::now() + CANCEL_POLL;
            let until = deadline.map_or(poll, |deadline| deadline.min(poll));
            reply.given.wait_until(&mut answer, until);
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
    fn is_over(&self) -> bool {
        let state = self.state.lock();
        state.closed || state.leave
    }

    /// The next request; waits for one if `idle`. A worker that is to leave gets one only when it
    /// is `fresh`: it has admitted nobody yet.
    fn next(&self, idle: bool, fresh: bool) -> Option<Waiting> {
        let mut state = self.state.lock();
        loop {
            if state.closed {
                return None;
            }
            if (fresh || !state.leave)
                && let Some(next) = state.waiting.pop_front()
            {
                return Some(next);
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

    /// Whether somebody waits who is not in flight yet.
    fn has_waiting(&self) -> bool {
        !self.state.lock().waiting.is_empty()
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
    fn give(&self, answer: Result<Outcome>) {
        *self.answer.lock() = Some(answer);
        self.given.notify_all();
    }
}

/// The error of a caller who no longer waits.
fn give_up(cancel: &CancelToken, deadline: Option<Instant>, timeout_ms: u64) -> Result<()> {
    if cancel.is_triggered() {
        return Err(Error::Cancelled);
    }
    match deadline {
        Some(deadline) if Instant::now() >= deadline => Err(Error::Timeout { timeout_ms }),
        _ => Ok(()),
    }
}

/// How a worker divides the model among questions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Division {
    /// Questions in flight at a time.
    pub parallel: usize,
    /// Room of each one's search.
    pub room: Room,
}

/// A question in flight.
struct Flight {
    request: Request,
    reply: Arc<Reply>,
    outcome: Outcome,
    started: Instant,
    phase: Phase,
}

enum Phase {
    /// The question itself is to be decoded.
    Ask,
    /// The steps of the current plan from this one on are to be decoded.
    Search { next_step: usize },
    /// It ended with this error.
    Failed(Error),
}

/// One decode of a prefill, or the reading of a warm file.
struct Piece {
    tokens: u32,
    restored: bool,
    started: Instant,
    ended: Instant,
}

impl Piece {
    /// Counts it for a question that waited from `since` on.
    fn count(&self, outcome: &mut Outcome, since: Instant) {
        match self.restored {
            true => outcome.restored_tokens += self.tokens,
            false => outcome.prefix_tokens += self.tokens,
        }
        outcome.prefill += self.ended - self.started.max(since);
    }
}

/// A worker's warm file. It is read at most once and written at most once.
struct Warm {
    file: WarmFile,
    read: bool,
    /// It has what the model holds, or is being written, or cannot be.
    kept: bool,
    writer: Option<JoinHandle<()>>,
}

/// What a row of logits belongs to.
#[derive(Clone, Copy)]
struct Origin {
    slot: usize,
    /// The step of the plan; `None` for the question itself.
    step: Option<usize>,
}

/// A worker and all its memory.
pub(crate) struct Worker<'a, M> {
    model: M,
    index: &'a Index,
    queue: &'a Queue,
    division: Division,
    /// Tokens of the prefix that sequence 0 holds.
    prefilled: usize,
    /// The decodes that they took.
    pieces: Vec<Piece>,
    flights: Vec<Option<Flight>>,
    searches: Vec<Search>,
    batch: Batch,
    origins: Vec<Origin>,
    /// Where the next round begins, so that a full batch leaves out another one each time.
    first: usize,
    warm: Option<Warm>,
    /// Nobody was admitted yet. Who waits then is, even if the worker is to leave already: else two
    /// busy tenants would hand one seat to and fro, and neither would answer anybody.
    fresh: bool,
    /// Somebody has had an answer from the prefix.
    answered: bool,
}

impl<'a, M: LanguageModel> Worker<'a, M> {
    /// A worker for the questions in `queue`. All sequences of `model` are empty.
    pub fn new(model: M, index: &'a Index, queue: &'a Queue, division: Division) -> Self {
        Self {
            model,
            index,
            queue,
            division,
            prefilled: 0,
            pieces: Vec::new(),
            flights: (0..division.parallel).map(|_| None).collect(),
            searches: (0..division.parallel).map(|_| Search::new()).collect(),
            batch: Batch::default(),
            origins: Vec::new(),
            first: 0,
            warm: None,
            fresh: true,
            answered: false,
        }
    }

    /// Has the prefix read from `file` rather than decoded, or else written there.
    pub fn with_warm_file(mut self, file: Option<WarmFile>) -> Self {
        self.warm = file.map(|file| Warm {
            file,
            read: false,
            kept: false,
            writer: None,
        });
        self
    }

    /// Answers until the queue is closed, or until a panic, which is the answer to everybody from
    /// then on; or until the worker is told to [leave](Tenant::leave). True in this last case: then
    /// who waits goes on waiting, for another worker.
    pub fn run(&mut self) -> bool {
        let result = panics::catch(|| {
            while self.admit() {
                if let Err(error) = self.round() {
                    self.fail_all(&error);
                }
                if self.answered {
                    self.keep_prefix();
                }
            }
            self.keep_prefix();
        });
        let left = result.is_ok() && !self.queue.is_closed();
        let (error, panicked) = match result {
            Ok(()) => (Error::Closed, None),
            Err(error) => {
                let message = match &error {
                    Error::Panic(message) => message.clone(),
                    other => other.to_string(),
                };
                (error, Some(message))
            }
        };
        for flight in self.flights.iter_mut().filter_map(Option::take) {
            flight.reply.give(Err(copy(&error)));
        }
        if !left {
            self.queue.abandon(panicked);
        }
        if let Some(writer) = self.warm.as_mut().and_then(|warm| warm.writer.take()) {
            // Nothing comes back from it: what fails there was logged.
            let _ = writer.join();
        }
        left
    }

    /// Takes requests in as long as there is room for them; waits for one if none is in flight.
    /// False when the queue is closed, or when the worker is to leave and nobody is in flight.
    fn admit(&mut self) -> bool {
        while let Some(slot) = self.flights.iter().position(Option::is_none) {
            let idle = self.flights.iter().all(Option::is_none);
            let Some(Waiting {
                request,
                reply,
                since,
            }) = self.queue.next(idle, self.fresh)
            else {
                break;
            };
            let (cancel, deadline) = (&request.cancel, request.deadline);
            if let Err(error) = give_up(cancel, deadline, request.timeout_ms) {
                reply.give(Err(error));
                continue;
            }
            // It may have waited through a prefill that others began.
            let mut outcome = Outcome::default();
            for piece in self.pieces.iter().filter(|piece| piece.ended > since) {
                piece.count(&mut outcome, since);
            }
            self.flights[slot] = Some(Flight {
                request,
                reply,
                outcome,
                started: Instant::now(),
                phase: Phase::Ask,
            });
        }
        self.fresh = false;
        !self.queue.is_closed()
            && (self.flights.iter().any(Option::is_some) || !self.queue.is_over())
    }

    /// One decode for everybody, and what follows from it.
    fn round(&mut self) -> Result<()> {
        self.drop_given_up()?;
        if self.flights.iter().all(Option::is_none) {
            return Ok(());
        }
        if self.prefilled < self.index.prefix().len() {
            return self.prefill();
        }
        self.fill_batch()?;
        if !self.batch.is_empty() {
            self.decode()?;
        }
        self.settle()
    }

    /// Lets go of questions whose callers do not wait any more.
    fn drop_given_up(&mut self) -> Result<()> {
        for slot in 0..self.flights.len() {
            let Some(flight) = &self.flights[slot] else {
                continue;
            };
            let request = &flight.request;
            if let Err(error) = give_up(&request.cancel, request.deadline, request.timeout_ms) {
                self.finish(slot, Err(error))?;
            }
        }
        Ok(())
    }

    /// Decodes the prefix, in pieces of one batch, between which it looks whether anybody still
    /// waits for it. If nobody does, the next question finds what is done and goes on from there.
    fn prefill(&mut self) -> Result<()> {
        let index = self.index;
        let prefix = index.prefix();
        let piece_len = self.model.capacity().batch.max(1);
        if self.prefilled == 0 {
            self.pieces.clear();
            self.restore_prefix();
        }
        while self.prefilled < prefix.len() {
            self.drop_given_up()?;
            let wanted = self.flights.iter().any(Option::is_some) || self.queue.has_waiting();
            if self.queue.is_closed() || !wanted {
                return Ok(());
            }
            let started = Instant::now();
            let end = prefix.len().min(self.prefilled + piece_len);
            let piece = &prefix[self.prefilled..end];
            self.batch.clear();
            self.batch
                .push(Seq::PREFIX, self.prefilled as u32, piece, piece.len());
            self.model.decode(&self.batch, &mut |_, _| Ok(()))?;
            let tokens = piece.len() as u32;
            self.advance(tokens, false, started);
        }
        for flight in self.flights.iter_mut().flatten() {
            flight.started = Instant::now();
        }
        Ok(())
    }

    /// Counts tokens that the prefix has got since `started`.
    fn advance(&mut self, tokens: u32, restored: bool, started: Instant) {
        self.prefilled += tokens as usize;
        let piece = Piece {
            tokens,
            restored,
            started,
            ended: Instant::now(),
        };
        for flight in self.flights.iter_mut().flatten() {
            piece.count(&mut flight.outcome, started);
        }
        self.pieces.push(piece);
    }

    /// Takes the prefix out of the warm file, if there is one and the model takes it.
    fn restore_prefix(&mut self) {
        // Not again after a decode that failed: what the file holds may be the reason.
        let Some(warm) = self.warm.as_mut().filter(|warm| !warm.read) else {
            return;
        };
        warm.read = true;
        let started = Instant::now();
        let Some(state) = warm.file.read() else {
            return;
        };
        let tokens = self.index.prefix().len() as u32;
        match self.model.set_state(Seq::PREFIX, &state, tokens) {
            Ok(()) => {
                warm.kept = true;
                self.advance(tokens, true, started);
            }
            Err(error) => warm.file.refused(&error),
        }
    }

    /// Has the prefix written to the warm file, once it is whole and unless it came from there.
    fn keep_prefix(&mut self) {
        let whole = self.prefilled == self.index.prefix().len();
        let Some(warm) = self.warm.as_mut().filter(|warm| whole && !warm.kept) else {
            return;
        };
        warm.kept = true;
        if let Some(writer) = warm.writer.take() {
            // It has had a prefill's time, and who ends waits for one writer only.
            let _ = writer.join();
        }
        match self.model.state(Seq::PREFIX) {
            Ok(state) => warm.writer = warm.file.write_aside(state),
            Err(error) => warm.file.not_kept(&error),
        }
    }

    /// Collects what every question needs next, as far as it fits in one decode.
    fn fill_batch(&mut self) -> Result<()> {
        self.batch.clear();
        self.origins.clear();
        let (first, count) = (self.first, self.flights.len());
        for slot in (0..count).map(|i| (first + i) % count) {
            self.collect(slot)?;
        }
        self.first = (first + 1) % count;
        Ok(())
    }

    fn collect(&mut self, slot: usize) -> Result<()> {
        let capacity = self.model.capacity();
        let base = self.base(slot);
        let prefix_len = self.index.prefix().len() as u32;
        let Some(flight) = &mut self.flights[slot] else {
            return Ok(());
        };
        let Some(Question {
            tokens: question, ..
        }) = flight.request.question.as_deref()
        else {
            return Ok(());
        };
        match &mut flight.phase {
            Phase::Ask => {
                if self.batch.has_room(capacity, question.len(), 1) {
                    self.model.fork(Seq::PREFIX, base)?;
                    self.batch
                        .push(base, prefix_len, question, question.len() - 1);
                    self.origins.push(Origin { slot, step: None });
                    flight.outcome.question_tokens = question.len() as u32;
                    flight.outcome.decodes += 1;
                }
            }
            Phase::Search { next_step } => {
                let plan = self.searches[slot].current_plan();
                let before = *next_step;
                for (number, step) in plan.steps.iter().enumerate().skip(before) {
                    let tokens = plan.tokens(step);
                    let rows = tokens.len() - step.first_row;
                    if !self.batch.has_room(capacity, tokens.len(), rows) {
                        break;
                    }
                    let position = prefix_len + question.len() as u32 + step.parent_depth;
                    let seq = Seq(base.0 + step.slot);
                    self.batch.push(seq, position, tokens, step.first_row);
                    let step = Some(number);
                    self.origins.push(Origin { slot, step });
                    flight.outcome.search_tokens += tokens.len() as u32;
                    *next_step = number + 1;
                }
                flight.outcome.decodes += u32::from(*next_step > before);
            }
            Phase::Failed(_) => (),
        }
        Ok(())
    }

    /// Decodes the batch and gives every row to the search that it belongs to.
    fn decode(&mut self) -> Result<()> {
        let Self {
            model,
            index,
            division,
            flights,
            searches,
            batch,
            origins,
            ..
        } = self;
        let trie = index.trie();
        model.decode(batch, &mut |append, logits| {
            let Origin { slot, step } = origins[append];
            let Some(flight) = &mut flights[slot] else {
                return Ok(());
            };
            let result = match (step, flight.request.question.as_deref()) {
                (Some(step), _) => searches[slot].absorb(trie, step, logits),
                (None, Some(question)) => {
                    let Question { search, prior, .. } = question;
                    searches[slot].start(trie, *search, division.room, prior, logits)
                }
                (None, None) => Ok(()),
            };
            // One question's trouble is not the others'.
            if let Err(error) = result {
                flight.phase = Phase::Failed(error);
            } else if step.is_none() {
                // The plan of a search that just began is empty: it is time for the first.
                flight.phase = Phase::Search { next_step: 0 };
            }
            Ok(())
        })
    }

    /// Answers what is finished and plans on for the rest.
    fn settle(&mut self) -> Result<()> {
        let trie = self.index.trie();
        for slot in 0..self.flights.len() {
            let base = self.base(slot);
            let Some(flight) = &mut self.flights[slot] else {
                continue;
            };
            if flight.request.question.is_none() {
                let outcome = flight.outcome.clone();
                self.finish(slot, Ok(outcome))?;
                continue;
            }
            match std::mem::replace(&mut flight.phase, Phase::Ask) {
                Phase::Ask => (),
                Phase::Failed(error) => self.finish(slot, Err(error))?,
                Phase::Search { next_step } => {
                    let search = &mut self.searches[slot];
                    if next_step < search.current_plan().steps.len() {
                        flight.phase = Phase::Search { next_step };
                        continue;
                    }
                    let plan = match search.plan(trie) {
                        Ok(plan) => plan,
                        Err(error) => {
                            self.finish(slot, Err(error))?;
                            continue;
                        }
                    };
                    for &cleared in &plan.cleared {
                        self.model.clear(Seq(base.0 + cleared))?;
                    }
                    for step in plan.steps.iter().filter(|step| step.slot != step.parent) {
                        self.model
                            .fork(Seq(base.0 + step.parent), Seq(base.0 + step.slot))?;
                    }
                    if plan.steps.is_empty() {
                        let mut outcome = std::mem::take(&mut flight.outcome);
                        outcome.found = search.found().into();
                        outcome.search = flight.started.elapsed();
                        self.finish(slot, Ok(outcome))?;
                    } else {
                        flight.phase = Phase::Search { next_step: 0 };
                    }
                }
            }
        }
        Ok(())
    }

    /// Answers the question in `slot` and empties its sequences.
    fn finish(&mut self, slot: usize, answer: Result<Outcome>) -> Result<()> {
        if let Some(flight) = self.flights[slot].take() {
            flight.reply.give(answer);
            self.answered = true;
        }
        let base = self.base(slot).0;
        (base..base + self.division.room.states as u16)
            .try_for_each(|seq| self.model.clear(Seq(seq)))
    }

    /// Answers everybody in flight with `error`. The model may hold anything now, so it starts
    /// anew.
    fn fail_all(&mut self, error: &Error) {
        for flight in self.flights.iter_mut().filter_map(Option::take) {
            flight.reply.give(Err(copy(error)));
        }
        self.prefilled = 0;
        if let Some(warm) = &mut self.warm {
            // What is decoded now is better than what may have been the reason.
            warm.kept = false;
        }
        for seq in 0..self.model.capacity().sequences {
            // A sequence that cannot be emptied shows as an error at its next use.
            let _ = self.model.clear(Seq(seq));
        }
    }

    /// The first of the sequences of the question in `slot`, which holds the question itself.
    fn base(&self, slot: usize) -> Seq {
        Seq(1 + (slot * self.division.room.states) as u16)
    }
}

/// The same error for everybody whom it concerns.
fn copy(error: &Error) -> Error {
    match error {
        Error::Closed => Error::Closed,
        Error::Panic(message) => Error::Panic(message.clone()),
        Error::Internal(what) => Error::Internal(what.clone()),
        Error::Decode(what) => Error::Decode(what.clone()),
        Error::OutOfMemory(what) => Error::OutOfMemory(what.clone()),
        other => Error::Decode(other.to_string()),
    }
}

#[cfg(all(test, feature = "building"))]
mod tests;
