//! How a question and a title become tokens: the part of a prompt that an index carries.
//!
//! A text is always tokenised together with what stands before it and then cut, because tokens
//! may run across the border: cutting first gives ids that the model was never trained on.

use crate::error::{Error, Result};
use crate::toc::is_blank;
use crate::tokens::{Special, Tokenizer};

/// The template of everything after the table of contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuestionTemplate<'a> {
    /// The last text of the prefix: it is tokenised again before a question, and cut off.
    pub anchor: &'a str,
    /// Text between the anchor and the question.
    pub before_question: &'a str,
    /// Text after the question; the title follows it.
    pub after_question: &'a str,
    /// Text before the identifier of a section in a generated title.
    pub before_title: &'a str,
    /// Whether the template's texts may name special tokens.
    pub special: bool,
}

/// What [`QuestionTemplate::encode_question_into`] need not encode anew for each question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FixedTokens {
    /// The anchor's: encoded with a question, and cut off.
    Anchor(Vec<u32>),
    /// Those around a question, in a template that names special tokens.
    Around {
        /// Of the text before it.
        before: Vec<u32>,
        /// Of the text after it.
        after: Vec<u32>,
    },
}

impl QuestionTemplate<'_> {
    /// The tokens from the question to the place where the title begins.
    ///
    /// Line breaks in the question become spaces: a line is the template's unit, and a question
    /// must not look like one of its own. Special tokens in it are text.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyQuestion`], [`Error::NulInQuestion`], or what the tokenizer says.
    pub fn encode_question(&self, tokenizer: &dyn Tokenizer, question: &str) -> Result<Vec<u32>> {
        let (mut text, mut tokens) = (String::new(), Vec::new());
        let fixed = self.fixed(tokenizer)?;
        self.encode_question_into(tokenizer, &fixed, question, &mut text, &mut tokens)?;
        Ok(tokens)
    }

    /// As [`QuestionTemplate::encode_question`], for who encodes many: with what
    /// [`QuestionTemplate::fixed`] gave, and in memory that is used again. `tokens` becomes what that
    /// returns, and `text` something of no further use, whatever they were before.
    ///
    /// # Errors
    ///
    /// The same.
    pub fn encode_question_into(
        &self,
        tokenizer: &dyn Tokenizer,
        fixed: &FixedTokens,
        question: &str,
        text: &mut String,
        tokens: &mut Vec<u32>,
    ) -> Result<()> {
        check(question)?;
        text.clear();
        match fixed {
            FixedTokens::Around { before, after } => {
                push_one_line(text, question);
                tokenizer.encode_into(text, Special::AsText, tokens)?;
                tokens.splice(..0, before.iter().copied());
                tokens.extend_from_slice(after);
            }
            FixedTokens::Anchor(anchor) => {
                text.push_str(self.anchor);
                text.push_str(self.before_question);
                push_one_line(text, question);
                text.push_str(self.after_question);
                tokenizer.encode_into(text, Special::AsText, tokens)?;
                match tokens.starts_with(anchor) {
                    true => drop(tokens.drain(..anchor.len())),
                    // The question runs into the anchor, which the prefix has already fixed.
                    false => {
                        let rest = &text[self.anchor.len()..];
                        tokenizer.encode_into(rest, Special::AsText, tokens)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The tokens that are the same for every question.
    ///
    /// # Errors
    ///
    /// What the tokenizer says.
    pub fn fixed(&self, tokenizer: &dyn Tokenizer) -> Result<FixedTokens> {
        Ok(match self.special {
            true => FixedTokens::Around {
                before: tokenizer.encode(self.before_question, Special::AsToken)?,
                after: tokenizer.encode(self.after_question, Special::AsToken)?,
            },
            false => FixedTokens::Anchor(tokenizer.encode(self.anchor, Special::AsText)?),
        })
    }

    /// An encoder of titles; it holds the tokens of what stands before every title.
    ///
    /// # Errors
    ///
    /// What the tokenizer says.
    pub fn titles<'t>(
        &self,
        tokenizer: &'t dyn Tokenizer,
        terminator: u32,
    ) -> Result<TitleEncoder<'t>> {
        let special = match self.special {
            true => Special::AsToken,
            false => Special::AsText,
        };
        Ok(TitleEncoder {
            tail: tokenizer.encode(self.after_question, special)?,
            context: self.after_question.to_owned(),
            before_title: self.before_title.to_owned(),
            special: self.special,
            tokenizer,
            terminator,
        })
    }
}

/// Turns identifiers of sections into the tokens that a model generates for them.
pub struct TitleEncoder<'t> {
    tokenizer: &'t dyn Tokenizer,
    context: String,
    tail: Vec<u32>,
    before_title: String,
    special: bool,
    terminator: u32,
}

impl TitleEncoder<'_> {
    /// The tokens of a title, the terminator included.
    ///
    /// # Errors
    ///
    /// [`Error::UnstableBoundary`] when the title's first token runs into the text before it;
    /// [`Error::Template`] when the title spells the terminator; and what the tokenizer says.
    pub fn encode(&self, identifier: &str) -> Result<Vec<u32>> {
        let title = format!("{}{identifier}", self.before_title);
        let mut tokens = if self.special {
            self.tokenizer.encode(&title, Special::AsText)?
        } else {
            let joint = format!("{}{title}", self.context);
            let joint = self.tokenizer.encode(&joint, Special::AsText)?;
            match joint.strip_prefix(self.tail.as_slice()) {
                Some(tokens) if !tokens.is_empty() => tokens.to_vec(),
                _ => {
                    return Err(Error::UnstableBoundary {
                        title: identifier.to_owned(),
                    });
                }
            }
        };
        if tokens.contains(&self.terminator) {
            return Err(Error::Template(format!(
                "the title {identifier:?} holds the token that ends titles, so it would end there: take \
                 another one as `terminator` or with --terminator, one that no text has"
            )));
        }
        tokens.push(self.terminator);
        Ok(tokens)
    }
}

/// Refuses what is no question, to a model or without one.
///
/// # Errors
///
/// [`Error::NulInQuestion`], and [`Error::EmptyQuestion`] when it has no visible character.
pub fn check(question: &str) -> Result<()> {
    if let Some(at) = question.bytes().position(|byte| byte == 0) {
        return Err(Error::NulInQuestion { at });
    }
    match is_blank(question) {
        true => Err(Error::EmptyQuestion),
        false => Ok(()),
    }
}

/// Appends `text` to `out`, with every run of line breaks, and the white space around it, as one
/// space.
fn push_one_line(out: &mut String, text: &str) {
    let lines = text.split([
        '\n', '\r', '\u{0B}', '\u{0C}', '\u{85}', '\u{2028}', '\u{2029}',
    ]);
    let start = out.len();
    for line in lines.map(str::trim).filter(|line| !line.is_empty()) {
        if out.len() > start {
            out.push(' ');
        }
        out.push_str(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::testing::Bytes;

    const TEMPLATE: QuestionTemplate<'static> = QuestionTemplate {
        anchor: "\nQ:",
        before_question: " ",
        after_question: "\nS:",
        before_title: " ",
        special: false,
    };

    fn text(tokens: &[u32]) -> String {
        let bytes = tokens.iter().map(|&t| t as u8).collect();
        String::from_utf8(bytes).expect("made from UTF-8")
    }

    #[test]
    fn a_question_is_cut_from_its_context() {
        let tokens = TEMPLATE.encode_question(&Bytes, "who?").expect("encodes");
        assert_eq!(text(&tokens), " who?\nS:");
    }

    #[test]
    fn a_question_of_several_lines_is_one_line() {
        let tokens = TEMPLATE.encode_question(&Bytes, " a\r\n\n b\u{2028}c\n");
        assert_eq!(text(&tokens.expect("encodes")), " a b c\nS:");
    }

    #[test]
    fn memory_of_an_earlier_question_does_not_show_in_the_next() {
        let special = QuestionTemplate {
            special: true,
            ..TEMPLATE
        };
        let (mut text, mut tokens) = (String::new(), Vec::new());
        for template in [TEMPLATE, special] {
            let fixed = template.fixed(&Bytes).expect("encodes");
            for question in ["what is the longest of them?", "who?", "two\nlines"] {
                template
                    .encode_question_into(&Bytes, &fixed, question, &mut text, &mut tokens)
                    .expect("encodes");
                let alone = template.encode_question(&Bytes, question).expect("encodes");
                assert_eq!(tokens, alone, "{question:?}");
            }
        }
    }

    #[test]
    fn empty_and_invisible_questions_and_nuls_are_refused() {
        for question in ["", " \t\n", "\u{FEFF}", "\u{200B}\u{A0}"] {
            let error = TEMPLATE
                .encode_question(&Bytes, question)
                .expect_err("refused");
            assert!(
                matches!(error, Error::EmptyQuestion),
                "{question:?}: {error}"
            );
        }
        let error = TEMPLATE
            .encode_question(&Bytes, "a\0b")
            .expect_err("refused");
        assert!(matches!(error, Error::NulInQuestion { at: 1 }));
    }

    #[test]
    fn a_title_ends_with_the_terminator_and_cannot_hold_it() {
        let titles = TEMPLATE.titles(&Bytes, Bytes::END).expect("encodes");
        let tokens = titles.encode("1 A").expect("encodes");
        assert_eq!(tokens, [32, 49, 32, 65, Bytes::END]);
        let titles = TEMPLATE.titles(&Bytes, u32::from(b'A')).expect("encodes");
        let error = titles.encode("1 A").expect_err("it would end there");
        assert!(
            matches!(&error, Error::Template(why) if why.contains("\"1 A\"")),
            "{error}"
        );
    }

    /// Joins a border's "f" and "i" into one token, as byte-pair tokenizers do.
    struct Joining;
    impl Tokenizer for Joining {
        fn encode(&self, text: &str, _: Special) -> Result<Vec<u32>> {
            let text = text.replace("fi", "\u{1}");
            Ok(text.bytes().map(u32::from).collect())
        }
        fn vocab_size(&self) -> u32 {
            257
        }
        fn fingerprint(&self) -> u64 {
            0
        }
        fn end_of_text(&self) -> Option<u32> {
            Some(256)
        }
        fn token(&self, _: &str) -> Option<u32> {
            None
        }
    }

    #[test]
    fn a_title_that_runs_into_the_prompt_is_refused_by_name() {
        let template = QuestionTemplate {
            after_question: "leaf",
            before_title: "",
            ..TEMPLATE
        };
        let titles = template.titles(&Joining, 256).expect("encodes");
        assert!(titles.encode("alpha").is_ok());
        let error = titles.encode("index").expect_err("runs together");
        assert!(error.to_string().contains("index"), "{error}");
    }
}
