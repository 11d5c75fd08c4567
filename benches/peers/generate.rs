//! Generating one title, greedily, after a warm prefix.

use crate::Anything;
use crate::constraints::{self, Pick};
use crate::llama::Llama;
use crate::protocol::{Answer, Ask, Document};
use crate::serve::Serving;
use crate::systems::Constraint;
use llama_cpp_2::token::LlamaToken;
use stair::eval::predictions::PredictedHit;
use std::collections::HashMap;

struct Generator {
    llama: Llama,
    constraint: Box<dyn Pick>,
    /// Text of a title to the leaf.
    titles: HashMap<String, u32>,
    before_title: String,
    most: usize,
}

pub fn open(document: &Document, constraint: Constraint) -> Anything<Box<dyn Serving>> {
    let llama = Llama::open(document)?;
    let constraint = constraints::open(document, &llama, constraint)?;
    let titles = document.titles.iter();
    Ok(Box::new(Generator {
        llama,
        constraint,
        before_title: document.before_title.clone(),
        // Twice the longest title: what is not over then is none.
        most: 2 * titles
            .clone()
            .map(|title| title.tokens.len())
            .max()
            .unwrap_or(0),
        titles: titles
            .map(|title| (title.identifier.clone(), title.section))
            .collect(),
    }))
}

impl Serving for Generator {
    fn answer(&mut self, ask: &Ask) -> Anything<Answer> {
        let mut text = Vec::new();
        self.constraint.begin();
        self.llama.ask(&ask.tokens)?;
        for _ in 0..self.most {
            let token = self.constraint.pick(&self.llama)?;
            if self.llama.model.vocab().is_eog(LlamaToken(token as i32)) {
                break;
            }
            text.extend(self.llama.piece(token));
            self.llama.go_on(&[token])?;
        }
        let text = String::from_utf8_lossy(&text);
        let identifier = text.strip_prefix(&self.before_title).unwrap_or(&text);
        Ok(Answer {
            hits: vec![PredictedHit {
                section: self.titles.get(identifier).copied(),
                identifier: identifier.to_owned(),
                // There is only one.
                score: 0.0,
                log_prob: None,
                lexical: None,
            }],
            decodes: Some(self.llama.decodes),
            tokens: Some(self.llama.tokens),
            ..Answer::default()
        })
    }
}
