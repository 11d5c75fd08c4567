//! One step of a walk: to find, among a node's children, the one over a given token.

use crate::report::{Anything, Report};
use stair::index::{BuildOptions, NodeId, build};
use stair::toc::Toc;
use stair::tokens::{Special, Tokenizer};
use stair::{Index, Result};
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

const CHILDREN: u32 = 1000;
const ROUNDS: usize = 20;

/// A node with 1,000 children, in an index that was built and opened as any other, and a row of
/// logits as long as a real one. Tokens come in random order, so that neither the branches of a
/// search nor the cache lines of the logits can be foreseen. The best of 20 rounds counts: other
/// programs can only add to it.
///
/// The figure is the time to find one child. Printed beside it: the time to go through all 1,000
/// with the log-probability of each, which a search does where it branches.
pub fn measure(_: &Path, report: &mut Report) -> Anything {
    let (bytes, _) = build(&toc(), &Letters, &BuildOptions::default(), &|_| ())?;
    let index = Index::from_bytes(&bytes)?;
    let trie = index.trie();
    let node = trie
        .find(&[u32::from(' ')])
        .ok_or("the trie is not as expected")?;
    assert_eq!(trie.degree(node), CHILDREN as usize);

    let mut random = 1u32;
    let tokens: Vec<u32> = (0..100_000)
        .map(|_| {
            // Xorshift (Marsaglia 2003).
            random ^= random << 13;
            random ^= random >> 17;
            random ^= random << 5;
            letter(random % CHILDREN)
        })
        .collect();
    let find = || {
        let found = |&token: &u32| trie.child(black_box(node), token).is_some();
        assert!(tokens.iter().all(found));
    };
    let find = best(find) / tokens.len() as f64;

    let logits: Vec<f32> = (0..Letters.vocab_size()).map(|i| i as f32 * 1e-4).collect();
    let mut scored: Vec<(f64, NodeId)> = Vec::with_capacity(CHILDREN as usize);
    let gather = || {
        scored.clear();
        let (logits, all) = (black_box(&logits), black_box(10.0));
        scored.extend(
            trie.children(node)
                .map(|(token, child)| (f64::from(logits[token as usize]) - all, child)),
        );
        black_box(&scored);
    };
    let gather = best(gather);

    report.note(format!(
        "trie: a child among 1,000 is found in {find:.0} ns; the log-probabilities of all 1,000 \
         are read in {gather:.0} ns"
    ));
    report.at_most("trie_step_ns_1000_children", find, 1000.0);
    Ok(())
}

/// Nanoseconds of the fastest round.
fn best(mut work: impl FnMut()) -> f64 {
    (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            work();
            started.elapsed().as_secs_f64() * 1e9
        })
        .fold(f64::INFINITY, f64::min)
}

/// 1,000 titles of one letter each, whose tokens lie far apart.
fn toc() -> Toc {
    let title = |i| char::from_u32(letter(i)).map(String::from);
    Toc::flat("T", (0..CHILDREN).map(|i| title(i).unwrap_or_default()))
}

fn letter(i: u32) -> u32 {
    0x4E00 + i * 20
}

/// One token a letter.
struct Letters;

impl Tokenizer for Letters {
    fn encode(&self, text: &str, _: Special) -> Result<Vec<u32>> {
        Ok(text.chars().map(u32::from).collect())
    }

    fn vocab_size(&self) -> u32 {
        49_152
    }

    fn fingerprint(&self) -> u64 {
        0
    }

    fn end_of_text(&self) -> Option<u32> {
        Some(self.vocab_size() - 1)
    }

    fn token(&self, _: &str) -> Option<u32> {
        None
    }
}
