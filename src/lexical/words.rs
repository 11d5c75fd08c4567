//! A text as words.

use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

/// Gives every word of `text`, in order, each in `word`, which may be changed.
///
/// Words are those of Unicode's standard annex 29 that have a letter or a digit; in scripts
/// without spaces between words a character is a word. They come in lower case and compatibility
/// composition (NFKC), so that it does not matter how a letter with an accent or a ligature was
/// encoded, without the English `'s`, with an apostrophe that is always `'`, and without what only says
/// where a word may be parted. Letters that change with case in more than one way are one: final sigma,
/// sharp s, the dotted I.
pub(super) fn words(text: &str, word: &mut String, mut each: impl FnMut(&mut String)) {
    for found in text.unicode_words() {
        word.clear();
        if found.is_ascii() {
            word.push_str(found);
            word.make_ascii_lowercase();
        } else {
            for c in found.nfkc().flat_map(char::to_lowercase) {
                match c {
                    '\u{ad}' | '\u{2060}' | '\u{feff}' => (),
                    '\u{307}' if word.ends_with('i') => (),
                    'ß' => word.push_str("ss"),
                    'ς' => word.push('σ'),
                    '\u{2019}' => word.push('\''),
                    c => word.push(c),
                }
            }
        }
        if word.ends_with("'s") {
            word.truncate(word.len() - 2);
        }
        each(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        words(text, &mut String::new(), |word| all.push(word.clone()));
        all
    }

    #[test]
    fn words_are_without_case_and_punctuation() {
        assert_eq!(
            all("Section 4.2: **Don't** pay—twice!"),
            ["section", "4.2", "don't", "pay", "twice"]
        );
        assert_eq!(
            all("the cell\u{2019}s wall, the CELL'S"),
            ["the", "cell", "wall", "the", "cell"]
        );
        assert!(all(" -- \u{200B} ?! ").is_empty());
    }

    #[test]
    fn the_same_letters_are_the_same_word_however_encoded() {
        assert_eq!(all("Ku\u{308}ndigung"), all("K\u{FC}NDIGUNG"));
        assert_eq!(all("\u{FB01}nal"), ["final"]);
        assert_eq!(all("em\u{AD}ploy\u{2060}ment"), ["employment"]);
        for (one, other) in [
            ("İSTANBUL", "istanbul"),
            ("ΦΌΡΟΣ", "φόρος"),
            ("STRASSE", "Straße"),
        ] {
            assert_eq!(all(one), all(other));
        }
    }

    #[test]
    fn other_scripts_have_words_too() {
        assert_eq!(all("Как УВОЛИТЬСЯ?"), ["как", "уволиться"]);
        assert_eq!(all("微生物"), ["微", "生", "物"]);
        assert_eq!(all("वायरस क्या है"), ["वायरस", "क्या", "है"]);
    }
}
