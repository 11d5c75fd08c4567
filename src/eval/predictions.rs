//! The predictions file: what one system answered to each question, one JSON object a line.
//!
//! It is the interface between systems. Whatever writes it, in any language, can be compared with
//! whatever else writes it; `docs/evaluation.md` describes each field for those who do. Reading is
//! strict, because a figure over a half-understood file looks like any other figure.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::Path;

/// What one system answered to one question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prediction {
    /// The question's id.
    pub id: String,
    /// The question.
    pub query: String,
    /// The split it belongs to.
    pub split: String,
    /// The system's name; the same on every line of a file.
    pub system: String,
    /// The id of the leaf that answers it; `None` when no leaf does, or when the file of questions
    /// names a section that is no leaf of the index.
    pub gold: Option<u32>,
    /// What the file of questions calls that section; `None` when no section answers the question.
    pub gold_identifier: Option<String>,
    /// The sections found, best first.
    pub hits: Vec<PredictedHit>,
    /// Probability on legal tokens along the best hit, 0 to 1; `None` for a system without a model.
    #[serde(default)]
    pub legal_mass: Option<f64>,
    /// Seconds for the answer, asked alone; `None` when questions shared the machine.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// Decodes spent; `None` for a system without a model.
    #[serde(default)]
    pub decodes: Option<u32>,
    /// Tokens evaluated, the question's own included; `None` for a system without a model.
    #[serde(default)]
    pub tokens: Option<u32>,
    /// Number of training questions whose answer is the gold leaf.
    #[serde(default)]
    pub train_examples: u32,
    /// Whether the system held the question for answerable; `None` when it takes no stand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answerable: Option<bool>,
    /// Why there is no answer, when the system refused the question itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// One section that a system gave as an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PredictedHit {
    /// The leaf's id in the index; `None` when what the system named is no leaf.
    pub section: Option<u32>,
    /// Number and title, as the system gave them.
    pub identifier: String,
    /// What the system ranks by: higher is better.
    pub score: f64,
    /// Natural logarithm of the probability of the title; `None` for a system without a model.
    #[serde(default)]
    pub log_prob: Option<f64>,
    /// Lexical score; `None` for a system without one.
    #[serde(default)]
    pub lexical: Option<f64>,
}

/// What a question asks for, as far as the index can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gold {
    /// A leaf answers it.
    Leaf(u32),
    /// It names a section that is no leaf of the index, so no system can be right.
    Orphan,
    /// No section answers it.
    Nothing,
}

impl Prediction {
    /// What the question asks for.
    pub fn gold(&self) -> Gold {
        match (self.gold, &self.gold_identifier) {
            (Some(leaf), _) => Gold::Leaf(leaf),
            (None, Some(_)) => Gold::Orphan,
            (None, None) => Gold::Nothing,
        }
    }

    /// Position of the gold leaf among the hits, from 1.
    pub fn rank(&self) -> Option<usize> {
        let gold = self.gold?;
        let at = self.hits.iter().position(|hit| hit.section == Some(gold))?;
        Some(at + 1)
    }

    fn check(&self) -> std::result::Result<(), String> {
        if self.id.is_empty() || self.query.trim().is_empty() || self.system.is_empty() {
            return Err("`id`, `query` and `system` must not be empty".to_owned());
        }
        if self.gold.is_some() && self.gold_identifier.is_none() {
            return Err("`gold` is given without `gold_identifier`".to_owned());
        }
        let mut seen = HashSet::new();
        let mut last = f64::INFINITY;
        for (i, hit) in self.hits.iter().enumerate() {
            if let Some(section) = hit.section
                && !seen.insert(section)
            {
                return Err(format!("hit {} repeats section {section}", i + 1));
            }
            // serde_json reads no NaN; an infinity comes from a number like 1e999.
            if !hit.score.is_finite() || hit.score > last {
                return Err(format!(
                    "hit {} has score {} after {last}: hits stand best first",
                    i + 1,
                    hit.score
                ));
            }
            last = hit.score;
            if hit.log_prob.is_some_and(|p| !p.is_finite() || p > 1e-3) {
                return Err(format!(
                    "hit {} has a `log_prob` above 0: it is the logarithm of a probability",
                    i + 1
                ));
            }
        }
        let negative = |value: Option<f64>| value.is_some_and(|v| !v.is_finite() || v < 0.0);
        match negative(self.seconds) || negative(self.legal_mass) {
            true => Err("`seconds` and `legal_mass` must not be negative".to_owned()),
            false => Ok(()),
        }
    }
}

/// Reads the predictions file at `path`: one system, each question once.
///
/// # Errors
///
/// [`Error::Io`], or [`Error::InvalidArgument`] with the line that is wrong.
pub fn read(path: impl AsRef<Path>) -> Result<Vec<Prediction>> {
    let path = path.as_ref();
    if path.is_dir() {
        return Err(Error::NotAFile(path.to_path_buf()));
    }
    let bytes = std::fs::read(path).map_err(|e| Error::io("read", path, e))?;
    parse(&bytes, &path.display().to_string())
}

/// Reads predictions out of memory; `name` is the file's name in errors.
///
/// # Errors
///
/// [`Error::InvalidArgument`] with the line that is wrong.
pub fn parse(bytes: &[u8], name: &str) -> Result<Vec<Prediction>> {
    let mut predictions: Vec<Prediction> = Vec::new();
    let mut ids = HashSet::new();
    for (i, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let fail = |what: String| {
            let hint = "docs/evaluation.md describes predictions";
            Error::InvalidArgument(format!("{name}, line {}: {what}; {hint}", i + 1))
        };
        let prediction: Prediction =
            serde_json::from_slice(line).map_err(|e| fail(json_message(&e)))?;
        prediction.check().map_err(fail)?;
        if !ids.insert(prediction.id.clone()) {
            return Err(fail(format!("id {:?} stands twice", prediction.id)));
        }
        if let Some(first) = predictions.first()
            && first.system != prediction.system
        {
            let (a, b) = (&first.system, &prediction.system);
            return Err(fail(format!("system {b:?} in a file of system {a:?}")));
        }
        predictions.push(prediction);
    }
    match predictions.is_empty() {
        true => Err(Error::InvalidArgument(format!(
            "{name} has no predictions: write it with `stair eval --out`"
        ))),
        false => Ok(predictions),
    }
}

/// The bytes of a predictions file.
///
/// # Errors
///
/// [`Error::Internal`] when a prediction cannot be written as JSON.
pub fn format(predictions: &[Prediction]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for prediction in predictions {
        serde_json::to_writer(&mut bytes, prediction)
            .map_err(|e| Error::Internal(format!("a prediction is not JSON: {e}")))?;
        bytes.push(b'\n');
    }
    Ok(bytes)
}

/// serde_json's message without its own position: a line of the file is one of its documents, so
/// it always says line 1.
fn json_message(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let column = error.column();
    match text.rsplit_once(" at line ") {
        Some((message, _)) => format!("{message} (column {column})"),
        None => text,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A prediction whose hits are `sections`, best first, with falling scores.
    pub(crate) fn prediction(id: &str, gold: Option<u32>, sections: &[u32]) -> Prediction {
        Prediction {
            id: id.to_owned(),
            query: format!("question {id}"),
            split: "test".to_owned(),
            system: "a".to_owned(),
            gold,
            gold_identifier: gold.map(|id| format!("{id} Section")),
            hits: sections
                .iter()
                .enumerate()
                .map(|(i, section)| PredictedHit {
                    section: Some(*section),
                    identifier: format!("{section} Section"),
                    score: -(i as f64) - 0.5,
                    log_prob: Some(-(i as f64) - 0.5),
                    lexical: None,
                })
                .collect(),
            legal_mass: Some(0.9),
            seconds: Some(0.25),
            decodes: Some(5),
            tokens: Some(40),
            train_examples: 3,
            answerable: None,
            error: None,
        }
    }

    fn message(text: &str) -> String {
        parse(text.as_bytes(), "p.jsonl")
            .expect_err("refused")
            .to_string()
    }

    #[test]
    fn what_was_written_is_read_again() {
        let all = vec![
            prediction("1", Some(4), &[2, 4]),
            prediction("2", None, &[7]),
            prediction("3", Some(1), &[]),
        ];
        let bytes = format(&all).expect("writes");
        assert_eq!(parse(&bytes, "p").expect("reads"), all);
        assert_eq!(all[0].rank(), Some(2));
        assert_eq!(all[1].rank(), None);
        assert_eq!(all[2].rank(), None);
    }

    #[test]
    fn numbers_are_read_back_to_the_bit() {
        let mut all = Vec::new();
        // Sums of logarithms as a search makes them, of every size.
        let mut bits = 1u64;
        for id in 0..2000 {
            let mut random = || {
                bits = bits
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                (bits >> 11) as f64 / (1u64 << 53) as f64
            };
            let mut prediction = prediction(&id.to_string(), Some(1), &[1]);
            let hit = &mut prediction.hits[0];
            let log_prob: f64 = (0..8).map(|_| random().ln()).sum();
            hit.log_prob = Some(log_prob * random().powi(id % 40));
            hit.score = log_prob + random();
            hit.lexical = Some((random() as f32).into());
            prediction.legal_mass = Some(random());
            prediction.seconds = Some(random() * 1e-3);
            all.push(prediction);
        }
        let numbers = |all: &[Prediction]| -> Vec<[u64; 5]> {
            let bits = |number: Option<f64>| number.expect("a number").to_bits();
            let of = |p: &Prediction| {
                let hit = &p.hits[0];
                [
                    hit.score.to_bits(),
                    bits(hit.log_prob),
                    bits(hit.lexical),
                    bits(p.legal_mass),
                    bits(p.seconds),
                ]
            };
            all.iter().map(of).collect()
        };
        let read = parse(&format(&all).expect("writes"), "p").expect("reads");
        assert!(numbers(&read) == numbers(&all));
    }

    #[test]
    fn optional_fields_may_be_missing() {
        let line = r#"{"id":"1","query":"q","split":"test","system":"other","gold":null,"gold_identifier":"9 Gone","hits":[{"section":null,"identifier":"Made up","score":1.5}]}"#;
        let read = parse(line.as_bytes(), "p").expect("reads");
        assert_eq!(read[0].gold(), Gold::Orphan);
        assert_eq!(read[0].hits[0].section, None);
    }

    #[test]
    fn errors_name_file_line_and_reason() {
        let good = String::from_utf8(format(&[prediction("1", Some(4), &[2])]).unwrap()).unwrap();
        for (text, words) in [
            (format!("{good}\n{{"), "line 3"),
            (format!("{good}{good}"), "stands twice"),
            (good.replace("\"query\"", "\"question\""), "unknown field"),
            (good.replace("\"system\":\"a\",", ""), "missing field"),
            (String::new(), "no predictions"),
            (
                format!(
                    "{good}{}",
                    good.replace("\"a\"", "\"b\"").replace("\"1\"", "\"2\"")
                ),
                "in a file of system",
            ),
            (
                good.replace("[{", "[{\"section\":9,\"identifier\":\"\",\"score\":-3},{"),
                "best first",
            ),
            (
                good.replace("\"log_prob\":-0.5", "\"log_prob\":0.5"),
                "above 0",
            ),
        ] {
            let message = message(&text);
            assert!(message.contains(words), "no {words:?} in: {message}");
            assert!(message.contains("p.jsonl"), "{message}");
        }
    }
}
