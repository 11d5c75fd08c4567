//! What keeps a generated title to those that exist: nothing, llama.cpp's grammars, llguidance.

use crate::Anything;
use crate::llama::Llama;
use crate::protocol::Document;
use crate::systems::Constraint;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;
use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};

/// Chooses the next token.
pub trait Pick {
    /// Begins a title.
    fn begin(&mut self) {}

    /// The next token.
    fn pick(&mut self, llama: &Llama) -> Anything<u32>;
}

pub fn open(document: &Document, llama: &Llama, constraint: Constraint) -> Anything<Box<dyn Pick>> {
    Ok(match constraint {
        Constraint::None => Box::new(Free),
        Constraint::Grammar => Box::new(Grammar {
            sampler: grammar(document, llama.model)?,
        }),
        Constraint::GrammarChain => Box::new(Chain {
            sampler: LlamaSampler::chain_simple([
                grammar(document, llama.model)?,
                LlamaSampler::greedy(),
            ]),
        }),
        Constraint::Llguidance => {
            let vocabulary = LlamaSampler::llguidance_tok_env(llama.model);
            let parsers = ParserFactory::new_simple(&vocabulary)?;
            let matcher = Matcher::new(parsers.create_parser(lark(document)?));
            if let Some(error) = matcher.get_error() {
                return Err(error.into());
            }
            Box::new(Chain {
                sampler: LlamaSampler::chain_simple([matcher.into(), LlamaSampler::greedy()]),
            })
        }
    })
}

/// Whatever the model likes best.
struct Free;

impl Pick for Free {
    fn pick(&mut self, llama: &Llama) -> Anything<u32> {
        Ok(best(llama)?.0)
    }
}

/// A grammar that is asked about the best token first, as `common_sampler_sample` of llama.cpp does.
struct Grammar {
    sampler: LlamaSampler,
}

impl Pick for Grammar {
    fn begin(&mut self) {
        self.sampler.reset();
    }

    fn pick(&mut self, llama: &Llama) -> Anything<u32> {
        let (token, logit) = best(llama)?;
        let mut candidate = LlamaToken(token as i32);
        let one = LlamaTokenData::new(candidate, logit, 0.0);
        let mut one = LlamaTokenDataArray::new(vec![one], false);
        self.sampler.apply(&mut one);
        if one.data[0].logit() == f32::NEG_INFINITY {
            let mut all = llama.context.token_data_array_ith(llama.last_row());
            self.sampler.apply(&mut all);
            candidate = all.sample_token_greedy();
        }
        // An end that is too early would end the process, but the grammar has just allowed it.
        if !llama.model.vocab().is_eog(candidate) {
            self.sampler.accept(candidate);
        }
        Ok(candidate.0 as u32)
    }
}

/// A chain of samplers that ends in a greedy one.
struct Chain {
    sampler: LlamaSampler,
}

impl Pick for Chain {
    fn begin(&mut self) {
        self.sampler.reset();
    }

    fn pick(&mut self, llama: &Llama) -> Anything<u32> {
        let token = self.sampler.sample(&llama.context, llama.last_row());
        Ok(token.0 as u32)
    }
}

fn best(llama: &Llama) -> Anything<(u32, f32)> {
    let mut best: Option<(u32, f32)> = None;
    for (token, &logit) in (0..).zip(llama.logits()) {
        if best.is_none_or(|(_, most)| logit > most) {
            best = Some((token, logit));
        }
    }
    best.ok_or_else(|| "no logits".into())
}

/// All titles as a GBNF grammar: `root ::= " 1 One" | " 2 Two"`.
pub fn gbnf(document: &Document) -> String {
    let titles: Vec<String> = texts(document)
        .map(|text| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
        .collect();
    format!("root ::= {}\n", titles.join(" | "))
}

fn grammar(document: &Document, model: &LlamaModel) -> Anything<LlamaSampler> {
    Ok(LlamaSampler::grammar(model, &gbnf(document), "root")?)
}

/// All titles as a terminal of a Lark grammar, which llguidance compiles to a regular expression.
/// As a rule with an alternative for each it would reach its limit of 2,000.
fn lark(document: &Document) -> Anything<TopLevelGrammar> {
    let titles = texts(document)
        .map(|text| serde_json::to_string(&text))
        .collect::<serde_json::Result<Vec<String>>>()?;
    let grammar = format!("start: TITLE\nTITLE: {}\n", titles.join(" | "));
    Ok(TopLevelGrammar::from_lark(grammar))
}

fn texts(document: &Document) -> impl Iterator<Item = String> + '_ {
    let title = |identifier: &str| format!("{}{identifier}", document.before_title);
    document.titles.iter().map(move |t| title(&t.identifier))
}
