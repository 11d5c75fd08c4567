//! A text in parts: overlapping windows of words, and sentences.

use std::ops::RangeInclusive;
use unicode_segmentation::UnicodeSegmentation;

/// Slices of up to `size` words, of which each shares `overlap` words with the one before. Nothing
/// is left out: together they are the whole text. `overlap` is below `size`.
pub(super) fn windows(text: &str, size: usize, overlap: usize) -> Vec<&str> {
    let words: Vec<usize> = text.unicode_word_indices().map(|(at, _)| at).collect();
    let step = size.saturating_sub(overlap).max(1);
    let mut windows = Vec::new();
    let mut first = 0;
    loop {
        let start = match first {
            0 => 0,
            first => words[first],
        };
        let next = words.get(first + size).copied();
        let window = text[start..next.unwrap_or(text.len())].trim();
        if !window.is_empty() {
            windows.push(window);
        }
        if next.is_none() {
            return windows;
        }
        first += step;
    }
}

/// The sentences of `text` whose number of words lies in `words`.
pub(super) fn sentences(
    text: &str,
    words: RangeInclusive<usize>,
) -> impl Iterator<Item = &str> + '_ {
    text.unicode_sentences()
        .map(str::trim)
        .filter(move |sentence| {
            let most = words.end().saturating_add(1);
            words.contains(&sentence.unicode_words().take(most).count())
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn windows_overlap_and_reach_the_end() {
        for (text, expected) in [
            ("", &[][..]),
            ("...", &["..."]),
            ("a b", &["a b"]),
            ("a b c d", &["a b c d"]),
            ("a b c d e!", &["a b c d", "c d e!"]),
            ("a b c d e f g", &["a b c d", "c d e f", "e f g"]),
            ("日本語の夜が", &["日本語の", "語の夜が"]),
        ] {
            assert_eq!(windows(text, 4, 2), expected, "{text:?}");
        }
    }

    #[test]
    fn sentences_too_short_or_too_long_are_left_to_the_windows() {
        let text = "One two. One two three. One two three four five! Ja?";
        let found: Vec<_> = sentences(text, 3..=4).collect();
        assert_eq!(found, ["One two three."]);
    }

    proptest! {
        #[test]
        fn no_character_is_dropped(
            text in "[a-c.,\n 夜é]{0,60}", size in 1usize..6, overlap in 0usize..6
        ) {
            let overlap = overlap.min(size - 1);
            let mut seen = vec![false; text.len()];
            for window in windows(&text, size, overlap) {
                prop_assert!(window.unicode_words().count() <= size);
                let start = window.as_ptr() as usize - text.as_ptr() as usize;
                seen[start..start + window.len()].fill(true);
            }
            for (at, c) in text.char_indices() {
                prop_assert!(seen[at] || c.is_whitespace(), "{c:?} at {at}");
            }
        }
    }
}
