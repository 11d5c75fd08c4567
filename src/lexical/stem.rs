//! English singulars and plurals as one.
//!
//! The S-stemmer of Harman, *How effective is suffixing?* (JASIS 42(1), 1991): the lightest there
//! is. It only takes off what makes a plural, so words of other languages come to no harm. On the
//! training and development questions of two textbooks the Snowball stemmer for English (crate
//! `rust-stemmers`) ranked no better.

use std::borrow::Cow;

/// The word without its plural ending. Only words of ASCII letters change; `word` is in lower
/// case.
pub(super) fn stem(word: &str) -> Cow<'_, str> {
    let ends = |suffixes: &[&str]| suffixes.iter().any(|suffix| word.ends_with(suffix));
    let without = |count| &word[..word.len() - count];
    if !word.bytes().all(|byte| byte.is_ascii_lowercase()) || word.len() < 3 {
        return word.into();
    }
    // The first rule whose ending fits decides, also when an exception keeps it from acting.
    if ends(&["ies"]) {
        match word.len() > 3 && !ends(&["eies", "aies"]) {
            true => format!("{}y", without(3)).into(),
            false => word.into(),
        }
    } else if ends(&["es"]) {
        match ends(&["aes", "ees", "oes"]) {
            true => word.into(),
            false => without(1).into(),
        }
    } else if ends(&["s"]) && !ends(&["us", "ss"]) {
        without(1).into()
    } else {
        word.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plurals_become_singulars() {
        let pairs = [
            ("cells", "cell"),
            ("viruses", "viruse"),
            ("bodies", "body"),
            ("diseases", "disease"),
            ("types", "type"),
        ];
        for (plural, singular) in pairs {
            assert_eq!(stem(plural), singular);
        }
    }

    #[test]
    fn what_is_no_plural_stays() {
        for word in [
            "virus", "glass", "shoes", "trees", "as", "ies", "algae", "cell", "s", "",
        ] {
            assert_eq!(stem(word), word);
        }
    }

    #[test]
    fn words_of_other_scripts_and_with_digits_stay() {
        for word in ["основы", "años", "größes", "h2os", "4.2", "don's"] {
            assert_eq!(stem(word), word);
        }
    }
}
