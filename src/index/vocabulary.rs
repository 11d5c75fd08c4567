//! Whether an index and a vocabulary go together.

use super::view::Index;
use crate::error::{Error, Result};
use crate::tokens::Tokenizer;

/// Checks that tokenizer and index agree about every title, to the token: a title that the model
/// would spell otherwise could be found only by accident.
///
/// # Errors
///
/// [`Error::VocabularyMismatch`], naming the first title that differs; what the tokenizer says.
pub fn check(index: &Index, tokenizer: &dyn Tokenizer) -> Result<()> {
    let (found, expected) = (tokenizer.vocab_size(), index.vocab_size());
    if found != expected {
        let what = format!("it has {expected} tokens and the model's has {found}");
        return Err(Error::VocabularyMismatch(what));
    }
    if tokenizer.fingerprint() != index.fingerprint() {
        let what = format!(
            "its fingerprint is {:016x} and the model's is {:016x}",
            index.fingerprint(),
            tokenizer.fingerprint()
        );
        return Err(Error::VocabularyMismatch(what));
    }
    let trie = index.trie();
    let titles = index.question().titles(tokenizer, index.terminator())?;
    for section in (0..index.sections()).filter_map(|id| index.section(id)) {
        if !section.leaf {
            continue;
        }
        let identifier = section.identifier();
        let node = trie.find(&titles.encode(&identifier)?);
        if node.and_then(|node| trie.section(node)) != Some(section.id) {
            let what = format!("the model's tokens for {identifier:?} differ from the index's");
            return Err(Error::VocabularyMismatch(what));
        }
    }
    Ok(())
}
