//! Many callers on one retriever: the same answers, no call lost, no memory kept.

#![cfg(all(feature = "engine", feature = "building"))]

mod common;

use common::{QUESTIONS, alone, assert_close, handbook, model, ranking, top};
use stair::search::Scoring;
use stair::{CancelToken, Code, Retriever, RetrieverOptions};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// What shares a decode moves a quantised model's scores; see tests/retrieve.rs.
const NOISE: f64 = 0.8;

fn new_retriever() -> Retriever {
    let index = handbook().index.clone();
    Retriever::new(model(), index, &RetrieverOptions::default()).expect("a retriever")
}

fn retriever() -> &'static Retriever {
    static RETRIEVER: OnceLock<Retriever> = OnceLock::new();
    RETRIEVER.get_or_init(|| {
        let retriever = new_retriever();
        retriever.warm(&CancelToken::new()).expect("warms");
        retriever
    })
}

#[test]
fn eight_threads_get_the_answers_that_one_gets() {
    let _alone = alone();
    let ask = |question| retriever().retrieve(question, &top(3)).expect("answers");
    let started = Instant::now();
    let before: Vec<_> = QUESTIONS
        .iter()
        .map(|question| ranking(&ask(question)))
        .collect();
    let one = started.elapsed();
    let started = Instant::now();
    let answers: Vec<_> = std::thread::scope(|scope| {
        let callers = QUESTIONS.map(|question| scope.spawn(move || ask(question)));
        callers
            .into_iter()
            .map(|caller| caller.join().expect("answers"))
            .collect()
    });
    let eight = started.elapsed();
    let mut largest = 0.0f64;
    for ((question, hits), before) in QUESTIONS.iter().zip(&answers).zip(&before) {
        largest = largest.max(assert_close(&ranking(hits), before, NOISE, question));
        assert_eq!(hits.stats.prefix_tokens, 0);
    }
    let speedup = one.as_secs_f64() / eight.as_secs_f64();
    eprintln!("scores differ by up to {largest:.1e}; eight at once {speedup:.2} times as fast");
}

#[test]
fn cancels_and_deadlines_at_random_lose_no_call() {
    let _alone = alone();
    let before = ranking(
        &retriever()
            .retrieve(QUESTIONS[0], &top(3))
            .expect("answers"),
    );
    let counts = [const { AtomicUsize::new(0) }; 3];
    let until = Instant::now() + Duration::from_secs(10);
    std::thread::scope(|scope| {
        for caller in 0..16u64 {
            let counts = &counts;
            scope.spawn(move || {
                let mut seed = caller + 1;
                let mut random = |below: u64| {
                    seed ^= seed << 13;
                    seed ^= seed >> 7;
                    seed ^= seed << 17;
                    seed % below
                };
                while Instant::now() < until {
                    let mut options = top(1 + random(3) as usize);
                    let cancel = options.cancel.clone();
                    let after = Duration::from_millis(random(1500));
                    match random(4) {
                        0 => options.timeout = Some(after),
                        1 => cancel.trigger(),
                        2 => {
                            // Another thread cancels, also after the call's end.
                            scope.spawn(move || {
                                std::thread::sleep(after);
                                cancel.trigger();
                            });
                        }
                        // Two wait as long as it takes.
                        _ if caller > 1 => options.timeout = Some(Duration::from_secs(3)),
                        _ => (),
                    }
                    let question = QUESTIONS[random(8) as usize];
                    let kind = match retriever().retrieve(question, &options) {
                        Ok(hits) => {
                            assert_eq!(Some(hits.hits.len()), options.k);
                            0
                        }
                        Err(error) if error.code() == Code::Cancelled => 1,
                        Err(error) if error.code() == Code::Timeout => 2,
                        Err(error) => panic!("{error}"),
                    };
                    counts[kind].fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let counts = counts.map(AtomicUsize::into_inner);
    eprintln!("answered, cancelled, too late: {counts:?}");
    assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
    let after = retriever()
        .retrieve(QUESTIONS[0], &top(3))
        .expect("answers");
    assert_eq!(
        after.stats.prefix_tokens, 0,
        "the table of contents is still there"
    );
    assert_close(&ranking(&after), &before, NOISE, "after all that");
}

#[test]
fn a_call_cancelled_while_the_table_of_contents_is_decoded_returns_at_once() {
    let _alone = alone();
    let retriever = new_retriever();
    let options = top(3);
    let cancel = options.cancel.clone();
    std::thread::scope(|scope| {
        let caller = scope.spawn(|| retriever.retrieve(QUESTIONS[0], &options));
        std::thread::sleep(Duration::from_millis(50));
        let triggered = Instant::now();
        cancel.trigger();
        let error = caller.join().expect("returns").expect_err("cancelled");
        let took = triggered.elapsed();
        assert_eq!(error.code(), Code::Cancelled);
        eprintln!("returned after {took:?}");
        assert!(took < Duration::from_secs(2), "{took:?}");
    });
    // What was decoded before is not decoded again.
    let hits = retriever.retrieve(QUESTIONS[0], &top(1)).expect("answers");
    assert!(hits.stats.prefix_tokens as usize <= handbook().index.prefix().len());
}

#[test]
fn a_deadline_of_a_millisecond_is_kept() {
    let _alone = alone();
    let mut options = top(3);
    options.timeout = Some(Duration::from_millis(1));
    let started = Instant::now();
    let error = retriever()
        .retrieve(QUESTIONS[0], &options)
        .expect_err("too late");
    assert_eq!(error.code(), Code::Timeout, "{error}");
    assert!(error.to_string().contains("1 ms"), "{error}");
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "{:?}",
        started.elapsed()
    );
    // A length that no clock has is as long as it takes.
    options.timeout = Some(Duration::MAX);
    retriever()
        .retrieve(QUESTIONS[0], &options)
        .expect("answers");
}

#[test]
fn a_retriever_may_be_let_go_while_others_ask() {
    let _alone = alone();
    let retriever = Arc::new(new_retriever());
    let callers: Vec<_> = (0..4)
        .map(|caller| {
            let retriever = Arc::clone(&retriever);
            std::thread::spawn(move || retriever.retrieve(QUESTIONS[caller], &top(1)))
        })
        .collect();
    drop(retriever);
    for caller in callers {
        // The last of them ends the worker.
        assert_eq!(
            caller.join().expect("returns").expect("answers").hits.len(),
            1
        );
    }
    // One that was never asked ends as well, at once.
    let started = Instant::now();
    drop(new_retriever());
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[cfg(target_os = "linux")]
#[test]
fn answering_keeps_no_memory() {
    let _alone = alone();
    let anonymous = || {
        let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
        let line = status.lines().find(|line| line.starts_with("RssAnon:"));
        let field = line.and_then(|line| line.split_whitespace().nth(1));
        field
            .and_then(|kib| kib.parse::<u64>().ok())
            .expect("a number")
    };
    let ask = |i: usize| {
        let mut options = top(1);
        // The cheaper kind uses the same memory.
        options.scoring = Scoring::Local;
        retriever()
            .retrieve(QUESTIONS[i % 8], &options)
            .expect("answers")
    };
    for i in 0..8 {
        ask(i);
    }
    let before = anonymous();
    for i in 0..30 {
        ask(i);
    }
    let grown = anonymous().saturating_sub(before);
    eprintln!("30 questions: {grown} KiB more than {before}");
    assert!(grown < 4096, "{grown} KiB in 30 questions");
}
