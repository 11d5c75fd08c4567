//! A tokenizer from a `tokenizer.json`, for building where no model is at hand.

use super::{Special, Tokenizer, fingerprint};
use crate::error::{Error, Result};
use std::path::Path;

/// The tokenizer of a `tokenizer.json`, as Hugging Face's `tokenizers` writes it.
pub struct TokenizerJson {
    /// Reads the text of a special token as plain text.
    plain: tokenizers::Tokenizer,
    /// Reads it as the token.
    special: tokenizers::Tokenizer,
    vocab_size: u32,
    fingerprint: u64,
    end_of_text: Option<u32>,
}

impl TokenizerJson {
    /// Reads the file at `path`, and beside it, if it is there, `tokenizer_config.json`: only that
    /// says which token ends a text.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::NotAFile`] or [`Error::Tokenizer`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if path.is_dir() {
            return Err(Error::NotAFile(path.to_path_buf()));
        }
        let json = std::fs::read(path).map_err(|e| Error::io("read", path, e))?;
        let config = path.with_file_name("tokenizer_config.json");
        let config = match std::fs::read(&config) {
            Ok(config) => Some(config),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
            Err(e) => return Err(Error::io("read", config, e)),
        };
        Self::from_bytes(&json, config.as_deref())
    }

    /// Reads the bytes of a `tokenizer.json` and of its `tokenizer_config.json`.
    ///
    /// # Errors
    ///
    /// [`Error::Tokenizer`].
    pub fn from_bytes(json: &[u8], config: Option<&[u8]>) -> Result<Self> {
        let fail = |why: String| Error::Tokenizer(format!("{why}; give a tokenizer.json"));
        // Titles are neither cut, filled up nor decoded, and `tokenizers` panics on some decoders.
        let mut json: serde_json::Value =
            serde_json::from_slice(json).map_err(|e| fail(e.to_string()))?;
        if let Some(parts) = json.as_object_mut() {
            for unused in ["truncation", "padding", "post_processor", "decoder"] {
                parts.remove(unused);
            }
        }
        let mut plain: tokenizers::Tokenizer =
            serde_json::from_value(json).map_err(|e| fail(e.to_string()))?;
        let mut special = plain.clone();
        plain.set_encode_special_tokens(true);
        special.set_encode_special_tokens(false);

        let vocab = plain.get_vocab(true);
        let vocab_size = vocab.values().max().map_or(0, |&id| u64::from(id) + 1);
        let vocab_size = match u32::try_from(vocab_size) {
            Ok(size) if size > 0 && size as usize <= vocab.len().saturating_mul(2) => size,
            _ => {
                return Err(fail(format!(
                    "its {} tokens have ids up to {vocab_size}",
                    vocab.len()
                )));
            }
        };
        let mut texts = vec![""; vocab_size as usize];
        for (text, &id) in &vocab {
            texts[id as usize] = text;
        }
        let fingerprint = fingerprint(texts.iter().map(|text| text.as_bytes()));
        let end_of_text = match config {
            Some(config) => end_of_text(config)?.and_then(|text| vocab.get(&text).copied()),
            None => None,
        };
        Ok(Self {
            plain,
            special,
            vocab_size,
            fingerprint,
            end_of_text,
        })
    }
}

impl Tokenizer for TokenizerJson {
    fn encode(&self, text: &str, special: Special) -> Result<Vec<u32>> {
        let tokenizer = match special {
            Special::AsText => &self.plain,
            Special::AsToken => &self.special,
        };
        // Without offsets, and without the tokens that a post-processor would add around it.
        let encoding = tokenizer
            .encode_fast(text, false)
            .map_err(|error| Error::Tokenizer(error.to_string()))?;
        Ok(encoding.get_ids().to_vec())
    }

    fn vocab_size(&self) -> u32 {
        self.vocab_size
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    fn end_of_text(&self) -> Option<u32> {
        self.end_of_text
    }

    fn token(&self, text: &str) -> Option<u32> {
        self.plain.token_to_id(text)
    }
}

/// `eos_token` of a `tokenizer_config.json`: a text, or an object with the text as `content`.
fn end_of_text(config: &[u8]) -> Result<Option<String>> {
    let config: serde_json::Value = serde_json::from_slice(config)
        .map_err(|e| Error::Tokenizer(format!("tokenizer_config.json is not JSON: {e}")))?;
    let token = &config["eos_token"];
    let text = token.as_str().or_else(|| token["content"].as_str());
    Ok(text.map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TINY: &str = r#"{"version": "1.0", "truncation": {"max_length": 1, "strategy": "LongestFirst",
        "stride": 0, "direction": "Right"}, "added_tokens": [], "decoder": {"type": "ByteLevel"},
        "pre_tokenizer": {"type": "Whitespace"}, "model": {"type": "WordLevel",
        "vocab": {"By": 0, "train": 1, "[UNK]": 2}, "unk_token": "[UNK]"}}"#;

    #[test]
    fn parts_that_encode_nothing_are_passed_over() {
        let tokenizer = TokenizerJson::from_bytes(TINY.as_bytes(), None).expect("reads");
        let tokens = tokenizer.encode("By train train", Special::AsText);
        assert_eq!(tokens.expect("encodes"), [0, 1, 1]);
    }

    #[test]
    fn damage_is_an_error_wherever_it_is() {
        for at in 0..TINY.len() {
            let mut bytes = TINY.as_bytes().to_vec();
            bytes[at] = b'#';
            match TokenizerJson::from_bytes(&bytes, None) {
                Ok(_) => (),
                Err(error) => assert!(matches!(error, Error::Tokenizer(_)), "{error}"),
            }
            assert!(TokenizerJson::from_bytes(&TINY.as_bytes()[..at], None).is_err());
        }
    }
}
