//! Drafts: titles that are evaluated together with the question, because other evidence says that
//! the search will want them. A right one saves decodes; a wrong one costs its tokens and changes
//! nothing else.

use super::Room;
use super::frontier::Beginning;
use super::plan::{Plan, Step};
use super::states::States;
use crate::index::trie::{NodeId, Trie};
use std::ops::Range;

/// The drafts of one search. The memory is used again by the next.
#[derive(Debug, Default)]
pub(super) struct Drafts {
    titles: Titles,
    /// For each step of the plan, how far its rows have come.
    pub progress: Vec<Progress>,
}

/// A step of drafts whose rows come in: a run of tokens, which may pass several branchings.
#[derive(Debug, Clone)]
pub(super) struct Progress {
    /// In the plan's tokens, from the one whose row comes next.
    pub rows: Range<usize>,
    /// Where the chain begins that this token is in.
    pub chain: usize,
    /// The node after this token.
    pub node: NodeId,
    /// The beginning that the chain continues; none when no title below counts any more.
    pub beginning: Option<Beginning>,
}

/// What is left of the drafts' titles after the opening, terminators left out.
#[derive(Debug, Default)]
struct Titles {
    tokens: Vec<u32>,
    titles: Vec<Range<usize>>,
}

impl Drafts {
    pub fn clear(&mut self) {
        self.titles.tokens.clear();
        self.titles.titles.clear();
        self.progress.clear();
    }

    /// Plans to evaluate the titles of `sections`, as many as there is room for, after the opening
    /// that leads to `opened`. `spare` is the number of tokens that the decode has room for.
    pub fn plan(
        &mut self,
        trie: Trie<'_>,
        opened: NodeId,
        sections: &[u32],
        (room, mut spare): (Room, usize),
        states: &mut States,
        plan: &mut Plan,
    ) {
        for &section in sections {
            let Some(len) = self.titles.push(trie, opened, section) else {
                continue;
            };
            let depth = plan.opening.len() + len;
            let fits = len <= spare && states.live_tokens() + depth <= room.tokens;
            if !fits || states.lend_slot(room.states, depth as u32).is_none() {
                self.titles.pop();
                break;
            }
            spare -= len;
            plan.drafts += 1;
        }
        self.titles.sort();
        let all = 0..self.titles.len();
        plan_group(&self.titles, trie, opened, all, 0, &mut self.progress, plan);
    }
}

impl Titles {
    fn len(&self) -> usize {
        self.titles.len()
    }

    /// The token of a title at a depth.
    fn token(&self, title: usize, depth: usize) -> Option<u32> {
        self.tokens[self.titles[title].clone()].get(depth).copied()
    }

    fn pop(&mut self) {
        if let Some(last) = self.titles.pop() {
            self.tokens.truncate(last.start);
        }
    }

    /// In the order of the trie, so that titles that begin alike stand together.
    fn sort(&mut self) {
        let tokens = &self.tokens;
        self.titles
            .sort_unstable_by(|a, b| tokens[a.clone()].cmp(&tokens[b.clone()]));
    }

    /// Adds the title of `section`, and gives its length; none when nothing is left of it.
    fn push(&mut self, trie: Trie<'_>, opened: NodeId, section: u32) -> Option<usize> {
        let start = self.tokens.len();
        let mut node = trie.end(section).and_then(|end| trie.parent(end))?;
        while node != opened {
            let (Some(token), Some(parent)) = (trie.token(node), trie.parent(node)) else {
                self.tokens.truncate(start);
                return None;
            };
            self.tokens.push(token);
            node = parent;
        }
        self.tokens[start..].reverse();
        let len = self.tokens.len() - start;
        (len > 0).then(|| {
            self.titles.push(start..start + len);
            len
        })
    }
}

/// Plans the titles in `group`, which have their first `depth` tokens in common and lead to `node` by
/// these: first what more they share, then what follows it.
fn plan_group(
    titles: &Titles,
    trie: Trie<'_>,
    node: NodeId,
    group: Range<usize>,
    depth: usize,
    progress: &mut Vec<Progress>,
    plan: &mut Plan,
) {
    let Some(last) = group.clone().last() else {
        return;
    };
    // Sorted, so what the first and the last share is shared by all.
    let start = plan.tokens.len();
    let (mut end, mut after) = (depth, node);
    while let Some(token) = titles.token(group.start, end)
        && titles.token(last, end) == Some(token)
    {
        plan.tokens.push(token);
        after = trie.child(after, token).unwrap_or(after);
        end += 1;
    }
    if let Some(&first) = plan.tokens.get(start) {
        let tokens = start..plan.tokens.len();
        progress.push(Progress {
            rows: tokens.clone(),
            chain: start,
            node: trie.child(node, first).unwrap_or(node),
            beginning: None,
        });
        plan.steps.push(Step {
            slot: 1 + group.start as u16,
            followers: (group.len() - 1) as u16,
            parent: 0,
            parent_depth: (plan.opening.len() + depth) as u32,
            first_row: 0,
            tokens,
        });
    }
    let mut at = group.start;
    while at < group.end {
        let next = titles.token(at, end);
        let same = (at..group.end).take_while(|&other| titles.token(other, end) == next);
        let part = at..at + same.count();
        at = part.end;
        // A title without a next token is complete.
        if next.is_some() {
            plan_group(titles, trie, after, part, end, progress, plan);
        }
    }
}
