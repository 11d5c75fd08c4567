//! The wrong answers that are most worth reading: those that the system was surest of.

use crate::eval::predictions::{Gold, PredictedHit, Prediction};

/// Wrong answers that a report shows of each system.
pub(super) const SHOWN: usize = 20;

/// The wrong answers to questions that a leaf answers, the surest first.
pub(super) fn wrong(predictions: &[Prediction]) -> Vec<&Prediction> {
    surest(predictions, |prediction| {
        matches!(prediction.gold(), Gold::Leaf(_)) && prediction.rank() != Some(1)
    })
}

/// The answers to questions that no section answers, the surest first; without those that the
/// system refused.
pub(super) fn unfounded(predictions: &[Prediction]) -> Vec<&Prediction> {
    surest(predictions, |prediction| {
        prediction.gold() == Gold::Nothing && prediction.answerable != Some(false)
    })
}

fn surest(predictions: &[Prediction], wanted: impl Fn(&Prediction) -> bool) -> Vec<&Prediction> {
    let mut found: Vec<&Prediction> = predictions
        .iter()
        .filter(|prediction| wanted(prediction) && !prediction.hits.is_empty())
        .collect();
    found.sort_by(|a, b| sureness(b).total_cmp(&sureness(a)));
    found.truncate(SHOWN);
    found
}

/// Scores of one system compare among themselves: the probability where there is one, else how far
/// the best hit is ahead of the next.
fn sureness(prediction: &Prediction) -> f64 {
    let score = |place: usize| prediction.hits.get(place).map(|hit| hit.score);
    match prediction.hits.first() {
        None => f64::NEG_INFINITY,
        Some(PredictedHit {
            log_prob: Some(log_prob),
            ..
        }) => *log_prob,
        Some(best) => best.score - score(1).unwrap_or(0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::predictions::tests::prediction;

    #[test]
    fn the_surest_mistakes_come_first() {
        let sure = |id, gold, log_prob| {
            let mut prediction = prediction(id, gold, &[1, 2]);
            prediction.hits[0].log_prob = Some(log_prob);
            prediction
        };
        let all = [
            sure("right", Some(1), -0.1),
            sure("doubtful", Some(2), -3.0),
            sure("sure", Some(2), -0.2),
            sure("no answer", None, -1.0),
        ];
        let ids = |found: Vec<&Prediction>| -> Vec<String> {
            found.iter().map(|p| p.id.clone()).collect()
        };
        assert_eq!(ids(wrong(&all)), ["sure", "doubtful"]);
        assert_eq!(ids(unfounded(&all)), ["no answer"]);
    }
}
