//! The worker: one thread that owns a model's context and answers the questions of all callers
//! with it. In each round every question in flight says what it needs next, and one decode serves
//! them together.
//!
//! It is written against [`LanguageModel`], so its tests need no model.

mod prefix;

use super::memory::Tenant;
use super::queue::{Outcome, Queue, Reply, Request, Waiting, copy, give_up};
use super::warm::WarmFile;
use crate::error::{Error, Result};
use crate::index::Index;
use crate::panics;
use crate::search::model::{Batch, LanguageModel, Seq};
use crate::search::{Hints, Room, Search};
use prefix::{Piece, Prefix};
use std::sync::Arc;
use std::time::Instant;

/// How a worker divides the model among questions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Division {
    /// Questions in flight at a time, if the context has room for all of them.
    pub parallel: usize,
    /// Room of each one's search.
    pub room: Room,
}

impl Division {
    /// Tokens of the context that a question of `tokens` may take until it is answered.
    pub fn cells(&self, tokens: usize) -> usize {
        tokens + self.room.tokens
    }
}

/// A question in flight.
struct Flight {
    request: Request,
    reply: Arc<Reply>,
    outcome: Outcome,
    started: Instant,
    phase: Phase,
    /// Number of tokens of prefix and question.
    after: u32,
}

/// Most questions in flight at which each evaluates ahead of its turn.
const FEW: usize = 3;

enum Phase {
    /// The question itself is to be decoded.
    Ask,
    /// The steps of the current plan from this one on are to be decoded.
    Search { next_step: usize },
    /// It ended with this error.
    Failed(Error),
}

/// What a row of logits belongs to.
#[derive(Clone, Copy)]
struct Origin {
    slot: usize,
    /// The step of the plan; `None` for the question and the opening after it.
    step: Option<usize>,
}

/// A worker and all its memory.
pub(crate) struct Worker<'a, M> {
    model: M,
    index: &'a Index,
    queue: &'a Queue,
    division: Division,
    prefix: Prefix<'a>,
    flights: Vec<Option<Flight>>,
    searches: Vec<Search>,
    batch: Batch,
    origins: Vec<Origin>,
    /// Questions that share the decode.
    in_flight: usize,
    /// Where the next round begins, so that a full batch leaves out another one each time.
    first: usize,
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
            prefix: Prefix::new(index.prefix()),
            flights: (0..division.parallel).map(|_| None).collect(),
            searches: (0..division.parallel).map(|_| Search::new()).collect(),
            batch: Batch::default(),
            origins: Vec::new(),
            in_flight: 0,
            first: 0,
            fresh: true,
            answered: false,
        }
    }

    /// Has the prefix read from `file` rather than decoded, or else written there.
    pub fn with_warm_file(mut self, file: Option<WarmFile>) -> Self {
        self.prefix.set_file(file);
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
                    self.prefix.keep(&mut self.model);
                }
            }
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
        self.prefix.finish_writing();
        left
    }

    /// Takes requests in as long as there is room for them, in the order in which they came; waits for
    /// one if none is in flight, and then there is room for any. False when the queue is closed, or when
    /// the worker is to leave and nobody is in flight.
    fn admit(&mut self) -> bool {
        while let Some(slot) = self.flights.iter().position(Option::is_none) {
            let idle = self.flights.iter().all(Option::is_none);
            let free = self.free_cells();
            let fits = |request: &Request| idle || self.cells(request) <= free;
            let Some(Waiting {
                request,
                reply,
                since,
            }) = self.queue.next(idle, self.fresh, fits)
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
            self.prefix.count(&mut outcome, since);
            self.flights[slot] = Some(Flight {
                request,
                reply,
                outcome,
                started: Instant::now(),
                phase: Phase::Ask,
                after: 0,
            });
        }
        self.fresh = false;
        !self.queue.is_closed()
            && (self.flights.iter().any(Option::is_some) || !self.queue.is_over())
    }

    /// Tokens that the context has room for beside the prefix and what is in flight.
    fn free_cells(&self) -> usize {
        let flights = self.flights.iter().flatten();
        let taken: usize = flights.map(|flight| self.cells(&flight.request)).sum();
        let context = self.model.capacity().context;
        context.saturating_sub(self.index.prefix().len() + taken)
    }

    fn cells(&self, request: &Request) -> usize {
        let question = request.question.as_ref();
        question.map_or(0, |question| self.division.cells(question.tokens.len()))
    }

    /// One decode for everybody, and what follows from it.
    fn round(&mut self) -> Result<()> {
        self.drop_given_up()?;
        if self.flights.iter().all(Option::is_none) {
            return Ok(());
        }
        if !self.prefix.is_whole() {
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
        if let Some(piece) = self.prefix.begin(&mut self.model) {
            self.count(&piece);
        }
        while !self.prefix.is_whole() {
            self.drop_given_up()?;
            // Not for those who wait for the next worker, if this one is to leave.
            let wanted = self.flights.iter().any(Option::is_some) || self.queue.will_admit();
            if self.queue.is_closed() || !wanted {
                return Ok(());
            }
            let piece = self.prefix.decode_next(&mut self.model, &mut self.batch)?;
            self.count(&piece);
        }
        for flight in self.flights.iter_mut().flatten() {
            flight.started = Instant::now();
        }
        Ok(())
    }

    /// Counts a piece of the prefix for everybody who is in flight.
    fn count(&mut self, piece: &Piece) {
        for flight in self.flights.iter_mut().flatten() {
            piece.count(&mut flight.outcome, piece.started);
        }
    }

    /// Collects what every question needs next, as far as it fits in one decode.
    fn fill_batch(&mut self) -> Result<()> {
        self.batch.clear();
        self.origins.clear();
        self.in_flight = self.flights.iter().flatten().count();
        let (first, count) = (self.first, self.flights.len());
        for slot in (0..count).map(|i| (first + i) % count) {
            self.collect(slot)?;
        }
        self.first = (first + 1) % count;
        Ok(())
    }

    fn collect(&mut self, slot: usize) -> Result<()> {
        let base = self.base(slot);
        let Some(flight) = &mut self.flights[slot] else {
            return Ok(());
        };
        let Some(question) = &flight.request.question else {
            return Ok(());
        };
        let capacity = self.model.capacity();
        let tokens = &question.tokens;
        let before = self.index.prefix().len() as u32;
        let after = before + tokens.len() as u32;
        flight.after = after;
        let search = &mut self.searches[slot];
        match &mut flight.phase {
            Phase::Ask => {
                // What is evaluated before its turn costs tokens when it was not wanted and saves a
                // decode when it was; and the more callers share a decode, the less it costs.
                let few = self.in_flight <= FEW;
                let hints = Hints {
                    prior: &question.prior,
                    drafts: &question.drafts,
                    expected: if few { &question.expected } else { &[] },
                };
                let spare = capacity.spare(tokens.len());
                let mut options = question.search;
                if !few {
                    options.width = 1;
                }
                let (trie, room) = (self.index.trie(), self.division.room);
                let plan = match search.start(trie, options, room, hints, spare) {
                    Ok(plan) => plan,
                    Err(error) => {
                        flight.phase = Phase::Failed(error);
                        return Ok(());
                    }
                };
                let more = plan.token_count();
                if !self.batch.has_room(capacity, tokens.len() + more, 1 + more) {
                    return Ok(());
                }
                for taken in 0..=plan.drafts {
                    self.model.fork(Seq::PREFIX, Seq(base.0 + taken), before)?;
                }
                self.batch
                    .push_opened(base, plan.drafts, before, tokens, &plan.opening);
                let origin = Origin { slot, step: None };
                self.origins.resize(self.batch.appends().len(), origin);
                for (number, step) in plan.steps.iter().enumerate() {
                    self.batch.push_shared(
                        Seq(base.0 + step.slot),
                        step.followers,
                        after + step.parent_depth,
                        plan.tokens(step),
                        step.first_row,
                    );
                    let step = Some(number);
                    self.origins.push(Origin { slot, step });
                }
                flight.outcome.question_tokens = tokens.len() as u32;
                flight.outcome.search_tokens += more as u32;
                flight.outcome.decodes += 1;
                let next_step = plan.steps.len();
                flight.phase = Phase::Search { next_step };
            }
            Phase::Search { next_step } => {
                let plan = search.current_plan();
                let before = *next_step;
                for (number, step) in plan.steps.iter().enumerate().skip(before) {
                    let tokens = plan.tokens(step);
                    let rows = tokens.len() - step.first_row;
                    if !self.batch.has_room(capacity, tokens.len(), rows) {
                        break;
                    }
                    let position = after + step.parent_depth;
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
            let result = match step {
                Some(step) => searches[slot].absorb(trie, step, logits),
                None => searches[slot].absorb_question(trie, logits),
            };
            // One question's trouble is not the others'.
            if let Err(error) = result {
                flight.phase = Phase::Failed(error);
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
                        let (parent, slot) = (Seq(base.0 + step.parent), Seq(base.0 + step.slot));
                        let length = flight.after + step.parent_depth;
                        self.model.fork(parent, slot, length)?;
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
            self.answered |= answer.is_ok();
            flight.reply.give(answer);
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
        self.prefix.lose();
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

#[cfg(all(test, feature = "building"))]
mod tests;
