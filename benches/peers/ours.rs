//! libstair, asked as a host asks it.

use crate::Anything;
use crate::protocol::{Answer, Ask, Document};
use crate::serve::Serving;
use crate::systems::Ours;
use stair::eval::system::{Retrieving, Setup, System};
use stair::search::Scoring;
use stair::{Index, Model, ModelOptions, Retriever, RetrieverOptions};
use std::sync::Arc;

struct Stair {
    retriever: Retriever,
    setup: Setup,
}

pub fn open(document: &Document, how: Ours) -> Anything<Box<dyn Serving>> {
    let lexical_weight = match (how, document.lexical_weight) {
        (Ours::TopK | Ours::Top1, _) => 0.0,
        (Ours::Hybrid, Some(weight)) => weight,
        (Ours::Hybrid, None) => return Err("no weight was tuned for this model and index".into()),
    };
    let model = Arc::new(Model::open(&document.model, &ModelOptions::default())?);
    let index = Arc::new(Index::open(&document.index)?);
    let mut options = RetrieverOptions::default();
    options.threads = Some(document.threads);
    let retriever = Retriever::new(model, index, &options)?;
    retriever.warm(&stair::CancelToken::new())?;
    let setup = Setup {
        name: String::new(),
        k: match how {
            Ours::Top1 => 1,
            Ours::TopK | Ours::Hybrid => document.k,
        },
        scoring: Scoring::Exact,
        lexical_weight,
    };
    Ok(Box::new(Stair { retriever, setup }))
}

impl Serving for Stair {
    fn answer(&mut self, ask: &Ask) -> Anything<Answer> {
        let system = Retrieving::new(&self.retriever, self.setup.clone());
        let answer = system.answer(&ask.query)?;
        Ok(Answer {
            hits: answer.hits,
            decodes: answer.decodes,
            tokens: answer.tokens,
            ..Answer::default()
        })
    }
}
