//! The example handbook, and questions about it.

use crate::report::Anything;
use stair::engine::Context;
use stair::index::{BuildOptions, build};
use stair::search::model::{Batch, LanguageModel, Seq};
use stair::toc::{self, ReadOptions};
use stair::{Index, Model, Result};
use std::path::Path;

/// The handbook's index for the vocabulary of `model`.
pub fn index(model: &Model) -> Anything<Index> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/handbook/handbook.md");
    let toc = toc::read(&std::fs::read(&path)?, &path, &ReadOptions::default())?;
    let (bytes, _) = build(&toc, model, &BuildOptions::default(), &|_| ())?;
    Ok(Index::from_bytes(&bytes)?)
}

/// Decodes `prefix`, which no question is asked of yet.
pub fn prefill(context: &mut Context<'_>, prefix: &[u32]) -> Result<()> {
    let mut batch = Batch::default();
    for piece in prefix.chunks(context.capacity().batch) {
        batch.clear();
        let at = context.length(Seq::PREFIX);
        batch.push(Seq::PREFIX, at, piece, piece.len());
        context.decode(&batch, &mut |_, _| Ok(()))?;
    }
    Ok(())
}

pub const QUESTIONS: [&str; 16] = [
    "Between which hours do I have to be at my desk?",
    "Can I take unused holiday into next year?",
    "My child is ill, who do I call and when?",
    "How much is the daily meal allowance abroad?",
    "What is paid for each kilometre in my own car?",
    "Who signs off on buying a new laptop for the team?",
    "A supplier gave me concert tickets. May I keep them?",
    "I think a colleague is stealing. Where can I report it without giving my name?",
    "How long does a password have to be?",
    "I clicked on a link in a strange email, what now?",
    "Where do we meet when the fire alarm goes off?",
    "Who may drive a forklift?",
    "How do I lock out a machine before I repair it?",
    "A customer wants to send back a pump that broke after a year. What are the terms?",
    "How many weeks before leaving do I have to resign?",
    "Will the company write me a reference when I leave?",
];
