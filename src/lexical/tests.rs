//! A document's sections against questions, through an index.

use super::*;
use crate::index::{BuildOptions, build};
use crate::toc::{ReadOptions, read_markdown};
use crate::tokens::testing::Bytes;

const HANDBOOK: &str = "\
# 1 Leaving

## 1.1 Notice

You may resign with a notice period of two months. The notice is in writing.

## 1.2 Garden leave

During the notice period you may stay at home.

# 2 Money

Money is paid monthly, and this text stands above the sections.

## 2.1 Receipts

Hand in receipts within thirty days. A receipt needs a date.

## 2.2 Spesen für Reisen

Über die Erstattung entscheidet die Abteilung. 経費は月末に支払われます。
";

fn index(text: bool) -> Index {
    let options = ReadOptions::default();
    let toc = read_markdown(HANDBOOK.as_bytes(), "Handbook", &options).expect("reads");
    let mut options = BuildOptions::default();
    options.text = text;
    let (bytes, _) = build(&toc, &Bytes, &options, &|_| ()).expect("builds");
    Index::from_bytes(&bytes).expect("opens")
}

/// The titles of the leaves that share a word with `question`, best first.
fn ask(index: &Index, question: &str) -> Vec<String> {
    let lexicon = Lexicon::new(index);
    let scores = lexicon.scores(question);
    assert_eq!(scores.len(), index.sections() as usize);
    assert!(
        scores
            .iter()
            .all(|score| score.is_finite() && *score >= 0.0)
    );
    let best = lexicon.best(&scores, index.leaves() as usize);
    assert_eq!(best.len(), index.leaves() as usize);
    let section = |id: &u32| index.section(*id).expect("a section");
    let found = best.iter().filter(|&&id| scores[id as usize] > 0.0);
    found.map(|id| section(id).title.to_owned()).collect()
}

#[test]
fn the_section_whose_words_a_question_has_is_first() {
    let index = index(true);
    assert_eq!(ask(&index, "Must RECEIPTS exist?"), ["Receipts"]);
    // The text of a section with subsections is not a leaf's.
    assert_eq!(ask(&index, "monthly"), [""; 0]);
    assert_eq!(
        ask(&index, "notices of resigning"),
        ["Notice", "Garden leave"]
    );
    assert_eq!(ask(&index, "1.2"), ["Garden leave"]);
}

#[test]
fn languages_and_scripts_without_plurals_in_s_work() {
    let index = index(true);
    let travel = ["Spesen für Reisen"];
    assert_eq!(ask(&index, "U\u{308}BER DIE ABTEILUNG"), travel);
    assert_eq!(ask(&index, "経費"), travel);
}

#[test]
fn without_texts_titles_are_left() {
    let index = index(false);
    assert_eq!(ask(&index, "garden date"), ["Garden leave"]);
}

#[test]
fn without_a_known_word_the_order_is_the_documents() {
    let index = index(true);
    let lexicon = Lexicon::new(&index);
    for question in ["", "?!", "zebra", "\u{1F993}"] {
        let scores = lexicon.scores(question);
        assert!(scores.iter().all(|&score| score == 0.0), "{question}");
        assert_eq!(lexicon.best(&scores, 3), [1, 2, 4]);
    }
}

#[test]
fn a_word_that_is_said_twice_counts_twice() {
    let index = index(true);
    let lexicon = Lexicon::new(&index);
    let (once, twice) = (lexicon.scores("notice"), lexicon.scores("notice notices"));
    for (once, twice) in once.iter().zip(&twice) {
        assert_eq!(2.0 * once, *twice);
    }
}

#[test]
fn the_best_k_are_the_first_k_of_all() {
    let index = index(true);
    let lexicon = Lexicon::new(&index);
    let scores = lexicon.scores("notice in the period of a date");
    let all = lexicon.best(&scores, 4);
    for k in 0..=5 {
        assert_eq!(lexicon.best(&scores, k), all[..k.min(4)]);
    }
}

#[test]
fn questions_that_a_leaf_is_known_to_answer_bring_their_words() {
    let toc = read_markdown(HANDBOOK.as_bytes(), "Handbook", &ReadOptions::default());
    let toc = toc.expect("reads");
    let mut options = BuildOptions::default();
    let leaf = toc.sections.iter().position(|s| s.title == "Notice");
    let leaf = leaf.expect("a leaf") as u32;
    options.asked = vec![(leaf, "How do I quit my job?".to_owned())];
    let (bytes, _) = build(&toc, &Bytes, &options, &|_| ()).expect("builds");
    let asked = Index::from_bytes(&bytes).expect("opens");
    assert_eq!(ask(&asked, "quitting"), Vec::<String>::new());
    assert_eq!(ask(&asked, "I want to quit"), ["Notice"]);
    assert_eq!(ask(&index(true), "quit"), Vec::<String>::new());
}

/// By hand: a leaf's score is that of its document and the mean over five of its nearest questions,
/// of which it may have fewer.
#[test]
fn the_nearest_questions_count_beside_the_document() {
    let toc = read_markdown(HANDBOOK.as_bytes(), "Handbook", &ReadOptions::default());
    let toc = toc.expect("reads");
    let leaf = |title| {
        toc.sections
            .iter()
            .position(|s| s.title == title)
            .expect("a leaf") as u32
    };
    let (notice, receipts) = (leaf("Notice"), leaf("Receipts"));
    let mut options = BuildOptions::default();
    options.text = false;
    let quit = |n: usize| vec![(notice, "quit job".to_owned()); n];
    options.asked = [quit(7), vec![(receipts, "quit wine bill".to_owned())]].concat();
    let (bytes, _) = build(&toc, &Bytes, &options, &|_| ()).expect("builds");
    let scores = Lexicon::new(&Index::from_bytes(&bytes).expect("opens")).scores("quit");

    // Words of each leaf's number and title, and of its questions.
    let lengths: Vec<f32> = [
        "1.1 notice",
        "1.2 garden leave",
        "2.1 receipts",
        "2.2 spesen für reisen",
    ]
    .map(|title| words_of(title) as f32)
    .into_iter()
    .zip([14.0, 0.0, 3.0, 0.0])
    .map(|(title, questions)| title + questions)
    .collect();
    let bm25 = |all: f32, with: f32, count: f32, length: f32, mean: f32| {
        let idf = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
        idf * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / mean))
    };
    let mean = lengths.iter().sum::<f32>() / 4.0;
    // Two questions for each leaf are not enough to count in full.
    let near = |length| 2.0 / ENOUGH * bm25(8.0, 8.0, 1.0, length, 17.0 / 8.0);
    let expected = [
        (notice, bm25(4.0, 2.0, 7.0, lengths[0], mean) + near(2.0)),
        (
            receipts,
            bm25(4.0, 2.0, 1.0, lengths[2], mean) + near(3.0) / 5.0,
        ),
        (leaf("Garden leave"), 0.0),
    ];
    for (leaf, expected) in expected {
        let found = scores[leaf as usize];
        assert!(
            (found - expected).abs() < 1e-5,
            "{leaf}: {found} {expected}"
        );
    }
}

fn words_of(text: &str) -> usize {
    let mut count = 0;
    words(text, &mut String::new(), |_| count += 1);
    count
}

#[test]
fn passages_that_say_all_of_a_question_beat_words_that_stand_apart() {
    // Both leaves have the same words equally often: together, and in passages of their own.
    let passage = |words: &str| {
        let rest = PASSAGE - words.split_whitespace().count();
        format!("{words} {}", "filler ".repeat(rest))
    };
    // The title's words are the first passage's.
    let together = passage("alpha beta").repeat(PASSAGES) + &passage("").repeat(PASSAGES);
    let apart = passage("alpha").repeat(PASSAGES) + &passage("beta").repeat(PASSAGES);
    let text = format!("# 1 One\n\n{apart}\n\n# 2 Two\n\n{together}\n\n# 3 Three\n\nGamma.\n");
    let toc = read_markdown(text.as_bytes(), "Book", &ReadOptions::default()).expect("reads");
    let (bytes, _) = build(&toc, &Bytes, &BuildOptions::default(), &|_| ()).expect("builds");
    let index = Index::from_bytes(&bytes).expect("opens");
    let question = "alpha beta";
    let by_the_book = Lexicon::by_the_book(&index).scores(question);
    assert_eq!(by_the_book[0], by_the_book[1]);
    let all = Lexicon::new(&index);
    let scores = all.scores(question);
    assert!(scores[1] > scores[0], "{scores:?}");
    assert_eq!(all.best(&scores, 2), [1, 0]);
}

#[test]
fn by_the_book_there_are_no_known_questions() {
    let toc = read_markdown(HANDBOOK.as_bytes(), "Handbook", &ReadOptions::default());
    let toc = toc.expect("reads");
    let mut options = BuildOptions::default();
    options.asked = vec![(1, "How do I quit my job?".to_owned())];
    let (bytes, _) = build(&toc, &Bytes, &options, &|_| ()).expect("builds");
    let index = Index::from_bytes(&bytes).expect("opens");
    let score = |lexicon: &Lexicon| lexicon.scores("quit")[1];
    assert!(score(&Lexicon::new(&index)) > 0.0);
    assert_eq!(score(&Lexicon::by_the_book(&index)), 0.0);
}
