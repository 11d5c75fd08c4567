//! Several books on one model within a memory budget: who is not asked gives way, and comes back.

#![cfg(all(feature = "engine", feature = "building"))]

mod common;

use common::{alone, handbook, model_path, ranking, top};
use stair::index::{BuildOptions, build};
use stair::toc::{ReadOptions, read_markdown};
use stair::{CancelToken, Code, Index, Model, ModelOptions, Retriever, RetrieverOptions};
use std::path::Path;
use std::sync::Arc;

fn options(cache: &Path) -> RetrieverOptions {
    let mut options = RetrieverOptions::default();
    options.cache_dir = Some(cache.to_path_buf());
    options.max_parallel = 2;
    options.max_question_tokens = 64;
    options.deterministic = true;
    options
}

fn model(context_memory: Option<u64>) -> Arc<Model> {
    let mut options = ModelOptions::default();
    options.context_memory = context_memory;
    Arc::new(Model::open(model_path(), &options).expect("the model opens"))
}

/// A small book of its own title.
fn book(model: &Model, number: usize) -> Arc<Index> {
    let chapters: String = (1..9)
        .map(|chapter| format!("## Subject {chapter} of volume {number}\n\nText.\n\n"))
        .collect();
    let toc = read_markdown(
        format!("# Volume {number}\n\n{chapters}").as_bytes(),
        "Book",
        &ReadOptions::default(),
    );
    let built = build(
        &toc.expect("reads"),
        model,
        &BuildOptions::default(),
        &|_| (),
    );
    Arc::new(Index::from_bytes(&built.expect("builds").0).expect("opens"))
}

#[test]
fn books_beyond_the_budget_give_way_and_answer_as_before() {
    let _alone = alone();
    let cache = tempfile::tempdir().expect("a folder");
    let free = model(None);
    let books: Vec<_> = (0..6).map(|number| book(&free, number)).collect();
    let question = "What is said of subject 3?";
    let retriever = |model: &Arc<Model>, book: &Arc<Index>| {
        let options = options(cache.path());
        Retriever::new(Arc::clone(model), Arc::clone(book), &options).expect("a retriever")
    };
    let mut expected = Vec::new();
    let mut one = 0;
    for book in &books {
        let retriever = retriever(&free, book);
        expected.push(ranking(
            &retriever.retrieve(question, &top(3)).expect("answers"),
        ));
        one = free.context_memory_used();
    }
    assert!(one > 0);
    assert_eq!(
        free.context_memory_used(),
        0,
        "dropped retrievers hold nothing"
    );

    // Room for two and a half.
    let budget = one * 5 / 2;
    let tight = model(Some(budget));
    let retrievers: Vec<_> = books.iter().map(|book| retriever(&tight, book)).collect();
    std::thread::scope(|scope| {
        for caller in 0..4usize {
            let (retrievers, expected, tight) = (&retrievers, &expected, &tight);
            scope.spawn(move || {
                for round in 0..12usize {
                    // Some books are asked for far more often than others.
                    let book = [0, 1, 0, 2, 0, 1, 3, 0, 4, 1, 0, 5][(round + 3 * caller) % 12];
                    let hits = retrievers[book]
                        .retrieve(question, &top(3))
                        .expect("answers");
                    assert_eq!(ranking(&hits), expected[book], "book {book}");
                    // Nothing is decoded again: it comes back from the warm file.
                    assert_eq!(hits.stats.prefix_tokens, 0, "book {book}");
                    assert!(tight.context_memory_used() <= budget);
                }
            });
        }
    });
    let resident = tight.context_memory_used() / one;
    assert_eq!(resident, 2, "as many as there is room for stay");
}

/// Bytes of this process in memory that no file backs.
#[cfg(target_os = "linux")]
fn anonymous() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    let mut words = line.expect("a line").split_whitespace();
    let kilobytes: u64 = words.nth(1).and_then(|n| n.parse().ok()).expect("a number");
    1024 * kilobytes
}

#[cfg(target_os = "linux")]
#[test]
fn contexts_that_gave_way_leave_no_memory_behind() {
    let _alone = alone();
    let cache = tempfile::tempdir().expect("a folder");
    let free = model(None);
    let books: Vec<_> = (0..8).map(|number| book(&free, number)).collect();
    let new = |model: &Arc<Model>, book: &Arc<Index>| {
        Retriever::new(Arc::clone(model), Arc::clone(book), &options(cache.path()))
            .expect("a retriever")
    };
    let one = {
        let first = new(&free, &books[0]);
        first.warm(&CancelToken::new()).expect("decodes");
        free.context_memory_used()
    };
    let budget = one * 3 / 2;
    let tight = model(Some(budget));
    let before = anonymous();
    let retrievers: Vec<_> = books.iter().map(|book| new(&tight, book)).collect();
    let mut most = 0;
    for _ in 0..2 {
        for retriever in &retrievers {
            let question = "What is said of subject 3?";
            retriever.retrieve(question, &top(1)).expect("answers");
            most = most.max(anonymous().saturating_sub(before));
        }
    }
    println!("{most} bytes at most, and {budget} are allowed");
    assert!(most <= budget, "{most} bytes, and {budget} are allowed");
}

#[test]
fn two_busy_books_with_room_for_one_take_turns_and_nobody_waits_for_ever() {
    let _alone = alone();
    let cache = tempfile::tempdir().expect("a folder");
    let free = model(None);
    let books = [book(&free, 1), book(&free, 2)];
    let question = "What is said of subject 5?";
    let mut one = 0;
    let expected = books.each_ref().map(|book| {
        let retriever = Retriever::new(free.clone(), book.clone(), &options(cache.path()));
        let hits = retriever
            .as_ref()
            .expect("a retriever")
            .retrieve(question, &top(1));
        one = free.context_memory_used();
        ranking(&hits.expect("answers"))
    });
    let tight = model(Some(one * 3 / 2));
    let retrievers = books.map(|book| {
        Retriever::new(tight.clone(), book, &options(cache.path())).expect("a retriever")
    });
    std::thread::scope(|scope| {
        for caller in 0..6usize {
            let (retriever, expected) = (&retrievers[caller % 2], &expected[caller % 2]);
            scope.spawn(move || {
                for _ in 0..4 {
                    let hits = retriever.retrieve(question, &top(1)).expect("answers");
                    assert_eq!(&ranking(&hits), expected);
                }
            });
        }
    });
}

#[test]
fn a_budget_for_less_than_one_context_is_refused_with_both_numbers() {
    let _alone = alone();
    let tight = model(Some(1 << 20));
    let index = handbook().index.clone();
    let error = Retriever::new(tight, index, &RetrieverOptions::default()).err();
    let error = error.expect("refused");
    assert_eq!(error.code(), Code::OutOfMemory);
    assert!(error.to_string().contains("1048576"), "{error}");
}

#[test]
fn a_retriever_that_gave_way_can_be_dropped_and_warmed() {
    let _alone = alone();
    let cache = tempfile::tempdir().expect("a folder");
    let free = model(None);
    let (first, second) = (book(&free, 1), book(&free, 2));
    let one = {
        let retriever = Retriever::new(Arc::clone(&free), first.clone(), &options(cache.path()));
        let _retriever = retriever.expect("a retriever");
        free.context_memory_used()
    };
    let tight = model(Some(one * 3 / 2));
    let new = |book: Arc<Index>| {
        Retriever::new(Arc::clone(&tight), book, &options(cache.path())).expect("a retriever")
    };
    let (a, b) = (new(first), new(second));
    assert!(tight.context_memory_used() <= one * 3 / 2);
    a.warm(&CancelToken::new()).expect("comes back");
    b.warm(&CancelToken::new()).expect("comes back");
    // `a` has no context now.
    drop(a);
    drop(b);
    assert_eq!(tight.context_memory_used(), 0);
}
