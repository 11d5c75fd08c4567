//! Several systems over the same questions: every pair of them, tested.

use super::metrics::{ndcg, recall};
use super::predictions::{Gold, Prediction};
use super::randomization::{Difference, compare};
use super::summary::Summary;
use crate::error::{Error, Result};
use serde::Serialize;
use std::collections::BTreeMap;

/// Questions that an error names before it only counts them.
const NAMED: usize = 5;

/// Systems over the same questions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The figures of each system, in the order they came in.
    pub systems: Vec<Summary>,
    /// Every pair of them, the earlier one first. Their p-values are not corrected for the number
    /// of pairs.
    pub pairs: Vec<Pair>,
}

/// Two systems over the questions that a leaf answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pair {
    /// The first system's name.
    pub a: String,
    /// The second system's name.
    pub b: String,
    /// How they differ at Recall@1.
    pub recall_at_1: Difference,
    /// How they differ at Recall@3.
    pub recall_at_3: Difference,
    /// How they differ at nDCG@3.
    pub ndcg_at_3: Difference,
}

/// Compares `systems`, each a file's name and its predictions.
///
/// # Errors
///
/// [`Error::InvalidArgument`] when two have the same system's name, or when they are not over the
/// same questions with the same answers; it says which differ.
pub fn compare_all(systems: &[(String, Vec<Prediction>)]) -> Result<Comparison> {
    let mut summaries: Vec<Summary> = Vec::new();
    for (file, predictions) in systems {
        let summary = Summary::new(predictions);
        if summaries.iter().any(|other| other.system == summary.system) {
            return Err(Error::InvalidArgument(format!(
                "{file} is the second file of a system {:?}: give one of them another name \
                 (`stair eval --name`), or leave one out",
                summary.system
            )));
        }
        summaries.push(summary);
    }
    if let Some((first, rest)) = systems.split_first() {
        for other in rest {
            same_questions(first, other)?;
        }
    }
    let values: Vec<Values> = systems.iter().map(|(_, of)| Values::new(of)).collect();
    let mut pairs = Vec::new();
    for (i, a) in values.iter().enumerate() {
        for (j, b) in values.iter().enumerate().skip(i + 1) {
            pairs.push(Pair {
                a: summaries[i].system.clone(),
                b: summaries[j].system.clone(),
                recall_at_1: compare(&a.recall_at_1, &b.recall_at_1),
                recall_at_3: compare(&a.recall_at_3, &b.recall_at_3),
                ndcg_at_3: compare(&a.ndcg_at_3, &b.ndcg_at_3),
            });
        }
    }
    Ok(Comparison {
        systems: summaries,
        pairs,
    })
}

/// A system's values at the questions that a leaf answers, in the order of the questions' ids.
struct Values {
    recall_at_1: Vec<f64>,
    recall_at_3: Vec<f64>,
    ndcg_at_3: Vec<f64>,
}

impl Values {
    fn new(predictions: &[Prediction]) -> Self {
        let ranks: Vec<Option<usize>> = by_id(predictions)
            .values()
            .filter(|prediction| matches!(prediction.gold(), Gold::Leaf(_)))
            .map(|prediction| prediction.rank())
            .collect();
        Self {
            recall_at_1: ranks.iter().map(|rank| recall(*rank, 1)).collect(),
            recall_at_3: ranks.iter().map(|rank| recall(*rank, 3)).collect(),
            ndcg_at_3: ranks.iter().map(|rank| ndcg(*rank, 3)).collect(),
        }
    }
}

fn by_id(predictions: &[Prediction]) -> BTreeMap<&str, &Prediction> {
    predictions.iter().map(|p| (p.id.as_str(), p)).collect()
}

fn same_questions(a: &(String, Vec<Prediction>), b: &(String, Vec<Prediction>)) -> Result<()> {
    let (in_a, in_b) = (by_id(&a.1), by_id(&b.1));
    let missing = |from: &BTreeMap<&str, &Prediction>, of: &BTreeMap<&str, &Prediction>| {
        let ids = of.keys().filter(|id| !from.contains_key(**id));
        ids.map(|id| (*id).to_owned()).collect::<Vec<String>>()
    };
    let mut reasons = Vec::new();
    let only = [(&a.0, missing(&in_b, &in_a)), (&b.0, missing(&in_a, &in_b))];
    for (file, ids) in only {
        if !ids.is_empty() {
            reasons.push(format!("only {file} has {}", listed(&ids)));
        }
    }
    let other = |differs: fn(&Prediction, &Prediction) -> bool| -> Vec<String> {
        let both = in_a
            .iter()
            .filter_map(|(id, p)| Some((id, p, in_b.get(id)?)));
        both.filter(|(_, p, q)| differs(p, q))
            .map(|(id, _, _)| (*id).to_owned())
            .collect()
    };
    for (what, ids) in [
        ("the question", other(|p, q| p.query != q.query)),
        ("the split", other(|p, q| p.split != q.split)),
        (
            "the gold section",
            other(|p, q| p.gold != q.gold || p.gold_identifier != q.gold_identifier),
        ),
    ] {
        if !ids.is_empty() {
            reasons.push(format!("{what} differs at {}", listed(&ids)));
        }
    }
    match reasons.is_empty() {
        true => Ok(()),
        false => Err(Error::InvalidArgument(format!(
            "{} and {} are not over the same questions: {}; evaluate both on one file and split",
            a.0,
            b.0,
            reasons.join("; ")
        ))),
    }
}

fn listed(ids: &[String]) -> String {
    let named = ids[..ids.len().min(NAMED)].join(", ");
    match ids.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::predictions::tests::prediction;
    use super::*;

    fn system(name: &str, answers: &[(&str, Option<u32>, &[u32])]) -> (String, Vec<Prediction>) {
        let predictions = answers
            .iter()
            .map(|(id, gold, sections)| {
                let mut prediction = prediction(id, *gold, sections);
                prediction.system = name.to_owned();
                prediction
            })
            .collect();
        (format!("{name}.jsonl"), predictions)
    }

    #[test]
    fn questions_are_paired_by_id_in_whatever_order_they_stand() {
        let a = system(
            "a",
            &[
                ("1", Some(4), &[4]),
                ("2", Some(5), &[5]),
                ("3", None, &[4]),
            ],
        );
        let b = system(
            "b",
            &[
                ("3", None, &[1]),
                ("2", Some(5), &[4, 5]),
                ("1", Some(4), &[4]),
            ],
        );
        let comparison = compare_all(&[a, b]).expect("compares");
        let [pair] = &comparison.pairs[..] else {
            panic!("{comparison:?}");
        };
        assert_eq!((pair.recall_at_1.better, pair.recall_at_1.worse), (1, 0));
        assert_eq!(pair.recall_at_1.difference, 0.5);
        assert_eq!(pair.recall_at_3.difference, 0.0);
    }

    #[test]
    fn three_systems_are_three_pairs() {
        let systems = ["a", "b", "c"].map(|name| system(name, &[("1", Some(4), &[4])]));
        let pairs = compare_all(&systems).expect("compares").pairs;
        let names: Vec<String> = pairs.iter().map(|p| format!("{}{}", p.a, p.b)).collect();
        assert_eq!(names, ["ab", "ac", "bc"]);
    }

    #[test]
    fn other_questions_are_refused_by_name() {
        let a = system("a", &[("1", Some(4), &[4]), ("2", Some(5), &[5])]);
        for (b, words) in [
            (system("b", &[("1", Some(4), &[4])]), "only a.jsonl has 2"),
            (
                system("b", &[("1", Some(5), &[4]), ("2", Some(5), &[5])]),
                "the gold section differs at 1",
            ),
            (
                system("a", &[("1", Some(4), &[4])]),
                "second file of a system",
            ),
        ] {
            let error = compare_all(&[a.clone(), b])
                .expect_err("refused")
                .to_string();
            assert!(error.contains(words), "no {words:?} in: {error}");
        }
    }
}
