//! The index as the systems see it, and the questions that they are asked.

use crate::Anything;
use crate::protocol::{Ask, Document, Title};
use stair::eval::tuning::Tuning;
use stair::index::Index;
use stair::questions::{self, Question};
use stair::tokens::Tokenizer;
use stair::{Model, ModelOptions};
use std::path::Path;

/// A question of the file, and as a system is asked it.
pub struct Asked {
    pub question: Question,
    pub ask: Ask,
}

/// `count` questions of `split` that a section answers, evenly spread over the file, which is
/// sorted by section; all of them when there are fewer.
pub fn questions(path: &Path, split: &str, count: usize) -> Anything<Vec<Question>> {
    let all: Vec<Question> = questions::read(path)?
        .into_iter()
        .filter(|question| question.split == split && question.section.is_some())
        .collect();
    if all.is_empty() {
        let path = path.display();
        return Err(format!("{path} has no question of the split {split} with a section").into());
    }
    let count = count.clamp(1, all.len());
    Ok((0..count)
        .map(|i| all[i * all.len() / count].clone())
        .collect())
}

/// What the systems are told, and the questions in their tokens.
pub fn document(
    model: &Path,
    index: &Path,
    questions: Vec<Question>,
    threads: u32,
    k: usize,
) -> Anything<(Document, Vec<Asked>)> {
    let mut options = ModelOptions::default();
    options.vocabulary_only = true;
    let tokenizer = Model::open(model, &options)?;
    let opened = Index::open(index)?;
    let template = opened.question();
    let encoder = template.titles(&tokenizer, opened.terminator())?;
    let titles = (0..opened.sections())
        .filter_map(|id| opened.section(id).filter(|section| section.leaf))
        .map(|section| {
            let identifier = section.identifier();
            let tokens = encoder.encode(&identifier)?;
            Ok(Title {
                section: section.id,
                identifier,
                tokens,
            })
        })
        .collect::<stair::Result<Vec<Title>>>()?;
    let asked = questions
        .into_iter()
        .map(|question| ask(&tokenizer, &opened, question))
        .collect::<stair::Result<Vec<Asked>>>()?;
    let tuning = match Tuning::read(&Tuning::path(model))? {
        Some(tuning) if tuning.belongs_to(model, &opened)? => Some(tuning),
        _ => None,
    };
    let document = Document {
        model: model.canonicalize()?,
        index: index.canonicalize()?,
        threads,
        k: k.min(titles.len()),
        prefix: opened.prefix().to_vec(),
        terminator: opened.terminator(),
        before_title: template.before_title.to_owned(),
        longest_question: asked.iter().map(|a| a.ask.tokens.len()).max().unwrap_or(0),
        lexical_weight: tuning.map(|tuning| tuning.lexical_weight),
        titles,
    };
    Ok((document, asked))
}

fn ask(tokenizer: &dyn Tokenizer, index: &Index, question: Question) -> stair::Result<Asked> {
    let tokens = index
        .question()
        .encode_question(tokenizer, &question.query)?;
    let ask = Ask {
        query: question.query.clone(),
        tokens,
    };
    Ok(Asked { question, ask })
}
