//! Picking by number: what people do with a chat model that was never trained for the document.
//!
//! The prompt lists the leaves as a numbered menu and asks for a number. Here the engine itself
//! generates it: an index is made in memory whose titles are the bare numbers, so a number out of
//! range cannot come out. What remains of that failure is seen in the mass on legal tokens: below one
//! half the model would rather have said something that is no number of the menu. Then, as in the
//! method's description, the nearest *titles* answer; there is no embedding model here, so nearness is
//! BM25 over the titles.
//!
//! All numbers have the same length, so none begins another and what the model says after one (a full
//! stop, the title, nothing) does not matter: scores are local, which do not look there.

use super::predictions::PredictedHit;
use super::system::{Answer, System};
use crate::engine::Model;
use crate::error::Result;
use crate::index::{BuildOptions, Index, build};
use crate::prompt::Template;
use crate::retriever::{RetrieveOptions, Retriever, RetrieverOptions};
use crate::search::Scoring;
use crate::toc::Toc;
use crate::tokens::Tokenizer;
use crate::{CancelToken, Error};
use std::sync::Arc;

/// Mass on legal tokens below which the titles are asked instead.
const WANTED: f64 = 0.5;

/// The menu of one index's leaves, before one model.
#[derive(Debug)]
pub struct Menu {
    numbers: Retriever,
    titles: Retriever,
    leaves: Vec<Leaf>,
    k: usize,
}

#[derive(Debug)]
struct Leaf {
    section: u32,
    identifier: String,
}

impl Menu {
    /// The menu of the leaves of `index` for `model`, which is asked for `k` of them.
    ///
    /// # Errors
    ///
    /// Those of [`build`] and [`Retriever::new`]; [`Error::ContextTooSmall`] above all, for a menu
    /// that the model cannot hold.
    pub fn new(
        index: &Index,
        model: Arc<Model>,
        options: &RetrieverOptions,
        k: usize,
    ) -> Result<Self> {
        let leaves: Vec<Leaf> = (0..index.sections())
            .filter_map(|id| index.section(id))
            .filter(|section| section.leaf)
            .map(|section| Leaf {
                section: section.id,
                identifier: section.identifier(),
            })
            .collect();
        let first = first_number(leaves.len());
        let lines: Vec<String> = (first..)
            .zip(&leaves)
            .map(|(number, leaf)| format!("{number}. {}", leaf.identifier))
            .collect();
        let numbers = Toc::flat(
            lines.join("\n"),
            (first..first + leaves.len()).map(|number| number.to_string()),
        );
        let titles = Toc::flat(
            index.title().to_owned(),
            leaves.iter().map(|leaf| leaf.identifier.clone()),
        );
        let numbers = Arc::new(made(&numbers, &*model, template(&*model))?);
        let titles = Arc::new(made(&titles, &*model, Template::without_contents())?);
        Ok(Self {
            numbers: Retriever::new(model, numbers, options)?,
            titles: Retriever::lexical(titles),
            k: k.clamp(1, leaves.len().max(1)),
            leaves,
        })
    }
}

impl System for Menu {
    fn name(&self) -> &str {
        "number"
    }

    fn warm(&self) -> Result<()> {
        self.titles.warm(&CancelToken::new())?;
        self.numbers.warm(&CancelToken::new()).map(|_| ())
    }

    fn answer(&self, question: &str) -> Result<Answer> {
        let options = RetrieveOptions {
            k: Some(self.k),
            scoring: Scoring::Local,
            ..RetrieveOptions::default()
        };
        let picked = self.numbers.retrieve(question, &options)?;
        let wanted = picked.legal_mass.is_none_or(|mass| mass >= WANTED);
        let hits = match wanted {
            true => picked.hits,
            false => self.titles.retrieve(question, &options)?.hits,
        };
        let hits: Option<Vec<PredictedHit>> = hits
            .into_iter()
            .map(|hit| {
                // Sections of both made indexes are the leaves, in their order.
                let leaf = self.leaves.get(hit.section as usize)?;
                Some(PredictedHit {
                    section: Some(leaf.section),
                    identifier: leaf.identifier.clone(),
                    score: hit.score,
                    log_prob: hit.log_prob,
                    lexical: hit.lexical.map(f64::from),
                })
            })
            .collect();
        let no_leaf = || Error::Internal("a number of the menu is no leaf".to_owned());
        Ok(Answer {
            hits: hits.ok_or_else(no_leaf)?,
            legal_mass: picked.legal_mass,
            decodes: Some(picked.stats.decodes),
            tokens: Some(picked.stats.question_tokens + picked.stats.search_tokens),
        })
    }
}

/// The smallest power of ten from which on `count` numbers have one length.
fn first_number(count: usize) -> usize {
    let mut first = 1;
    while first * 9 < count {
        first *= 10;
    }
    first
}

fn made(toc: &Toc, tokenizer: &dyn Tokenizer, template: Template) -> Result<Index> {
    let options = BuildOptions {
        template,
        text: false,
        ..BuildOptions::default()
    };
    let (bytes, _) = build(toc, tokenizer, &options, &|_| {})?;
    Index::from_bytes(&bytes)
}

/// The menu is the document's title. A vocabulary that knows the turns of ChatML is asked in
/// turns, any other in plain text.
fn template(tokenizer: &dyn Tokenizer) -> Template {
    let ask = "Which section of the list below answers the question? Reply with its number alone.";
    let turns =
        tokenizer.token("<|im_start|>").is_some() && tokenizer.token("<|im_end|>").is_some();
    let [head, anchor, after_question, before_title, terminator] = match turns {
        true => [
            format!("<|im_start|>user\n{ask}\n\n{{title}}"),
            "\n\nQuestion:".to_owned(),
            "<|im_end|>\n<|im_start|>assistant\n".to_owned(),
            String::new(),
            "<|im_end|>".to_owned(),
        ],
        false => [
            format!("{ask}\n\n{{title}}"),
            "\n\nQuestion:".to_owned(),
            "\nNumber:".to_owned(),
            " ".to_owned(),
            String::new(),
        ],
    };
    Template {
        head,
        contents: false,
        anchor,
        after_question,
        before_title,
        terminator: (!terminator.is_empty()).then_some(terminator),
        special: turns,
        ..Template::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::testing::Bytes;

    #[test]
    fn all_numbers_have_one_length() {
        for (count, first) in [(1, 1), (9, 1), (10, 10), (90, 10), (91, 100), (900, 100)] {
            assert_eq!(first_number(count), first);
        }
    }

    #[test]
    fn the_numbers_are_the_leaves_of_an_index() {
        let numbers = Toc::flat(
            "1. Pay\n2. Leave".to_owned(),
            (1..=12).map(|n| n.to_string()),
        );
        let index = made(&numbers, &Bytes, template(&Bytes)).expect("builds");
        assert_eq!(index.leaves(), 12);
        let section = index.section(9).expect("is there");
        assert_eq!(section.identifier(), "10");
    }
}
