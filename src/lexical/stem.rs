//! English singulars and plurals as one.
//!
//! The S-stemmer of Harman, *How effective is suffixing?* (JASIS 42(1), 1991): the lightest there
//! is. It only takes off what makes a plural, so words of other languages come to no harm. On the
//! training and development questions of two textbooks the Snowball stemmer for English (crate
//! `rust-stemmers`) ranked no better.

/// Takes the plural ending off `word`, which is in lower case. Only words of ASCII letters change.
pub(crate) fn stem(word: &mut String) {
    if !word.bytes().all(|byte| byte.is_ascii_lowercase()) || word.len() < 3 {
        return;
    }
    let ends = |suffixes: &[&str]| suffixes.iter().any(|suffix| word.ends_with(suffix));
    // The first rule whose ending fits decides, also when an exception keeps it from acting.
    if ends(&["ies"]) {
        if word.len() > 3 && !ends(&["eies", "aies"]) {
            word.truncate(word.len() - 3);
            word.push('y');
        }
    } else if ends(&["es"]) {
        if !ends(&["aes", "ees", "oes"]) {
            word.pop();
        }
    } else if ends(&["s"]) && !ends(&["us", "ss"]) {
        word.pop();
    }
}

#[cfg(test)]
mod tests {
    fn stem(word: &str) -> String {
        let mut word = word.to_owned();
        super::stem(&mut word);
        word
    }

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
