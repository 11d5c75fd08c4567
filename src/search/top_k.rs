//! One search by itself, without a worker and other callers.

use super::model::{Batch, LanguageModel, Seq};
use super::{Found, Hints, Room, Search, SearchOptions};
use crate::error::Result;
use crate::index::trie::Trie;

/// Runs one search on `model`, whose prefix is in place and whose other sequences are empty:
/// decodes `question` and finds the best titles.
///
/// # Errors
///
/// What the model says, and those of [`Search::start`].
pub fn top_k(
    model: &mut dyn LanguageModel,
    trie: Trie<'_>,
    prefix_len: u32,
    question: &[u32],
    options: SearchOptions,
    hints: Hints<'_>,
) -> Result<Vec<Found>> {
    let capacity = model.capacity();
    let room = Room {
        states: usize::from(capacity.sequences) - 1,
        tokens: capacity
            .context
            .saturating_sub(prefix_len as usize + question.len()),
    };
    // Slot 0 of the search is sequence 1 of the model; sequence 0 is the prefix.
    let seq = |slot: u16| Seq(slot + 1);
    let base = prefix_len + question.len() as u32;
    let mut search = Search::new();
    let mut batch = Batch::default();
    let plan = search.start(trie, options, room, hints, capacity.spare(question.len()))?;
    for slot in 0..=plan.drafts {
        model.fork(Seq::PREFIX, seq(slot), prefix_len)?;
    }
    batch.push_opened(seq(0), plan.drafts, prefix_len, question, &plan.opening);
    let opened = batch.appends().len();
    for step in &plan.steps {
        let position = base + step.parent_depth;
        let tokens = plan.tokens(step);
        batch.push_shared(
            seq(step.slot),
            step.followers,
            position,
            tokens,
            step.first_row,
        );
    }
    model.decode(&batch, &mut |append, logits| match append < opened {
        true => search.absorb_question(trie, logits),
        false => search.absorb(trie, append - opened, logits),
    })?;
    loop {
        let plan = search.plan(trie)?;
        for &slot in &plan.cleared {
            model.clear(seq(slot))?;
        }
        if plan.steps.is_empty() {
            break;
        }
        for step in &plan.steps {
            if step.slot != step.parent {
                let position = base + step.parent_depth;
                model.fork(seq(step.parent), seq(step.slot), position)?;
            }
        }
        let mut done = 0;
        while done < search.current_plan().steps.len() {
            let plan = search.current_plan();
            batch.clear();
            for step in &plan.steps[done..] {
                let tokens = plan.tokens(step);
                let rows = tokens.len() - step.first_row;
                if !batch.is_empty() && !batch.has_room(capacity, tokens.len(), rows) {
                    break;
                }
                let position = base + step.parent_depth;
                batch.push(seq(step.slot), position, tokens, step.first_row);
            }
            model.decode(&batch, &mut |step, logits| {
                search.absorb(trie, done + step, logits)
            })?;
            done += batch.appends().len();
        }
    }
    for slot in 0..capacity.sequences - 1 {
        model.clear(seq(slot))?;
    }
    Ok(search.found().to_vec())
}
