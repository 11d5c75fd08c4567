//! Exact best-first search for the k most probable titles.
//!
//! The score of a title is the sum of the log-probabilities of its tokens, terminator included.
//! Log-probabilities are never positive, so what a beginning has scored bounds every title that
//! begins so. The search always evaluates the most promising beginnings first and stops when k
//! finished titles are ahead of every beginning that is left: no other title can overtake them,
//! and no beam was needed.
//!
//! Other evidence may have a say: a *prior* is a number for each section that is added to the
//! score of its title. A beginning is then bounded by what it has scored and the largest prior of
//! the titles that begin so, and the search is as exact as before.
//!
//! The tokens that every title begins with are evaluated with the question, and so are *drafts*, the
//! titles that the caller expects to be wanted: what they show is known when the search begins.
//!
//! [`Search`] decides what to evaluate and [`LanguageModel`](model::LanguageModel) evaluates it;
//! between them stands [`top_k`], or the engine's worker, which shares a decode among the searches
//! of several callers.

mod drafts;
mod frontier;
pub mod logits;
pub mod model;
mod outlook;
mod plan;
mod prior;
mod ranking;
mod states;
mod top_k;
mod walk;

use crate::error::{Error, Result};
use crate::index::trie::{NodeId, Trie};
use drafts::Drafts;
use frontier::{Beginning, Frontier};
use logits::log_sum_exp;
use outlook::Outlook;
pub use plan::{Plan, Step};
use prior::Prior;
use ranking::Ranking;
use states::States;
pub use top_k::top_k;
use walk::Walk;

/// How titles are scored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scoring {
    /// Under the full softmax: what the model really thinks of each title.
    #[default]
    Exact,
    /// Renormalised over the tokens that are legal at each step. Tokens without an alternative
    /// are free, so it decodes less; but titles of different chapters no longer compare fairly.
    Local,
}

/// How a search goes.
#[derive(Debug, Clone, Copy)]
pub struct SearchOptions {
    /// Number of titles to find; at least 1.
    pub k: usize,
    /// How titles are scored.
    pub scoring: Scoring,
    /// Number of beginnings to evaluate together in one decode, beside those that lead to likely
    /// titles ([`Hints::expected`]); at least 1.
    pub width: usize,
}

/// What a search may hold at a time. Within it every search ends with the exact answer; with less
/// room it only evaluates more tokens again.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// Number of states, the question's own included; at least 3. Each step of a plan takes up to
    /// two, so with fewer than `2 * width + 1` a plan may have fewer steps.
    pub states: usize,
    /// Number of tokens over all states but the question's; at least twice the longest title.
    pub tokens: usize,
}

/// What a search may take for granted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hints<'a> {
    /// What is added to the score of each section's title, by section id; 0 for sections that it is
    /// too short for, so an empty one adds nothing and costs nothing.
    pub prior: &'a [f32],
    /// Sections whose titles are evaluated with the question, the likeliest first. They change what
    /// an answer costs and not what it is; logits that are not numbers fail it there too.
    pub drafts: &'a [u32],
    /// How likely each section is by other evidence, by section id: logarithms, up to a constant. With
    /// it a search follows likely titles to their ends before it is their turn. It changes what an
    /// answer costs and not what it is; an empty one says nothing.
    pub expected: &'a [f32],
}

/// A finished title.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// The section.
    pub section: u32,
    /// What it is ranked by: `log_prob`, and the section's prior if there is one.
    pub score: f64,
    /// Natural logarithm of its probability (under [`Scoring::Exact`] the true one).
    pub log_prob: f64,
    /// Natural logarithm of the mass on legal tokens along its path.
    pub log_legal: f64,
}

/// One search: a state machine that says what to evaluate next and takes in the logits. All its
/// memory is kept from one search to the next.
#[derive(Debug)]
pub struct Search {
    options: SearchOptions,
    room: Room,
    prior: Prior,
    outlook: Outlook,
    frontier: Frontier,
    states: States,
    ranking: Ranking,
    drafts: Drafts,
    opened: Opened,
    plan: Plan,
    /// For each step of the plan, how far its rows have come.
    walks: Vec<Walk>,
    /// The best beginnings, while a plan is made.
    considered: Vec<Considered>,
}

/// A beginning that a plan may evaluate.
#[derive(Debug, Clone, Copy)]
struct Considered {
    beginning: Beginning,
    /// The score that the likeliest title below it will probably have.
    expected: f64,
}

/// How far the rows of question and opening have come.
#[derive(Debug, Clone, Copy)]
struct Opened {
    rows: usize,
    /// The node after the whole opening.
    node: NodeId,
    log_prob: f64,
}

impl Default for Search {
    fn default() -> Self {
        Self::new()
    }
}

impl Search {
    /// An idle search; call [`Search::start`].
    pub fn new() -> Self {
        Self {
            options: SearchOptions {
                k: 1,
                scoring: Scoring::Exact,
                width: 1,
            },
            room: Room {
                states: 3,
                tokens: usize::MAX,
            },
            prior: Prior::default(),
            outlook: Outlook::default(),
            frontier: Frontier::default(),
            states: States::default(),
            ranking: Ranking::default(),
            drafts: Drafts::default(),
            opened: Opened {
                rows: 0,
                node: NodeId::ROOT,
                log_prob: 0.0,
            },
            plan: Plan::default(),
            walks: Vec::new(),
            considered: Vec::new(),
        }
    }

    /// Starts over. The plan is for the question's own decode, which has room for `spare` tokens and
    /// rows beside it: the question and the opening go to slot 0, the logits after the question's
    /// last token and after each of the opening's are given to [`Search::absorb_question`], and
    /// those of the steps then to [`Search::absorb`]. All slots are empty before.
    ///
    /// # Errors
    ///
    /// [`Error::Internal`] for a prior that is not finite.
    pub fn start(
        &mut self,
        trie: Trie<'_>,
        options: SearchOptions,
        room: Room,
        hints: Hints<'_>,
        spare: usize,
    ) -> Result<&Plan> {
        self.prior.set(trie, hints.prior)?;
        self.options = options;
        self.room = room;
        self.frontier.clear();
        self.ranking.clear(options.k);
        self.plan.clear();
        self.walks.clear();
        self.drafts.clear();
        let mut node = NodeId::ROOT;
        // Local scores cost nothing where there is no choice.
        let exact = options.scoring == Scoring::Exact;
        let expected = if exact { hints.expected } else { &[] };
        self.outlook.set(trie, expected);
        while let Some((token, child)) = trie.only_child(node) {
            if !exact || trie.section(child).is_some() || self.plan.opening.len() == spare {
                break;
            }
            self.plan.opening.push(token);
            node = child;
        }
        self.opened = Opened {
            rows: 0,
            node,
            log_prob: 0.0,
        };
        let opening = self.plan.opening.len();
        self.states.clear(opening as u32);
        if exact && !hints.drafts.is_empty() {
            self.drafts.plan(
                trie,
                node,
                hints.drafts,
                (room, spare - opening),
                &mut self.states,
                (&mut self.plan, &mut self.walks),
            );
        }
        Ok(&self.plan)
    }

    /// Takes in the logits after the question, then those after each token of the opening.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`] for logits that are not numbers; [`Error::Internal`] for a row that was
    /// not asked for.
    pub fn absorb_question(&mut self, trie: Trie<'_>, logits: &[f32]) -> Result<()> {
        let row = self.opened.rows;
        self.opened.rows += 1;
        match self.plan.opening.get(row) {
            Some(&token) => {
                self.opened.log_prob += log_prob(logits, token, log_sum_exp(logits)?)?;
                Ok(())
            }
            None if row == self.plan.opening.len() => {
                // Only this token was legal each time.
                let Opened { node, log_prob, .. } = self.opened;
                self.branch(trie, States::ROOT, node, (log_prob, log_prob), logits)
            }
            None => Err(unasked()),
        }
    }

    /// What to evaluate next; with no steps the search is over. Every row that a plan asks for
    /// must be given to [`Search::absorb`] before the next plan.
    ///
    /// # Errors
    ///
    /// [`Error::Internal`] when there is less room than [`Room`] asks for.
    pub fn plan(&mut self, trie: Trie<'_>) -> Result<&Plan> {
        self.plan.clear();
        self.walks.clear();
        self.states.sweep(&mut self.plan.cleared);
        let least = self.consider(trie);
        let is_over = self.considered.is_empty();
        let mut has_room = true;
        let mut rank = 0;
        // Whose turn has not come yet stays where `evict` sees it.
        self.considered.reverse();
        while let Some(Considered {
            beginning,
            expected,
        }) = self.considered.pop()
        {
            let ahead = self.outlook.is_known() && expected >= least;
            let due = rank < self.options.width.max(1) || ahead;
            has_room = has_room && (!due || self.evaluate(trie, beginning, ahead));
            if !due || !has_room {
                self.frontier.push(beginning);
            }
            rank += 1;
        }
        match self.walks.is_empty() && !is_over {
            true => Err(Error::Internal(
                "a search has no room for one title".to_owned(),
            )),
            false => Ok(&self.plan),
        }
    }

    /// Takes the best beginnings out of the frontier. Returns the score that the last of the best
    /// titles will probably have: what is expected to score less is left for later.
    fn consider(&mut self, trie: Trie<'_>) -> f64 {
        let most = match self.outlook.is_known() {
            true => CONSIDERED.max(self.options.width),
            false => self.options.width.max(1),
        };
        while self.considered.len() < most
            && let Some(beginning) = self.frontier.pop_at_least(self.ranking.bound())
        {
            let expected = match self.outlook.title_below(trie, beginning.node) {
                Some((end, share)) => beginning.log_prob + share + self.prior.best_below(end),
                None => f64::NEG_INFINITY,
            };
            self.considered.push(Considered {
                beginning,
                expected,
            });
        }
        let better = |score: f64| {
            let expected = self.considered.iter().map(|considered| considered.expected);
            let found = self.ranking.best().iter().map(|found| found.score);
            expected.chain(found).filter(|&other| other > score).count()
        };
        let expected = self.considered.iter().map(|considered| considered.expected);
        expected
            .filter(|&score| better(score) < self.options.k)
            .fold(f64::INFINITY, f64::min)
    }

    /// The plan that was made last.
    pub fn current_plan(&self) -> &Plan {
        &self.plan
    }

    /// Takes in the logits after a token of step `step` of the last plan; rows of one step come in
    /// order.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`] for logits that are not numbers; [`Error::Internal`] for a row that was
    /// not asked for.
    pub fn absorb(&mut self, trie: Trie<'_>, step: usize, logits: &[f32]) -> Result<()> {
        let Some(walk) = self.walks.get_mut(step) else {
            return Err(unasked());
        };
        let Some(row) = walk.rows.next() else {
            return Err(unasked());
        };
        let next = (!walk.rows.is_empty()).then(|| self.plan.tokens[row + 1]);
        if row == walk.chain && walk.beginning.is_none() {
            // Evaluated before its turn: from now on as if it had been that.
            walk.beginning = self.frontier.take(walk.node);
            if let Some(beginning) = &walk.beginning {
                self.states.remove_child(beginning.state);
            }
        }
        let node = walk.node;
        if let (Some(next), Some((token, child))) = (next, trie.only_child(node))
            && next == token
        {
            // Inside a chain: the next token is certain to the trie, but not to the model.
            if let Some(beginning) = &mut walk.beginning {
                let log_prob = log_prob(logits, token, log_sum_exp(logits)?)?;
                beginning.log_prob += log_prob;
                beginning.legal += log_prob;
            }
            walk.node = child;
            return Ok(());
        }
        let chain = walk.chain..row + 1;
        walk.chain = row + 1;
        if let Some(child) = next.and_then(|next| trie.child(node, next)) {
            walk.node = child;
        }
        let (slot, beginning) = (walk.slot, walk.beginning.take());
        let Some(beginning) = beginning else {
            return Ok(());
        };
        let tokens = &self.plan.tokens[chain];
        let state = self.states.push(beginning.state, slot, tokens);
        let scored = (beginning.log_prob, beginning.legal);
        self.branch(trie, state, node, scored, logits)?;
        self.states.leave_if_childless(state);
        Ok(())
    }

    /// The best titles so far, best first; final when a plan has no steps.
    pub fn found(&self) -> &[Found] {
        self.ranking.best()
    }

    /// Scores the children of `node`, whose state is `state`, with the logits after it.
    fn branch(
        &mut self,
        trie: Trie<'_>,
        state: u32,
        node: NodeId,
        (before, legal): (f64, f64),
        logits: &[f32],
    ) -> Result<()> {
        let all = log_sum_exp(logits)?;
        let mut mass = 0.0;
        for (token, _) in trie.children(node) {
            mass += log_prob(logits, token, all)?.exp();
        }
        let mass = mass.ln().min(0.0);
        for (token, child) in trie.children(node) {
            let global = log_prob(logits, token, all)?;
            let step = match self.options.scoring {
                Scoring::Exact => global,
                // When no legal token is possible at all, nothing tells them apart.
                Scoring::Local if mass == f64::NEG_INFINITY => mass,
                // Rounding must not lift a title above its own beginning: the bound would lie.
                Scoring::Local => (global - mass).min(0.0),
            };
            let log_prob = before + step;
            // For the one title below `child`, if it is only one, this is its score.
            let bound = log_prob + self.prior.best_below(child);
            if bound < self.ranking.bound() {
                continue;
            }
            let title = match self.options.scoring {
                Scoring::Exact => trie.section(child),
                Scoring::Local => only_title(trie, child),
            };
            if let Some(section) = title {
                self.ranking.insert(Found {
                    section,
                    score: bound,
                    log_prob,
                    log_legal: legal + mass,
                });
            } else {
                self.states.add_child(state);
                self.frontier.push(Beginning {
                    bound,
                    log_prob,
                    legal: legal + mass,
                    node: child,
                    token,
                    state,
                });
            }
        }
        Ok(())
    }

    /// Plans to evaluate `beginning` together with the chain that follows it, or, `ahead` of what
    /// this shows, with the way to the likeliest title below; false when there is no room for it in
    /// this plan.
    fn evaluate(&mut self, trie: Trie<'_>, beginning: Beginning, ahead: bool) -> bool {
        let Beginning {
            node, token, state, ..
        } = beginning;
        let start = self.plan.tokens.len();
        let parent = self.states.nearest_live(state);
        self.states
            .tokens_between(parent, state, &mut self.plan.tokens);
        let chain = self.plan.tokens.len();
        self.plan.tokens.push(token);
        let mut last = node;
        loop {
            let next = trie.only_child(last);
            let next = next.filter(|(_, child)| trie.section(*child).is_none());
            let likely = || self.outlook.step(trie, node, last).filter(|_| ahead);
            let Some((token, child)) = next.or_else(likely) else {
                break;
            };
            self.plan.tokens.push(token);
            last = child;
        }
        let tokens = start..self.plan.tokens.len();
        let more = tokens.end - chain;

        let parent_depth = self.states.depth(parent);
        let parent_slot = self.states.slot(parent).unwrap_or_default();
        // The last child of a state at a slot's end needs no copy of it: the slot just grows.
        let grows = parent == state
            && self.states.is_end_of_slot(state)
            && self.states.children(state) == 1;
        let depth = self.states.depth(state) as usize + more;
        let slot = match self.make_room(if grows { more } else { depth }, parent_slot) {
            false => None,
            true if grows => Some(parent_slot),
            true => self.find_slot(depth as u32, parent_slot),
        };
        let Some(slot) = slot else {
            self.plan.tokens.truncate(start);
            return false;
        };
        if grows {
            self.states.grow(slot, more);
        }
        self.states.remove_child(state);
        let (first_row, node) = match self.options.scoring {
            Scoring::Exact => (chain, node),
            // Only the chain's last token has alternatives after it.
            Scoring::Local => (tokens.end - 1, last),
        };
        self.walks.push(Walk {
            rows: first_row..tokens.end,
            chain,
            node,
            slot,
            beginning: Some(beginning),
        });
        self.plan.steps.push(Step {
            slot,
            followers: 0,
            parent: parent_slot,
            parent_depth,
            first_row: first_row - start,
            tokens,
        });
        true
    }

    /// A slot for `len` tokens that continue what is in slot `parent`.
    fn find_slot(&mut self, len: u32, parent: u16) -> Option<u16> {
        loop {
            if let Some(slot) = self.states.take_slot(self.room.states, len) {
                return Some(slot);
            }
            if !self.evict(parent) {
                return None;
            }
        }
    }

    /// Makes room for `added` tokens; false when there is none.
    fn make_room(&mut self, added: usize, parent: u16) -> bool {
        while self.states.live_tokens() + added > self.room.tokens {
            if !self.evict(parent) {
                return false;
            }
        }
        true
    }

    /// Lets the slot give way whose beginnings are least promising; should their turn come after
    /// all, its tokens are evaluated again. Slots that this plan uses stay.
    fn evict(&mut self, parent: u16) -> bool {
        let steps = &self.plan.steps;
        let busy =
            |slot| slot == parent || steps.iter().any(|s| s.slot == slot || s.parent == slot);
        let considered = self
            .considered
            .iter()
            .map(|considered| considered.beginning);
        let left = self.frontier.iter().copied().chain(considered);
        let Some(slot) = self.states.worst(left, busy) else {
            return false;
        };
        self.states.evict(slot);
        self.plan.cleared.push(slot);
        true
    }
}

/// Most beginnings whose likeliest titles are looked at for a plan.
const CONSIDERED: usize = 8;

fn unasked() -> Error {
    Error::Internal("a row of logits that nobody asked for".to_owned())
}

/// The section of the only title below `node`, if there is only one.
fn only_title(trie: Trie<'_>, mut node: NodeId) -> Option<u32> {
    loop {
        if let Some(section) = trie.section(node) {
            return Some(section);
        }
        (_, node) = trie.only_child(node)?;
    }
}

/// The log-probability of `token`, where `all` is the logarithm of the softmax's denominator.
fn log_prob(logits: &[f32], token: u32, all: f64) -> Result<f64> {
    match logits.get(token as usize) {
        Some(&logit) => Ok((f64::from(logit) - all).min(0.0)),
        None => Err(Error::Internal(format!(
            "token {token} is outside the logits"
        ))),
    }
}

#[cfg(test)]
mod tests;
