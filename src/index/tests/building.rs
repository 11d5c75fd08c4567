//! What the builder refuses: tables of contents that no reader makes, and tokenizers that an index
//! cannot be built for.

use super::super::format::NONE;
use super::super::{BuildOptions, build};
use super::toc;
use crate::error::{Error, Result};
use crate::toc::{Notes, Toc};
use crate::tokens::testing::Bytes;
use crate::tokens::{Special, Tokenizer};

/// What a tokenizer does wrong; everything else is [`Bytes`].
struct Odd {
    encode: fn(&str) -> Vec<u32>,
    end_of_text: Option<u32>,
}

impl Default for Odd {
    fn default() -> Self {
        Self {
            encode: |text| text.bytes().map(u32::from).collect(),
            end_of_text: Some(Bytes::END),
        }
    }
}

impl Tokenizer for Odd {
    fn encode(&self, text: &str, _: Special) -> Result<Vec<u32>> {
        Ok((self.encode)(text))
    }
    fn vocab_size(&self) -> u32 {
        257
    }
    fn fingerprint(&self) -> u64 {
        0
    }
    fn end_of_text(&self) -> Option<u32> {
        self.end_of_text
    }
    fn token(&self, _: &str) -> Option<u32> {
        None
    }
}

fn two() -> Toc {
    toc("T", &[(0, "alpha", "", None), (0, "ALPHA", "", None)])
}

fn error_of(toc: &Toc, tokenizer: &dyn Tokenizer) -> Error {
    build(toc, tokenizer, &BuildOptions::default(), &|_| ()).expect_err("does not build")
}

#[test]
fn an_empty_table_of_contents_is_refused() {
    let empty = Toc {
        title: "T".to_owned(),
        sections: Vec::new(),
        notes: Notes::default(),
    };
    assert!(matches!(error_of(&empty, &Bytes), Error::NoHeadings));
}

#[test]
fn a_table_of_contents_that_no_reader_makes_is_refused() {
    let breaks: [fn(&mut Toc); 5] = [
        |toc| toc.sections[0].parent = Some(1),
        |toc| toc.sections[0].depth = 1,
        |toc| toc.sections[0].leaf = false,
        |toc| toc.sections[0].title.clear(),
        |toc| toc.sections[1] = toc.sections[0].clone(),
    ];
    for (i, break_it) in breaks.iter().enumerate() {
        let mut toc = two();
        break_it(&mut toc);
        let error = error_of(&toc, &Bytes);
        assert!(matches!(error, Error::InvalidArgument(_)), "{i}: {error}");
    }
}

#[test]
fn a_page_that_means_no_page_is_refused() {
    let at = |page| toc("T", &[(0, "A", "", Some(page))]);
    let options = BuildOptions::default();
    assert!(build(&at(NONE - 1), &Bytes, &options, &|_| ()).is_ok());
    assert!(matches!(
        error_of(&at(NONE), &Bytes),
        Error::TooLarge { what: "page", .. }
    ));
}

#[test]
fn titles_that_a_tokenizer_cannot_tell_apart_are_named() {
    let mut toc = two();
    for section in &mut toc.sections {
        section.number.clear();
    }
    let folds = Odd {
        encode: |text| text.to_lowercase().bytes().map(u32::from).collect(),
        ..Odd::default()
    };
    let error = error_of(&toc, &folds).to_string();
    assert!(
        error.contains("alpha") && error.contains("ALPHA"),
        "{error}"
    );
}

#[test]
fn a_title_that_runs_into_the_prompt_is_named() {
    // "f" and "a" at the border become one token.
    let joins = Odd {
        encode: |text| {
            text.replace("f a", "\u{1}")
                .bytes()
                .map(u32::from)
                .collect()
        },
        ..Odd::default()
    };
    let mut toc = two();
    toc.sections[0].number.clear();
    match error_of(&toc, &joins) {
        Error::UnstableBoundary { title } => assert_eq!(title, "alpha"),
        error => panic!("{error}"),
    }
}

#[test]
fn a_title_that_spells_the_terminator_is_named() {
    let ends = Odd {
        end_of_text: Some(u32::from(b'P')),
        ..Odd::default()
    };
    match error_of(&two(), &ends) {
        Error::Template(why) => assert!(why.contains("ALPHA"), "{why}"),
        error => panic!("{error}"),
    }
}

#[test]
fn tokens_outside_the_vocabulary_are_refused() {
    let high: fn(&str) -> Vec<u32> = |text| text.bytes().map(|b| u32::from(b) + 200).collect();
    let prompt = Odd {
        encode: high,
        ..Odd::default()
    };
    // Only a title's first letter is too high: "~" stands nowhere in the prompt's words.
    let title = Odd {
        encode: |text| {
            let at = text.find("leaf ~").map(|at| at + 5);
            let token = |(i, b)| if Some(i) == at { 257 } else { u32::from(b) };
            let prompt = text.contains("Book");
            let tokens = text.bytes().enumerate().map(token);
            if prompt { vec![0] } else { tokens.collect() }
        },
        ..Odd::default()
    };
    let end = Odd {
        end_of_text: Some(257),
        ..Odd::default()
    };
    let mut toc = toc("T", &[(0, "~", "", None)]);
    toc.sections[0].number.clear();
    for (tokenizer, token) in [(prompt, 235), (title, 257), (end, 257)] {
        let error = error_of(&toc, &tokenizer);
        assert!(matches!(error, Error::Tokenizer(_)), "{error}");
        assert!(token == 235 || error.to_string().contains("257"), "{error}");
    }
}

#[test]
fn a_vocabulary_without_an_end_of_text_is_refused() {
    let endless = Odd {
        end_of_text: None,
        ..Odd::default()
    };
    assert!(matches!(error_of(&two(), &endless), Error::Template(_)));
}

#[test]
fn progress_ends_at_the_number_of_titles() {
    let last = std::sync::atomic::AtomicUsize::new(0);
    let note = |count| last.store(count, std::sync::atomic::Ordering::Relaxed);
    build(&two(), &Bytes, &BuildOptions::default(), &note).expect("builds");
    assert_eq!(last.into_inner(), 2);
}
