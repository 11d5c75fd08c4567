//! The tuning beside a model, for the subcommands that use it.

use stair::eval::confidence::Evidence;
use stair::eval::tuning::{Refusal, Tuning};
use stair::{Hits, Index, Result, RetrieveOptions, Retriever};
use std::path::Path;

/// The tuning beside `model`, if it was made for this model and `index`. One that cannot be used is
/// left alone, and a line on standard error says so.
pub fn beside(model: &Path, index: &Index) -> Option<Tuning> {
    let path = Tuning::path(model);
    let used = Tuning::read(&path).and_then(|tuning| match tuning {
        None => Ok(None),
        Some(tuning) => Ok(Some((tuning.belongs_to(model, index)?, tuning))),
    });
    match used {
        Ok(None) => None,
        Ok(Some((true, tuning))) => Some(tuning),
        Ok(Some((false, _))) => {
            eprintln!(
                "stair: {} was made for another model or index and is not used: run `stair tune`",
                path.display()
            );
            None
        }
        Err(error) => {
            eprintln!("stair: a tuning is not used: {error}");
            None
        }
    }
}

/// The sections found, and whether one of them seems to answer, where that was tuned.
pub struct Answer {
    pub hits: Hits,
    pub answerable: Option<bool>,
}

/// Asks `retriever` for as many hits as `refusal` must see, and returns those asked for.
pub fn retrieve(
    retriever: &Retriever,
    question: &str,
    mut options: RetrieveOptions,
    refusal: Option<&Refusal>,
) -> Result<Answer> {
    let leaves = retriever.index().leaves() as usize;
    let asked = options.k;
    // What the library would take for `None`.
    let k = asked.unwrap_or(leaves.min(3));
    if let Some(refusal) = refusal
        && (1..=leaves).contains(&k)
    {
        options.k = Some(k.max(refusal.needs()).min(leaves));
    }
    let mut hits = retriever.retrieve(question, &options)?;
    let answerable =
        refusal.and_then(|refusal| refusal.answerable(&Evidence::new(question, &hits)));
    hits.hits.truncate(k);
    Ok(Answer { hits, answerable })
}
