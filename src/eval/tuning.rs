//! What was chosen for one model over one index: the file that `stair tune` writes and `stair
//! retrieve` reads.
//!
//! It names the model and the index by hashes of their bytes. What was chosen for others says
//! nothing about these, so a file of others is as good as none.

use super::confidence::{Evidence, Statistic};
use super::predictions::Prediction;
use crate::error::{Error, Result};
use crate::files;
use crate::index::Index;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_128};

/// The version of the file that this library writes and reads. A change of the lexical scores or of a
/// statistic is a new one too: weights and thresholds that were chosen for the old say nothing about the
/// new.
const VERSION: u32 = 3;

/// What was chosen for one model over one index.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tuning {
    version: u32,
    /// XXH3 (128 bits) of the model's file, in hexadecimal digits.
    pub model: String,
    /// Length of the model's file in bytes.
    pub model_bytes: u64,
    /// XXH3 (128 bits) of the index, in hexadecimal digits.
    pub index: String,
    /// How much lexical evidence counts; 0 for not at all.
    pub lexical_weight: f32,
    /// When to say that no section answers; `None` when there was nothing to choose it on.
    pub refusal: Option<Refusal>,
    /// The split that it was chosen on.
    pub split: String,
    /// The figures of each weight on that split.
    pub weights: Vec<Weighed>,
}

/// When to say that no section answers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// What is compared with the threshold.
    pub statistic: Statistic,
    /// A question whose statistic is below it is refused.
    pub threshold: f64,
    /// The first so many hits go into the statistic.
    pub hits: usize,
    /// Questions that it was chosen on and no section answers.
    pub unanswerable: usize,
    /// Those of them that it refuses.
    pub unanswerable_refused: usize,
    /// Questions that it was chosen on and a section answers.
    pub answerable: usize,
    /// Those of them that it refuses.
    pub answerable_refused: usize,
    /// Probability that the statistic tells a question of the one kind from one of the other.
    pub area: f64,
}

/// The figures of one weight, fractions of 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weighed {
    /// The weight.
    pub weight: f32,
    /// Recall@1 with it.
    pub recall_at_1: f64,
    /// nDCG@3 with it.
    pub ndcg_at_3: f64,
}

impl Refusal {
    /// Whether a section seems to answer; `None` when the statistic is not there, as that of a
    /// question with too few hits.
    pub fn answerable(&self, evidence: &Evidence) -> Option<bool> {
        let value = self.statistic.value(evidence, self.hits)?;
        Some(value >= self.threshold)
    }

    /// Hits that a question must have for it.
    pub fn needs(&self) -> usize {
        self.statistic.needs(self.hits)
    }

    /// Writes into each prediction whether a section seems to answer its question.
    pub fn mark(&self, predictions: &mut [Prediction]) {
        for prediction in predictions {
            prediction.answerable = self.answerable(&Evidence::from(&*prediction));
        }
    }
}

impl Tuning {
    /// What was chosen for the model at `model` over `index`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the model cannot be read.
    pub fn new(
        model: &Path,
        index: &Index,
        split: String,
        weights: Vec<Weighed>,
        lexical_weight: f32,
        refusal: Option<Refusal>,
    ) -> Result<Self> {
        let (hash, bytes) = hash_file(model)?;
        Ok(Self {
            version: VERSION,
            model: hash,
            model_bytes: bytes,
            index: hex(xxh3_128(index.bytes())),
            lexical_weight,
            refusal,
            split,
            weights,
        })
    }

    /// Where the tuning of the model at `model` is looked for: beside it, `M.tune.json` for
    /// `M.gguf`.
    pub fn path(model: &Path) -> PathBuf {
        model.with_extension("tune.json")
    }

    /// Reads the file at `path`; `None` when there is none.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], or [`Error::InvalidArgument`] when it is not a tuning of this version.
    pub fn read(path: &Path) -> Result<Option<Self>> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("read", path, error)),
        };
        let fail = |what: String| {
            let path = path.display();
            Error::InvalidArgument(format!(
                "{path} is no tuning: {what}; make it with `stair tune`"
            ))
        };
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        // First: another version may have other fields.
        let version = serde_json::from_slice(&bytes).map_err(|e| fail(e.to_string()))?;
        let Version { version } = version;
        if version != VERSION {
            return Err(fail(format!(
                "its version is {version} and this library reads {VERSION}"
            )));
        }
        let tuning: Self = serde_json::from_slice(&bytes).map_err(|e| fail(e.to_string()))?;
        if !(tuning.lexical_weight.is_finite() && tuning.lexical_weight >= 0.0) {
            return Err(fail(
                "its lexical_weight is not a number from 0 up".to_owned(),
            ));
        }
        Ok(Some(tuning))
    }

    /// Writes it to `path`, whole or not at all.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] or [`Error::NotAFile`].
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut json = serde_json::to_vec_pretty(self)
            .map_err(|e| Error::Internal(format!("a tuning is not JSON: {e}")))?;
        json.push(b'\n');
        files::write_atomically(path, &json)
    }

    /// Whether it was made for the model at `model` and for `index`. Reads the whole model only if
    /// all else agrees.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the model cannot be read.
    pub fn belongs_to(&self, model: &Path, index: &Index) -> Result<bool> {
        if self.index != hex(xxh3_128(index.bytes())) {
            return Ok(false);
        }
        let bytes = std::fs::metadata(model)
            .map_err(|e| Error::io("read", model, e))?
            .len();
        Ok(bytes == self.model_bytes && hash_file(model)?.0 == self.model)
    }
}

/// The hash of the file at `path`, and its length in bytes.
fn hash_file(path: &Path) -> Result<(String, u64)> {
    let fail = |error| Error::io("read", path, error);
    let mut file = File::open(path).map_err(fail)?;
    let mut hash = Xxh3Default::new();
    let mut block = vec![0; 1 << 20];
    let mut bytes = 0;
    loop {
        match file.read(&mut block) {
            Ok(0) => return Ok((hex(hash.digest128()), bytes)),
            Ok(read) => {
                hash.update(&block[..read]);
                bytes += read as u64;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(fail(error)),
        }
    }
}

fn hex(hash: u128) -> String {
    format!("{hash:032x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{BuildOptions, build};
    use crate::toc::{ReadOptions, read_markdown};
    use crate::tokens::testing::Bytes;

    fn index(document: &str) -> Index {
        let toc = read_markdown(document.as_bytes(), "x", &ReadOptions::default()).expect("reads");
        let (bytes, _) = build(&toc, &Bytes, &BuildOptions::default(), &|_| {}).expect("builds");
        Index::from_bytes(&bytes).expect("opens")
    }

    fn refusal() -> Refusal {
        Refusal {
            statistic: Statistic::Share,
            threshold: 0.25,
            hits: 3,
            unanswerable: 10,
            unanswerable_refused: 9,
            answerable: 50,
            answerable_refused: 2,
            area: 0.9,
        }
    }

    #[test]
    fn a_tuning_is_read_as_it_was_written_and_knows_whose_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let (model, other) = (folder.path().join("m.gguf"), folder.path().join("o.gguf"));
        std::fs::write(&model, b"a model").expect("writes");
        std::fs::write(&other, b"no model").expect("writes");
        let (book, another) = (
            index("# A\n\n## B\n\nText.\n"),
            index("# A\n\n## C\n\nText.\n"),
        );
        let weights = vec![Weighed {
            weight: 0.3,
            recall_at_1: 0.5,
            ndcg_at_3: 0.6,
        }];
        let made = Tuning::new(
            &model,
            &book,
            "dev".to_owned(),
            weights,
            0.3,
            Some(refusal()),
        );
        let tuning = made.expect("reads the model");
        let path = Tuning::path(&model);
        assert_eq!(path, folder.path().join("m.tune.json"));
        assert_eq!(Tuning::read(&path).expect("reads"), None);
        tuning.write(&path).expect("writes");
        assert_eq!(Tuning::read(&path).expect("reads"), Some(tuning.clone()));
        assert!(tuning.belongs_to(&model, &book).expect("reads"));
        assert!(!tuning.belongs_to(&other, &book).expect("reads"));
        assert!(!tuning.belongs_to(&model, &another).expect("reads"));
        std::fs::write(&model, b"A model").expect("writes");
        assert!(!tuning.belongs_to(&model, &book).expect("reads"));
        std::fs::write(&path, b"{}").expect("writes");
        let error = Tuning::read(&path).expect_err("no tuning").to_string();
        assert!(error.contains("stair tune"), "{error}");
    }

    #[test]
    fn the_threshold_itself_is_not_refused() {
        let evidence = |scores: &[f64]| Evidence {
            words: 1,
            scores: scores.to_vec(),
            log_prob: None,
            legal_mass: None,
        };
        let mut refusal = refusal();
        assert_eq!(refusal.answerable(&evidence(&[1.0, 0.0])), Some(true));
        assert_eq!(refusal.answerable(&evidence(&[])), None);
        refusal.statistic = Statistic::Score;
        assert_eq!(refusal.answerable(&evidence(&[0.25])), Some(true));
        assert_eq!(refusal.answerable(&evidence(&[0.2])), Some(false));
    }
}
