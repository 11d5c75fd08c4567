//! Asking one system all questions of a split.

use super::gold::{Sections, counts};
use super::predictions::{Gold, Prediction};
use super::system::{Answer, System, is_the_questions};
use crate::error::{Error, Result};
use crate::index::Index;
use crate::questions::Question;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// How the questions are asked.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// The questions to ask are those of this split.
    pub split: String,
    /// The training questions of a leaf are counted in this split.
    pub train_split: String,
    /// Questions asked at the same time. Times are only recorded when it is 1.
    pub callers: usize,
    /// Ask only the first so many; `None` for all.
    pub limit: Option<usize>,
}

/// Asks `system` the questions of a split, and returns its predictions in their order. `asked` is
/// called after each question with the number answered so far and the number of all, from any of
/// the callers' threads.
///
/// # Errors
///
/// [`Error::InvalidArgument`] when the split has no questions; else what the system fails with,
/// apart from errors that are the question's own: those become predictions without hits.
pub fn run(
    system: &dyn System,
    index: &Index,
    questions: &[Question],
    options: &RunOptions,
    asked: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<Prediction>> {
    let sections = Sections::new(index);
    let training = counts(questions, &sections, &options.train_split);
    let of_split: Vec<&Question> = of_split(questions, &options.split)?
        .into_iter()
        .take(options.limit.unwrap_or(usize::MAX))
        .collect();
    system.warm()?;
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results: Mutex<Vec<Option<Prediction>>> = Mutex::new(vec![None; of_split.len()]);
    let failure: Mutex<Option<Error>> = Mutex::new(None);
    let caller = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(question) = of_split.get(at) else {
                return;
            };
            let started = Instant::now();
            let answer = system.answer(&question.query);
            let seconds = (options.callers == 1).then(|| started.elapsed().as_secs_f64());
            match prediction(system, &sections, question, answer, seconds) {
                Ok(mut prediction) => {
                    if let Some(leaf) = prediction.gold {
                        prediction.train_examples = training.get(&leaf).copied().unwrap_or(0);
                    }
                    results.lock()[at] = Some(prediction);
                    asked(done.fetch_add(1, Ordering::Relaxed) + 1, of_split.len());
                }
                Err(error) => {
                    failure.lock().get_or_insert(error);
                    next.store(of_split.len(), Ordering::Relaxed);
                    return;
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..options.callers {
            scope.spawn(caller);
        }
        caller();
    });
    match failure.into_inner() {
        Some(error) => Err(error),
        None => Ok(results.into_inner().into_iter().flatten().collect()),
    }
}

/// The questions of `split`.
///
/// # Errors
///
/// [`Error::InvalidArgument`] when there are none.
pub fn of_split<'a>(questions: &'a [Question], split: &str) -> Result<Vec<&'a Question>> {
    let found: Vec<&Question> = questions.iter().filter(|q| q.split == split).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let splits: std::collections::BTreeSet<&str> =
        questions.iter().map(|q| q.split.as_str()).collect();
    let splits: Vec<&str> = splits.into_iter().collect();
    Err(Error::InvalidArgument(format!(
        "no question has the split {split:?}: the file has {}",
        splits.join(", ")
    )))
}

fn prediction(
    system: &dyn System,
    sections: &Sections,
    question: &Question,
    answer: Result<Answer>,
    seconds: Option<f64>,
) -> Result<Prediction> {
    let (mut answer, error) = match answer {
        Ok(answer) => (answer, None),
        Err(error) if is_the_questions(&error) => (Answer::default(), Some(error.to_string())),
        Err(error) => return Err(error),
    };
    // Whether a hit is a leaf is measured here, not taken from the system's word.
    for hit in &mut answer.hits {
        hit.section = hit
            .section
            .filter(|id| sections.is_leaf(*id, &hit.identifier));
    }
    Ok(Prediction {
        id: question.id.clone(),
        query: question.query.clone(),
        split: question.split.clone(),
        system: system.name().to_owned(),
        gold: match sections.gold(question) {
            Gold::Leaf(leaf) => Some(leaf),
            Gold::Orphan | Gold::Nothing => None,
        },
        gold_identifier: question.section.clone(),
        hits: answer.hits,
        legal_mass: answer.legal_mass,
        seconds: if error.is_none() { seconds } else { None },
        decodes: answer.decodes,
        tokens: answer.tokens,
        train_examples: 0,
        answerable: None,
        error,
    })
}
