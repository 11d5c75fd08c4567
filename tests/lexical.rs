//! Words beside what a real model says, and words alone.

#![cfg(all(feature = "engine", feature = "building"))]

mod common;

use common::{QUESTIONS, alone, assert_close, handbook, model, ranking, top};
use stair::index::{BuildOptions, build};
use stair::search::Scoring;
use stair::toc::{self, ReadOptions};
use stair::{CancelToken, Code, Hits, Index, RetrieveOptions, Retriever, RetrieverOptions};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// As in `retrieve.rs`: how far a score of the quantised model moves with the shape of the decodes.
const NOISE: f64 = 0.8;

fn hybrid() -> &'static Retriever {
    static RETRIEVER: OnceLock<Retriever> = OnceLock::new();
    RETRIEVER.get_or_init(|| {
        let mut options = RetrieverOptions::default();
        options.deterministic = true;
        Retriever::new(model(), handbook().index.clone(), &options).expect("a retriever")
    })
}

fn words() -> Retriever {
    Retriever::lexical(handbook().index.clone())
}

fn weighted(k: usize, weight: f32) -> RetrieveOptions {
    let mut options = top(k);
    options.lexical_weight = weight;
    options
}

/// The fused score of every leaf by definition, best first.
fn fused(by_model: &Hits, by_words: &Hits, weight: f32) -> Vec<(u32, f64)> {
    let lexical = |section| {
        let hit = by_words.hits.iter().find(|hit| hit.section == section);
        f64::from(hit.and_then(|hit| hit.lexical).expect("every leaf has one"))
    };
    let score = |&(section, log_prob): &(u32, f64)| {
        (section, log_prob + f64::from(weight) * lexical(section))
    };
    let mut fused: Vec<(u32, f64)> = ranking(by_model).iter().map(score).collect();
    fused.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    fused
}

#[test]
fn the_best_by_model_and_words_are_those_of_brute_force() {
    let _alone = alone();
    let all = handbook().index.leaves() as usize;
    let question = QUESTIONS[3];
    let by_words = words().retrieve(question, &top(all)).expect("answers");
    for (scoring, weight) in [(Scoring::Exact, 0.7), (Scoring::Local, 5.0)] {
        let with = |mut options: RetrieveOptions| {
            options.scoring = scoring;
            hybrid().retrieve(question, &options).expect("answers")
        };
        let by_model = with(top(all));
        let found = with(weighted(3, weight));
        let expected = fused(&by_model, &by_words, weight);
        assert_close(&ranking(&found), &expected[..3], NOISE, "the fused scores");
        for hit in &found.hits {
            let log_prob = hit.log_prob.expect("there is a model");
            let lexical = hit.lexical.expect("there is a weight");
            let sum = log_prob + f64::from(weight) * f64::from(lexical);
            assert!((hit.score - sum).abs() < 1e-5, "{hit:?}");
            let mut by_words = by_words.hits.iter();
            let alone = by_words.find(|other| other.section == hit.section);
            assert_eq!(alone.and_then(|alone| alone.lexical), Some(lexical));
        }
    }
}

#[test]
fn without_a_weight_words_are_not_looked_at_and_with_one_the_bits_stay() {
    let _alone = alone();
    let ask = |weight| {
        let answer = hybrid().retrieve(QUESTIONS[0], &weighted(1, weight));
        answer.expect("answers").hits
    };
    for hit in ask(0.0) {
        assert_eq!((hit.lexical, hit.log_prob), (None, Some(hit.score)));
    }
    assert_eq!(ask(2.0), ask(2.0));
    // So heavy that the product is no number of 32 bits.
    let heavy = ask(f32::MAX);
    assert!(heavy[0].score.is_finite(), "{heavy:?}");
}

#[test]
fn weights_that_are_none_are_refused_with_the_range() {
    let _alone = alone();
    for weight in [-1.0, -f32::MIN_POSITIVE, f32::NAN, f32::INFINITY] {
        for retriever in [hybrid(), &words()] {
            let error = retriever
                .retrieve(QUESTIONS[0], &weighted(1, weight))
                .expect_err("refused");
            assert_eq!(error.code(), Code::InvalidArgument);
            let text = error.to_string();
            assert!(
                text.contains(&weight.to_string()) && text.contains("finite"),
                "{text}"
            );
        }
    }
}

#[test]
fn words_alone_find_sections_and_say_when_they_know_none() {
    let retriever = words();
    let all = handbook().index.leaves() as usize;
    retriever
        .warm(&CancelToken::new())
        .expect("reads the words");
    for question in QUESTIONS.into_iter().chain(["zebra?", "?!"]) {
        let answer = retriever.retrieve(question, &top(all)).expect("answers");
        assert_eq!(answer.hits.len(), all);
        assert_eq!((answer.legal_mass, answer.stats.decodes), (None, 0));
        for pair in answer.hits.windows(2) {
            let order = (-pair[0].score, pair[0].section) < (-pair[1].score, pair[1].section);
            assert!(order, "{pair:?}");
        }
        for hit in &answer.hits {
            let section = handbook().index.section(hit.section).expect("a section");
            assert!(section.leaf && hit.text.as_deref() == section.text);
            assert_eq!(hit.path.last(), Some(&section.identifier()));
            assert_eq!(
                (hit.log_prob, hit.lexical.map(f64::from)),
                (None, Some(hit.score))
            );
        }
        let known = answer.hits[0].score > 0.0;
        assert_eq!(known, QUESTIONS.contains(&question), "{question}");
        let few = retriever.retrieve(question, &top(2)).expect("answers");
        assert_eq!(few.hits, answer.hits[..2]);
    }
    assert_eq!(
        retriever
            .retrieve("zebra?", &RetrieveOptions::default())
            .expect("answers")
            .hits
            .len(),
        3
    );
}

#[test]
fn words_alone_fail_as_a_model_does() {
    let retriever = words();
    let all = handbook().index.leaves() as usize;
    let code = |question: &str, options: &RetrieveOptions| {
        retriever
            .retrieve(question, options)
            .expect_err("refused")
            .code()
    };
    assert_eq!(code(" \u{FEFF}\n", &top(1)), Code::EmptyQuestion);
    assert_eq!(code("a\0b", &top(1)), Code::NulInQuestion);
    assert_eq!(code("What?", &top(0)), Code::InvalidK);
    assert_eq!(code("What?", &top(all + 1)), Code::InvalidK);
    let mut options = top(1);
    options.timeout = Some(Duration::ZERO);
    assert_eq!(code("What?", &options), Code::Timeout);
    options.timeout = Some(Duration::MAX);
    options.cancel.trigger();
    assert_eq!(code("What?", &options), Code::Cancelled);
    assert_eq!(
        retriever.warm(&options.cancel).expect_err("refused").code(),
        Code::Cancelled
    );
}

#[test]
fn an_index_without_texts_is_searched_by_its_titles() {
    let handbook = handbook();
    let path = common::handbook_path();
    let toc = toc::read(&handbook.source, &path, &ReadOptions::default()).expect("reads");
    let mut options = BuildOptions::default();
    options.text = false;
    let (bytes, _) = build(&toc, common::vocabulary(), &options, &|_| ()).expect("builds");
    let index = Arc::new(Index::from_bytes(&bytes).expect("opens"));
    let title = index
        .section(index.sections() - 1)
        .expect("a section")
        .title
        .to_owned();
    let hits = Retriever::lexical(index)
        .retrieve(&title, &top(1))
        .expect("answers")
        .hits;
    assert_eq!(hits[0].title, title);
    assert!(hits[0].text.is_none() && hits[0].score > 0.0);
}
