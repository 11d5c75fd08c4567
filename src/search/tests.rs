//! The search against brute force, on random tries and random models.

use super::model::{Batch, Capacity, LanguageModel, Seq};
use super::*;
use crate::index::format::{NONE, TrieNode};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap};

const VOCAB: u32 = 9;
const END: u32 = 8;

/// A model whose logits are a fixed function of all tokens before them. It keeps account of what
/// each sequence holds and refuses whatever llama.cpp would assert on.
struct Table {
    seed: u64,
    /// Logits are multiples of this; coarse ones make ties.
    grain: f32,
    capacity: Capacity,
    /// Cells of each sequence, in order; forking shares them.
    sequences: HashMap<Seq, Vec<usize>>,
    /// The token of each cell ever decoded.
    cells: Vec<u32>,
    decodes: usize,
    tokens: usize,
}

impl Table {
    fn new(seed: u64, grain: f32, prefix: &[u32], room: Room) -> Self {
        let mut table = Self {
            seed,
            grain,
            capacity: Capacity {
                sequences: room.states as u16 + 1,
                batch: 4096,
                rows: 4096,
                context: room.tokens + 64,
            },
            sequences: HashMap::new(),
            cells: Vec::new(),
            decodes: 0,
            tokens: 0,
        };
        table.append(Seq::PREFIX, prefix);
        table
    }

    fn append(&mut self, seq: Seq, tokens: &[u32]) {
        for &token in tokens {
            self.sequences
                .entry(seq)
                .or_default()
                .push(self.cells.len());
            self.cells.push(token);
        }
    }

    fn logits(&self, tokens: &[u32]) -> Vec<f32> {
        let row = |token: u32| {
            let mut hash = self.seed ^ u64::from(token).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            for &token in tokens {
                hash = (hash ^ u64::from(token)).wrapping_mul(0x2545_F491_4F6C_DD1D);
                hash ^= hash >> 29;
            }
            ((hash % 1000) as f32 / 100.0 / self.grain).round() * self.grain
        };
        (0..VOCAB).map(row).collect()
    }
}

impl LanguageModel for Table {
    fn capacity(&self) -> Capacity {
        self.capacity
    }

    fn fork(&mut self, from: Seq, to: Seq, length: u32) -> Result<()> {
        assert!(from.0 < self.capacity.sequences && to.0 < self.capacity.sequences);
        assert!(
            self.sequences.get(&to).is_none_or(Vec::is_empty),
            "{to:?} is not empty"
        );
        let cells = self.sequences.get(&from).cloned().unwrap_or_default();
        assert!(!cells.is_empty(), "{from:?} is empty");
        let taken = cells[..length as usize].to_vec();
        self.sequences.insert(to, taken);
        Ok(())
    }

    fn clear(&mut self, seq: Seq) -> Result<()> {
        self.sequences.remove(&seq);
        Ok(())
    }

    fn decode(
        &mut self,
        batch: &Batch,
        row: &mut dyn FnMut(usize, &[f32]) -> Result<()>,
    ) -> Result<()> {
        let (tokens, rows) = (batch.token_count(), batch.row_count());
        assert!(tokens <= self.capacity.batch && rows <= self.capacity.rows);
        self.decodes += 1;
        for (index, append) in batch.appends().iter().enumerate() {
            let tokens = batch.tokens(append);
            assert!(append.first_row < tokens.len());
            let held = self.sequences.get(&append.seq).map_or(0, Vec::len);
            assert_eq!(
                held, append.position as usize,
                "positions continue the sequence"
            );
            let before = self.sequences.get(&append.seq).cloned();
            self.append(append.seq, tokens);
            self.tokens += tokens.len();
            for follower in Batch::seqs(append).skip(1) {
                assert_eq!(
                    self.sequences.get(&follower).cloned(),
                    before,
                    "the same before"
                );
                self.sequences
                    .insert(follower, self.sequences[&append.seq].clone());
            }
            let all: Vec<u32> = self.sequences[&append.seq]
                .iter()
                .map(|&c| self.cells[c])
                .collect();
            for token in append.first_row..tokens.len() {
                row(index, &self.logits(&all[..held + token + 1]))?;
            }
        }
        let live: BTreeSet<usize> = self.sequences.values().flatten().copied().collect();
        assert!(live.len() <= self.capacity.context, "the context overflows");
        Ok(())
    }
}

fn hints(prior: &[f32]) -> Hints<'_> {
    Hints {
        prior,
        ..Hints::default()
    }
}

/// The nodes of the trie over `titles`; title i is section i.
fn nodes(titles: &[Vec<u32>]) -> Vec<TrieNode> {
    let mut children: Vec<BTreeMap<u32, usize>> = vec![BTreeMap::new()];
    let mut section = vec![NONE];
    for (id, title) in titles.iter().enumerate() {
        let mut at = 0;
        for &token in title.iter().chain([&END]) {
            at = match children[at].get(&token) {
                Some(&child) => child,
                None => {
                    children.push(BTreeMap::new());
                    section.push(NONE);
                    let child = children.len() - 1;
                    children[at].insert(token, child);
                    child
                }
            };
        }
        section[at] = id as u32;
    }
    // Breadth first.
    let mut order = vec![(0usize, NONE)];
    let mut out = Vec::new();
    let mut at = 0;
    while at < order.len() {
        let (node, token) = order[at];
        out.push(TrieNode {
            token,
            first_child: order.len() as u32,
            section: section[node],
        });
        order.extend(children[node].iter().map(|(&token, &child)| (child, token)));
        at += 1;
    }
    out.push(TrieNode {
        token: NONE,
        first_child: order.len() as u32,
        section: NONE,
    });
    out
}

/// Every title's score by definition, best first.
fn brute_force(
    table: &Table,
    titles: &[Vec<u32>],
    context: &[u32],
    scoring: Scoring,
    prior: &[f32],
) -> Vec<Found> {
    let nodes = nodes(titles);
    let trie = Trie::new(&nodes);
    let mut found: Vec<Found> = (0u32..)
        .zip(titles)
        .map(|(section, title)| {
            let mut context = context.to_vec();
            let (mut log_prob, mut log_legal) = (0.0, 0.0);
            let mut node = NodeId::ROOT;
            for &token in title.iter().chain([&END]) {
                let logits = table.logits(&context);
                let all = log_sum_exp(&logits).expect("finite");
                let value = |token: u32| f64::from(logits[token as usize]) - all;
                let mass: f64 = trie.children(node).map(|(t, _)| value(t).exp()).sum();
                log_prob += match scoring {
                    Scoring::Exact => value(token),
                    Scoring::Local => value(token) - mass.ln(),
                };
                // Local scoring reads no logits where there is no choice, but for the first.
                let read = trie.degree(node) > 1 || node == NodeId::ROOT;
                if scoring == Scoring::Exact || read {
                    log_legal += mass.ln();
                }
                node = trie.child(node, token).expect("a title's own path");
                context.push(token);
            }
            let added = prior.get(section as usize).copied().unwrap_or(0.0);
            Found {
                section,
                score: log_prob + f64::from(added),
                log_prob,
                log_legal,
            }
        })
        .collect();
    found.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.section.cmp(&b.section)));
    found
}

fn titles() -> impl Strategy<Value = Vec<Vec<u32>>> {
    let title = prop::collection::vec(0..END, 1..7);
    prop::collection::btree_set(title, 1..40).prop_map(|set| set.into_iter().collect())
}

const PREFIX: [u32; 3] = [1, 2, 3];

fn check(titles: &[Vec<u32>], seed: u64, grain: f32, options: SearchOptions, room: Room) -> Table {
    check_with_hints(titles, seed, grain, options, room, Hints::default())
}

fn check_with_hints(
    titles: &[Vec<u32>],
    seed: u64,
    grain: f32,
    options: SearchOptions,
    room: Room,
    hints: Hints<'_>,
) -> Table {
    let question = [4, 5];
    let mut table = Table::new(seed, grain, &PREFIX, room);
    let context: Vec<u32> = PREFIX.iter().chain(&question).copied().collect();
    let all = brute_force(&table, titles, &context, options.scoring, hints.prior);
    let nodes = nodes(titles);
    let trie = Trie::new(&nodes);
    table.capacity.context = room.tokens + PREFIX.len() + question.len();
    // One title fits, several steps may not.
    let longest = titles.iter().map(Vec::len).max().unwrap_or_default();
    table.capacity.batch = longest + question.len();
    table.capacity.rows = table.capacity.batch;
    let found = top_k(&mut table, trie, 3, &question, options, hints).expect("searches");
    assert_eq!(found.len(), options.k.min(titles.len()));
    for (rank, (found, expected)) in found.iter().zip(&all).enumerate() {
        assert!(
            (found.score - expected.score).abs() < 1e-5,
            "{found:?} {expected:?}"
        );
        assert!(found.log_prob <= 0.0 && found.log_legal <= 1e-9);
        // Sums in another order may swap what differs by rounding only.
        let tied = |other: &&Found| (other.score - found.score).abs() < 1e-5;
        let same = all
            .iter()
            .filter(tied)
            .find(|other| other.section == found.section);
        let same = same.unwrap_or_else(|| panic!("rank {rank}: {found:?} is not {expected:?}"));
        assert!(
            (same.log_legal - found.log_legal).abs() < 1e-5
                && (same.log_prob - found.log_prob).abs() < 1e-5,
            "{same:?} {found:?}"
        );
    }
    let held = table
        .sequences
        .keys()
        .filter(|seq| **seq != Seq::PREFIX)
        .count();
    assert_eq!(held, 0, "every sequence is given back");
    table
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 400 }))]

    #[test]
    fn it_equals_brute_force(
        titles in titles(),
        seed in any::<u64>(),
        k in 1usize..6,
        width in 1usize..6,
        states in 3usize..20,
        local in any::<bool>(),
        coarse in any::<bool>(),
    ) {
        let scoring = if local { Scoring::Local } else { Scoring::Exact };
        let grain = if coarse { 2.0 } else { 0.01 };
        let room = Room { states, tokens: 12 + states };
        check(&titles, seed, grain, SearchOptions { k, scoring, width }, room);
    }

    /// Priors of both signs, some far above what the model says, many equal, and one that is too
    /// short for all sections.
    #[test]
    fn with_a_prior_it_equals_brute_force(
        titles in titles(),
        seed in any::<u64>(),
        k in 1usize..6,
        width in 1usize..6,
        states in 3usize..20,
        local in any::<bool>(),
        coarse in any::<bool>(),
        prior in prop::collection::vec(prop_oneof![Just(0f32), Just(2.0), -40f32..40.0], 0..40),
        drafts in prop::collection::vec(0u32..45, 0..6),
        expected in prop::collection::vec(
            prop_oneof![Just(0f32), Just(f32::MAX), Just(f32::NAN), -9f32..9.0],
            0..40,
        ),
    ) {
        let scoring = if local { Scoring::Local } else { Scoring::Exact };
        let grain = if coarse { 2.0 } else { 0.01 };
        let room = Room { states, tokens: 12 + states };
        let options = SearchOptions { k, scoring, width };
        let hints = Hints { prior: &prior, drafts: &drafts, expected: &expected };
        check_with_hints(&titles, seed, grain, options, room, hints);
    }

    /// Drafts of any sections, the same one twice and such as do not exist, in a decode with any room.
    #[test]
    fn drafts_change_no_answer(
        titles in titles(),
        seed in any::<u64>(),
        k in 1usize..6,
        width in 1usize..6,
        states in 3usize..20,
        drafts in prop::collection::vec(0u32..45, 1..6),
        spare in 0usize..30,
    ) {
        let options = SearchOptions { k, scoring: Scoring::Exact, width };
        let room = Room { states, tokens: 12 + states };
        let run = |drafts: &[u32]| {
            let mut table = Table::new(seed, 0.01, &PREFIX, room);
            table.capacity.batch = 12.max(2 + spare);
            let nodes = nodes(&titles);
            let hints = Hints { drafts, ..Hints::default() };
            let found = top_k(&mut table, Trie::new(&nodes), 3, &[4, 5], options, hints);
            let found = found.expect("searches");
            (found.iter().map(|f| (f.section, f.log_prob.to_bits())).collect::<Vec<_>>(), table)
        };
        let (with, without) = (run(&drafts), run(&[]));
        prop_assert_eq!(with.0, without.0);
        prop_assert!(with.1.sequences.keys().all(|seq| *seq == Seq::PREFIX));
    }

    /// Without a prior, and with one that says nothing, the same bits at the same cost.
    #[test]
    fn a_prior_of_zeros_changes_no_bit(
        titles in titles(),
        seed in any::<u64>(),
        k in 1usize..6,
        width in 1usize..3,
    ) {
        let options = SearchOptions { k, scoring: Scoring::Exact, width };
        let room = Room { states: 9, tokens: 40 };
        let run = |prior: &[f32]| {
            let mut table = Table::new(seed, 0.01, &PREFIX, room);
            let nodes = nodes(&titles);
            let found = top_k(&mut table, Trie::new(&nodes), 3, &[4, 5], options, hints(prior));
            (found.expect("searches"), table.decodes, table.tokens)
        };
        let without = run(&[]);
        prop_assert_eq!(&run(&vec![0.0; titles.len()]), &without);
        prop_assert!(without.0.iter().all(|f| f.score.to_bits() == f.log_prob.to_bits()));
    }
}

#[test]
fn equal_sums_go_to_the_earlier_section() {
    // All logits are equal, so the priors alone decide, and they are equal too but for one.
    let titles: Vec<Vec<u32>> = (0..6).map(|token| vec![token, 7 - token]).collect();
    let options = SearchOptions {
        k: 4,
        scoring: Scoring::Exact,
        width: 1,
    };
    let room = Room {
        states: 5,
        tokens: 100,
    };
    let mut table = Table::new(1, 1000.0, &PREFIX, room);
    let nodes = nodes(&titles);
    let prior = [-1.0, 0.5, -1.0, 0.5, 0.5, 3.0];
    let found = top_k(
        &mut table,
        Trie::new(&nodes),
        3,
        &[4],
        options,
        hints(&prior),
    )
    .expect("searches");
    let sections: Vec<u32> = found.iter().map(|found| found.section).collect();
    assert_eq!(sections, [5, 1, 3, 4]);
}

#[test]
fn a_prior_that_is_not_finite_is_an_error() {
    let nodes = nodes(&[vec![1], vec![2]]);
    let options = SearchOptions {
        k: 1,
        scoring: Scoring::Exact,
        width: 1,
    };
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let room = Room {
            states: 5,
            tokens: 100,
        };
        let mut table = Table::new(1, 1.0, &PREFIX, room);
        let trie = Trie::new(&nodes);
        let error =
            top_k(&mut table, trie, 3, &[4], options, hints(&[0.0, bad])).expect_err("refused");
        assert_eq!(error.code(), crate::Code::Internal);
    }
}

/// The drafts are the answer: one decode.
#[test]
fn right_drafts_are_found_in_the_decode_of_the_question() {
    let titles: Vec<Vec<u32>> = vec![
        vec![0, 1, 2, 3],
        vec![0, 1, 2, 4],
        vec![0, 1, 5],
        vec![0, 1, 6, 7],
    ];
    let nodes = nodes(&titles);
    let options = SearchOptions {
        k: 4,
        scoring: Scoring::Exact,
        width: 1,
    };
    let room = Room {
        states: 9,
        tokens: 60,
    };
    let run = |drafts: &[u32]| {
        let mut table = Table::new(7, 0.01, &PREFIX, room);
        let hints = Hints {
            drafts,
            ..Hints::default()
        };
        let found = top_k(&mut table, Trie::new(&nodes), 3, &[4, 5], options, hints);
        assert_eq!(found.expect("searches").len(), 4);
        (table.decodes, table.tokens)
    };
    // The question, `0 1`, and each part that titles share once: `2`, `3`, `4`, `5`, `6 7`.
    assert_eq!(run(&[3, 0, 2, 1]), (1, 2 + 2 + 6));
    // The same tokens, and what they cost in turn.
    let (decodes, tokens) = run(&[]);
    assert!(
        decodes > 3 && tokens >= 10,
        "{decodes} decodes, {tokens} tokens"
    );
}

#[test]
fn ties_go_to_the_earlier_section() {
    // A grain so coarse that every logit is 0: all titles of one length tie.
    let titles: Vec<Vec<u32>> = (0..6).map(|token| vec![token, 7 - token]).collect();
    let options = SearchOptions {
        k: 3,
        scoring: Scoring::Exact,
        width: 1,
    };
    let mut table = Table::new(
        1,
        1000.0,
        &PREFIX,
        Room {
            states: 5,
            tokens: 100,
        },
    );
    let nodes = nodes(&titles);
    let found = top_k(
        &mut table,
        Trie::new(&nodes),
        3,
        &[4],
        options,
        Hints::default(),
    )
    .expect("searches");
    let sections: Vec<u32> = found.iter().map(|found| found.section).collect();
    assert_eq!(sections, [0, 1, 2]);
}

#[test]
fn a_title_that_begins_another_is_told_apart_by_its_end() {
    let titles = vec![vec![1], vec![1, 2], vec![1, 2, 3]];
    let options = SearchOptions {
        k: 3,
        scoring: Scoring::Exact,
        width: 2,
    };
    check(
        &titles,
        7,
        0.01,
        options,
        Room {
            states: 8,
            tokens: 50,
        },
    );
}

#[test]
fn a_peaked_model_pays_for_one_path_only() {
    // One title of five tokens and its siblings: a chain is decoded whole, in one decode.
    let titles = vec![vec![0, 1, 2, 3, 4], vec![5, 1, 2, 3, 4]];
    let options = SearchOptions {
        k: 1,
        scoring: Scoring::Exact,
        width: 1,
    };
    let table = check(
        &titles,
        3,
        0.01,
        options,
        Room {
            states: 8,
            tokens: 50,
        },
    );
    assert!(table.decodes <= 3, "{} decodes", table.decodes);
    assert!(table.tokens <= 2 + 10, "{} tokens", table.tokens);
}

#[test]
fn local_scoring_does_not_decode_what_has_no_alternative() {
    let titles = vec![vec![0, 1, 2], vec![3, 4, 5], vec![6, 7, 0]];
    let options = SearchOptions {
        k: 3,
        scoring: Scoring::Local,
        width: 1,
    };
    let table = check(
        &titles,
        3,
        0.01,
        options,
        Room {
            states: 8,
            tokens: 50,
        },
    );
    assert_eq!(
        (table.decodes, table.tokens),
        (1, 2),
        "the question alone decides"
    );
}

#[test]
fn logits_that_are_not_numbers_are_an_error() {
    struct Broken;
    impl LanguageModel for Broken {
        fn capacity(&self) -> Capacity {
            Capacity {
                sequences: 5,
                batch: 10,
                rows: 10,
                context: 100,
            }
        }
        fn fork(&mut self, _: Seq, _: Seq, _: u32) -> Result<()> {
            Ok(())
        }
        fn clear(&mut self, _: Seq) -> Result<()> {
            Ok(())
        }
        fn decode(
            &mut self,
            _: &Batch,
            row: &mut dyn FnMut(usize, &[f32]) -> Result<()>,
        ) -> Result<()> {
            row(0, &[f32::NAN; VOCAB as usize])
        }
    }
    let nodes = nodes(&[vec![1]]);
    let options = SearchOptions {
        k: 1,
        scoring: Scoring::Exact,
        width: 1,
    };
    let error = top_k(
        &mut Broken,
        Trie::new(&nodes),
        1,
        &[1],
        options,
        Hints::default(),
    )
    .expect_err("refused");
    assert_eq!(error.code(), crate::Code::Decode);
}
