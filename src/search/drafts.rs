//! Drafts: titles that are evaluated together with the question, because other evidence says that
//! the search will want them. A right one saves decodes; a wrong one costs its tokens and changes
//! nothing else.

use super::Room;
use super::plan::{Plan, Step};
use super::states::States;
use super::walk::Walk;
use crate::index::trie::{NodeId, Trie};
use std::ops::Range;

/// The drafts of one search. The memory is used again by the next.
#[derive(Debug, Default)]
pub(super) struct Drafts {
    titles: Titles,
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
        (plan, walks): (&mut Plan, &mut Vec<Walk>),
    ) {
        let opening = plan.opening.len();
        let mut held = 0;
        for &section in sections {
            let Some(len) = self.titles.push(trie, opened, section) else {
                continue;
            };
            held += opening + len;
            let fits = len <= spare && held <= room.tokens && self.titles.len() < room.states;
            if !fits {
                self.titles.pop();
                break;
            }
            spare -= len;
        }
        self.titles.sort();
        for title in &self.titles.titles {
            // All slots are free, so the titles get the first ones in order.
            let taken = states.take_slot(room.states, (opening + title.len()) as u32);
            plan.drafts += u16::from(taken.is_some());
        }
        let all = 0..self.titles.len();
        plan_group(&self.titles, trie, opened, all, 0, walks, plan);
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
    walks: &mut Vec<Walk>,
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
        let slot = 1 + group.start as u16;
        walks.push(Walk {
            rows: tokens.clone(),
            chain: start,
            node: trie.child(node, first).unwrap_or(node),
            slot,
            beginning: None,
        });
        plan.steps.push(Step {
            slot,
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
            plan_group(titles, trie, after, part, end, walks, plan);
        }
    }
}
