//! Tokenizers: a text to the token ids of one vocabulary. Two kinds exist: the vocabulary inside a
//! GGUF model (`Model`) and a `tokenizer.json` ([`TokenizerJson`]).

#[cfg(feature = "building")]
mod json;

#[cfg(feature = "building")]
pub use json::TokenizerJson;

use crate::error::Result;
use xxhash_rust::xxh3::Xxh3Default;

/// How text that spells a special token (`<|im_end|>`) is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// As plain text. Questions and titles are always read so.
    AsText,
    /// As the token it names. Only a template's own texts may be read so.
    AsToken,
}

/// A text to the token ids of one vocabulary.
pub trait Tokenizer: Sync {
    /// The token ids of `text`, with nothing added before or after it.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Tokenizer`] when the tokenizer fails.
    fn encode(&self, text: &str, special: Special) -> Result<Vec<u32>>;

    /// As [`Self::encode`], in place of what `tokens` holds; a tokenizer may use its memory again.
    ///
    /// # Errors
    ///
    /// The same.
    fn encode_into(&self, text: &str, special: Special, tokens: &mut Vec<u32>) -> Result<()> {
        *tokens = self.encode(text, special)?;
        Ok(())
    }

    /// Number of tokens in the vocabulary, without unused ones at its end. Every id that
    /// [`Self::encode`] gives is below it.
    fn vocab_size(&self) -> u32;

    /// [`fingerprint`] of the vocabulary.
    fn fingerprint(&self) -> u64;

    /// The token that ends a generated text, if the vocabulary names one.
    fn end_of_text(&self) -> Option<u32>;

    /// The id of the token whose text is exactly `text`.
    fn token(&self, text: &str) -> Option<u32>;
}

/// XXH3-64 over every token's text in the order of the ids, each preceded by its length in bytes
/// as a little-endian `u32`: equal for a GGUF and the `tokenizer.json` that it was converted from.
pub fn fingerprint<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let mut hash = Xxh3Default::new();
    for text in texts {
        // A token longer than 4 GiB does not exist; if it did, its text is still hashed whole.
        hash.update(&(text.len() as u32).to_le_bytes());
        hash.update(text);
    }
    hash.digest()
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// A tokenizer for tests: one token a byte, and a terminator. Pure, total and boundary-stable.
    pub struct Bytes;

    impl Bytes {
        /// The token that ends a title.
        pub const END: u32 = 256;
    }

    impl Tokenizer for Bytes {
        fn encode(&self, text: &str, _: Special) -> Result<Vec<u32>> {
            Ok(text.bytes().map(u32::from).collect())
        }
        fn vocab_size(&self) -> u32 {
            257
        }
        fn fingerprint(&self) -> u64 {
            fingerprint((0..=255u8).map(|_| b"byte".as_slice()))
        }
        fn end_of_text(&self) -> Option<u32> {
            Some(Self::END)
        }
        fn token(&self, text: &str) -> Option<u32> {
            (text == "<end>").then_some(Self::END)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_tells_where_one_token_ends_and_the_next_begins() {
        let of = |texts: &[&str]| fingerprint(texts.iter().map(|t| t.as_bytes()));
        assert_eq!(of(&["ab", "c"]), of(&["ab", "c"]));
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&["a", "b"]), of(&["b", "a"]));
    }
}
