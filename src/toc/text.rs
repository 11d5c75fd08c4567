//! Text of titles and sections: whitespace, blankness and word counts.

use unicode_segmentation::UnicodeSegmentation;

/// `text` on one line: every run of whitespace (line breaks and no-break spaces too) becomes one
/// space, and none is left at the ends. Any other control character becomes U+FFFD, as CommonMark
/// has it for NUL: a title is printed and handed to C, where such a character could do harm.
pub(super) fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.extend(word.chars().map(|c| match c {
            c if c.is_control() => char::REPLACEMENT_CHARACTER,
            c => c,
        }));
    }
    folded
}

/// Whether `text` has nothing to see: whitespace, control characters and what Unicode leaves invisible
/// where it is not supported (Default_Ignorable_Code_Point).
pub(crate) fn is_blank(text: &str) -> bool {
    let invisible = |c: char| {
        c.is_whitespace()
            || c.is_control()
            || matches!(
                c,
                '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}'
            )
            || matches!(c, '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}')
            || matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}')
    };
    text.chars().all(invisible)
}

/// `text` without the blank lines before it and the whitespace after it. The first line keeps its
/// indentation, which says what it is (code, a list).
pub(super) fn trim_lines(text: &str) -> &str {
    let text = text.trim_end();
    let blank = text.len() - text.trim_start().len();
    let line = text[..blank].rfind('\n').map_or(0, |newline| newline + 1);
    &text[line..]
}

/// Whether `text` has more than `limit` words. Words are Unicode's, so that scripts without spaces
/// count too; HTML tags, comments and the targets of links are not words. Stops at the first line
/// that decides.
pub(super) fn has_more_words(text: &str, limit: usize) -> bool {
    let mut words = 0;
    let mut in_comment = false;
    let mut plain = String::new();
    for line in text.lines() {
        plain.clear();
        strip_markup(line, &mut in_comment, &mut plain);
        words += plain.unicode_words().take(limit + 1).count();
        if words > limit {
            return true;
        }
    }
    false
}

/// Appends `line` to `plain` without comments, tags and link targets. `in_comment` is whether a
/// comment is open, before the line and after it.
pub(crate) fn strip_markup(line: &str, in_comment: &mut bool, plain: &mut String) {
    let mut rest = line;
    // Once a search for a closing character has failed it fails for the rest of the line; asking
    // again at each opening one would take quadratic time.
    let (mut tags_close, mut links_close) = (true, true);
    loop {
        if *in_comment {
            let Some(end) = rest.find("-->") else {
                return;
            };
            *in_comment = false;
            rest = &rest[end + 3..];
        }
        let Some(at) = rest.find(['<', ']']) else {
            plain.push_str(rest);
            return;
        };
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(comment) = rest.strip_prefix("<!--") {
            *in_comment = true;
            rest = comment;
            continue;
        }
        let is_tag = rest.starts_with('<')
            && rest[1..].starts_with(|c: char| c == '/' || c.is_ascii_alphabetic());
        let mut end = None;
        if is_tag && tags_close {
            end = rest.find('>');
            tags_close = end.is_some();
        } else if rest.starts_with("](") && links_close {
            end = rest.find(')');
            links_close = end.is_some();
        }
        plain.push(' ');
        // `<` and `]` are one byte each, and so are `>` and `)`.
        rest = &rest[end.unwrap_or(0) + 1..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whitespace_of_every_kind_folds_to_one_space() {
        for (text, folded) in [
            ("  a \t b\r\nc ", "a b c"),
            ("a\u{a0}\u{a0}b\u{2003}c\u{2028}d", "a b c d"),
            ("\u{a0}", ""),
            ("a\0b\u{1b}[31m", "a\u{fffd}b\u{fffd}[31m"),
            (
                "👩\u{200d}🔬 می\u{200c}خواهم",
                "👩\u{200d}🔬 می\u{200c}خواهم",
            ),
        ] {
            assert_eq!(fold(text), folded, "{text:?}");
        }
    }

    #[test]
    fn zero_width_characters_alone_are_blank() {
        for (text, blank) in [
            ("", true),
            (" \u{200b}\u{feff}\0", true),
            ("\u{3164}\u{fe0f}", true),
            ("\u{2764}\u{fe0f}", false),
            ("a", false),
            ("。", false),
        ] {
            assert_eq!(is_blank(text), blank, "{text:?}");
        }
    }

    #[test]
    fn trimming_keeps_the_first_lines_indentation() {
        assert_eq!(
            trim_lines("\r\n \n    code\r\n more\n\n"),
            "    code\r\n more"
        );
        assert_eq!(trim_lines("  a"), "  a");
        assert_eq!(trim_lines(" \n "), "");
    }

    #[test]
    fn words_are_counted_without_markup_and_in_any_script() {
        for (text, words) in [
            ("", 0),
            ("one *two* `three`\n\nfour", 4),
            ("[one](https://a.example/b/c) two ![three](x.png)", 3),
            ("<a href=\"x y z\">one</a><br/>two", 2),
            ("<!-- no\nnot this\neither --> one <!-- no", 1),
            ("a < b and ] c", 4),
            ("日本語", 3),
            ("كلمة أخرى", 2),
        ] {
            assert!(words == 0 || has_more_words(text, words - 1), "{text:?}");
            assert!(!has_more_words(text, words), "{text:?}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "large inputs take Miri hours")]
    fn unclosed_markup_takes_linear_time() {
        let text = "<a ](".repeat(200_000);
        assert!(!has_more_words(&text, 1_000_000));
    }
}
