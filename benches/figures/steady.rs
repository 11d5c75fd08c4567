//! Allocations of a question, once everything has been asked before.

use crate::handbook::{self, QUESTIONS};
use crate::heap;
use crate::report::{Anything, Report};
use stair::{
    CancelToken, Hit, Hits, Model, ModelOptions, RetrieveOptions, Retriever, RetrieverOptions,
};
use std::path::Path;
use std::sync::Arc;

/// Of how often the Rust side asks for memory for a question with three hits:
///
/// - `allocations_handed_over` is what the caller gets and frees: the blocks that the hits own. The
///   goal is as many as they have texts, and lists of texts.
/// - `allocations_per_query` is all the rest, on all threads.
///
/// What llama.cpp allocates is not counted.
pub fn measure(model: &Path, report: &mut Report) -> Anything {
    let model = Arc::new(Model::open(model, &ModelOptions::default())?);
    let index = Arc::new(handbook::index(&model)?);
    let retriever = Retriever::new(model, index, &RetrieverOptions::default())?;
    retriever.warm(&CancelToken::new())?;
    let mut options = RetrieveOptions::default();
    options.k = Some(3);
    for question in QUESTIONS {
        retriever.retrieve(question, &options)?;
    }

    let (calls, asked) = (heap::calls(), heap::here().asked);
    let (mut handed_over, mut owned) = (0, 0);
    for question in QUESTIONS {
        let hits = retriever.retrieve(question, &options)?;
        owned += blocks(&hits);
        let before = heap::here().freed;
        drop(hits);
        handed_over += heap::here().freed - before;
    }
    let (calls, asked) = (heap::calls() - calls, heap::here().asked - asked);
    let per_query = |count: usize| count as f64 / QUESTIONS.len() as f64;
    report.note(format!(
        "allocations a query: {:.1} on the caller's thread, {:.1} of them handed over; {:.1} on the \
         worker's, search included",
        per_query(asked),
        per_query(handed_over),
        per_query(calls - asked),
    ));
    let rest = per_query(calls - handed_over);
    report.at_most("allocations_per_query", rest, 0.0);
    let goal = per_query(owned);
    report.at_most("allocations_handed_over", per_query(handed_over), goal);
    Ok(())
}

/// Blocks of memory that `hits` need: the list, and each hit's texts. An empty text has none.
fn blocks(hits: &Hits) -> usize {
    let of = |hit: &Hit| {
        let texts = [Some(&hit.number), Some(&hit.title), hit.text.as_ref()];
        let texts = texts.into_iter().flatten().chain(&hit.path);
        1 + texts.filter(|text| !text.is_empty()).count()
    };
    1 + hits.hits.iter().map(of).sum::<usize>()
}
