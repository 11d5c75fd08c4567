//! The worker with a model that is a table: several callers, faults, and who gets served when.

use super::super::queue::Question;
use super::*;
use crate::cancel::CancelToken;
use crate::index::{BuildOptions, build};
use crate::search::model::Capacity;
use crate::search::{Found, Scoring, SearchOptions, top_k};
use crate::toc::{ReadOptions, read_markdown};
use crate::tokens::testing::Bytes;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

mod mock;
mod room;
use mock::{Control, Mock, eventually};

const PARALLEL: usize = 4;
const STATES: usize = 5;

/// Nine titles under three beginnings.
fn index() -> Index {
    let mut document = String::new();
    for chapter in ["Alpha", "Beta", "Gamma"] {
        for section in ["one", "two", "three"] {
            document += &format!("# {chapter} {section}\n\nText.\n\n");
        }
    }
    let options = ReadOptions::default();
    let toc = read_markdown(document.as_bytes(), "Mock", &options).expect("reads");
    let (bytes, _) = build(&toc, &Bytes, &BuildOptions::default(), &|_| ()).expect("builds");
    Index::from_bytes(&bytes).expect("opens")
}

fn request(index: &Index, question: &str, k: usize) -> Request {
    let tokens = index.question().encode_question(&Bytes, question);
    let search = SearchOptions {
        k,
        scoring: Scoring::Exact,
        width: 2,
    };
    let question = Question {
        text: String::new(),
        tokens: tokens.expect("encodes"),
        search,
        prior: Vec::new(),
        expected: Vec::new(),
        drafts: Vec::new(),
    };
    Request {
        question: Some(Arc::new(question)),
        cancel: CancelToken::new(),
        deadline: None,
        timeout_ms: 0,
    }
}

/// Runs `body` while a worker with `model` serves the queue.
fn serve(model: Mock, body: impl FnOnce(&Index, &Queue, &Control)) {
    serve_with(model, None, body);
}

/// The same with a warm file in a folder, under a key.
fn serve_with(
    model: Mock,
    warm: Option<(&Path, u128)>,
    body: impl FnOnce(&Index, &Queue, &Control),
) {
    let (index, queue) = (index(), Queue::new(usize::MAX));
    let warm = warm.map(|(folder, key)| WarmFile::new(folder, key, index.prefix()));
    let control = Arc::clone(&model.control);
    let title = index.longest_title() as usize;
    let division = Division {
        parallel: PARALLEL,
        room: Room {
            states: STATES,
            tokens: 2 * title,
        },
    };
    /// Also when `body` fails: else the worker would wait for ever.
    struct Close<'a>(&'a Queue);
    impl Drop for Close<'_> {
        fn drop(&mut self) {
            self.0.close();
        }
    }
    crate::panics::silence();
    std::thread::scope(|scope| {
        let close = Close(&queue);
        let worker = scope.spawn(|| {
            let worker = Worker::new(model, &index, &queue, division);
            worker.with_warm_file(warm).run();
        });
        body(&index, &queue, &control);
        drop(close);
        join([worker]);
    });
}

/// Waits for threads by name: the end of a scope waits too, but in a way that ThreadSanitizer does not
/// see where the standard library is not built for it.
fn join<'s, T: 's>(threads: impl IntoIterator<Item = ScopedJoinHandle<'s, T>>) {
    for thread in threads {
        assert!(thread.join().is_ok(), "a thread panicked");
    }
}

/// What a search by itself finds.
fn alone(index: &Index, question: &str, k: usize) -> SmallVec<[Found; 3]> {
    let mut model = Mock::new(4096, 4096);
    let prefix = index.prefix();
    let mut batch = Batch::default();
    batch.push(Seq::PREFIX, 0, prefix, prefix.len());
    model.decode(&batch, &mut |_, _| Ok(())).expect("decodes");
    let question = request(index, question, k).question.expect("a question");
    top_k(
        &mut model,
        index.trie(),
        prefix.len() as u32,
        &question.tokens,
        question.search,
        Hints::default(),
    )
    .expect("finds")
    .into()
}

#[test]
fn callers_who_share_decodes_get_the_answers_of_a_search_alone() {
    serve(Mock::new(96, 64), |index, queue, control| {
        std::thread::scope(|scope| {
            // Three times as many as are in flight together.
            let callers = (0..3 * PARALLEL).map(|caller| {
                scope.spawn(move || {
                    for k in [1, 3, 9] {
                        let question = format!("question {caller} of {k}?");
                        let outcome = queue.ask(request(index, &question, k)).expect("answers");
                        assert_eq!(outcome.found, alone(index, &question, k), "{question}");
                    }
                })
            });
            join(callers.collect::<Vec<_>>());
        });
        let prefix = index.prefix().len();
        assert_eq!(control.prefix_tokens.load(Ordering::SeqCst), prefix);
        let shared = |seqs: &Vec<u16>| seqs.iter().any(|seq| slot(*seq) != slot(seqs[0]));
        assert!(
            control.log.lock().iter().any(shared),
            "no decode was shared"
        );
    });
}

/// A question's drafts are decoded with it, alone and among others. The answer is the same.
#[test]
fn drafts_are_decoded_with_the_question() {
    let ask = |index: &Index, queue: &Queue, question: &str| {
        let mut request = request(index, question, 1);
        if let Some(question) = &mut request.question {
            Arc::make_mut(question).drafts = vec![0, 4];
        }
        let outcome = queue.ask(request).expect("answers");
        assert_eq!(outcome.found, alone(index, question, 1));
    };
    serve(Mock::new(96, 64), |index, queue, control| {
        // The slots of a question beside its own.
        let drafted = |seqs: &[u16], at: u16| {
            let first = 2 + at * STATES as u16;
            (first..first + STATES as u16 - 1).any(|seq| seqs.contains(&seq))
        };
        ask(index, queue, "Alone?");
        let first = control.log.lock().iter().position(|seqs| seqs[0] > 0);
        let first = first.expect("a decode of the question");
        assert!(drafted(&control.log.lock()[first], 0));

        let gate = control.gate.lock();
        let before = control.decodes();
        std::thread::scope(|scope| {
            let first = scope.spawn(|| ask(index, queue, "First?"));
            control.await_decode(before + 1);
            let others = ["Second?", "Third?"]
                .map(|question| scope.spawn(move || ask(index, queue, question)));
            eventually(|| queue.count_waiting() == 2, "the others wait");
            drop(gate);
            join(others.into_iter().chain([first]));
        });
        let log = control.log.lock();
        for at in [1, 2] {
            let own = 1 + at * STATES as u16;
            let begun = log[before..].iter().find(|seqs| seqs.contains(&own));
            let begun = begun.expect("it begins");
            assert!(drafted(begun, at), "{begun:?}");
        }
    });
}

/// The place in flight that a sequence belongs to.
fn slot(seq: u16) -> usize {
    (usize::from(seq) - 1) / STATES
}

#[test]
fn a_small_batch_starves_nobody() {
    // One question, or one title, fills a decode.
    let question = "Which of all these is it?";
    let fits = request(&index(), question, 1)
        .question
        .expect("asks")
        .tokens
        .len();
    let title = index().longest_title() as usize;
    serve(
        Mock::new(fits.max(title), title),
        |index, queue, control| {
            let gate = control.gate.lock();
            std::thread::scope(|scope| {
                let warm = Request {
                    question: None,
                    ..request(index, question, 1)
                };
                let warm = scope.spawn(|| queue.ask(warm).expect("warms"));
                control.await_decode(1);
                let ask = || queue.ask(request(index, question, 9)).expect("answers");
                let callers = [ask; PARALLEL].map(|ask| scope.spawn(ask));
                // All are admitted together, and want the same.
                eventually(|| queue.count_waiting() == PARALLEL, "all ask");
                drop(gate);
                join(callers.into_iter().chain([warm]));
            });
            let log = control.log.lock();
            for at in 0..PARALLEL {
                let served: Vec<usize> = (0..log.len())
                    .filter(|&i| log[i].iter().any(|&seq| seq > 0 && slot(seq) == at))
                    .collect();
                assert!(served.len() > 9, "{served:?}");
                for pair in served.windows(2) {
                    assert!(pair[1] - pair[0] <= PARALLEL, "{at} waited: {served:?}");
                }
            }
        },
    );
}

#[test]
fn a_cancelled_caller_returns_during_the_decode_and_the_worker_lets_go_after_it() {
    serve(Mock::new(4096, 4096), |index, queue, control| {
        queue.ask(request(index, "first", 1)).expect("answers");
        let before = control.decodes();
        let asked = request(index, "second", 9);
        let cancel = asked.cancel.clone();
        let gate = control.gate.lock();
        std::thread::scope(|scope| {
            let caller = scope.spawn(|| queue.ask(asked));
            control.await_decode(before + 1);
            cancel.trigger();
            let result = caller.join().expect("returns though the decode does not");
            assert!(matches!(result, Err(Error::Cancelled)), "{result:?}");
        });
        drop(gate);
        let outcome = queue.ask(request(index, "third", 3)).expect("answers");
        assert_eq!(outcome.found, alone(index, "third", 3));
        // One decode of the second question, and only those of the third after it.
        let after = control.decodes() - before - 1;
        assert_eq!(after, outcome.decodes as usize);
    });
}

#[test]
fn a_deadline_is_a_timeout_with_its_length() {
    serve(Mock::new(4096, 4096), |index, queue, control| {
        // Its reply is used again by the one that is late.
        queue.ask(request(index, "first", 1)).expect("answers");
        let gate = control.gate.lock();
        let mut asked = request(index, "late", 1);
        asked.deadline = Some(Instant::now() + Duration::from_millis(20));
        asked.timeout_ms = 20;
        let result = queue.ask(asked);
        assert!(
            matches!(result, Err(Error::Timeout { timeout_ms: 20 })),
            "{result:?}"
        );
        drop(gate);
        // What the late one would have got comes to nobody else.
        for question in ["next", "other"] {
            let outcome = queue.ask(request(index, question, 1)).expect("answers");
            assert_eq!(outcome.found, alone(index, question, 1));
        }
    });
}

#[test]
fn a_prefill_that_nobody_waits_for_stops_and_the_next_question_goes_on_with_it() {
    let prefix = index().prefix().len();
    let piece = prefix / 4;
    serve(Mock::new(piece, 64), |index, queue, control| {
        let asked = request(index, "first", 1);
        let cancel = asked.cancel.clone();
        let gate = control.gate.lock();
        std::thread::scope(|scope| {
            let caller = scope.spawn(|| queue.ask(asked));
            control.await_decode(1);
            cancel.trigger();
            let result = caller.join().expect("returns");
            assert!(matches!(result, Err(Error::Cancelled)), "{result:?}");
        });
        drop(gate);
        let done = || control.prefix_tokens.load(Ordering::SeqCst);
        eventually(|| done() == piece, "the piece under way ends");
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(done(), piece, "and no other begins");
        let outcome = queue.ask(request(index, "next", 1)).expect("answers");
        assert_eq!(outcome.prefix_tokens as usize, prefix - piece);
        assert_eq!(done(), prefix);
        assert_eq!(outcome.found, alone(index, "next", 1));
    });
}

#[test]
fn who_comes_in_the_midst_of_a_prefill_is_told_what_it_cost_them() {
    let model = Mock::new(96, 64);
    let control = Arc::clone(&model.control);
    serve(model, |index, queue, _| {
        let whole = index.prefix().len() as u32;
        std::thread::scope(|scope| {
            let gate = control.gate.lock();
            let first = scope.spawn(|| queue.ask(request(index, "who?", 1)));
            control.await_decode(1);
            let second = scope.spawn(|| queue.ask(request(index, "when?", 1)));
            eventually(|| queue.has_waiting(), "the second waits");
            drop(gate);
            for caller in [first, second] {
                let outcome = caller.join().expect("no panic").expect("an answer");
                assert_eq!(outcome.prefix_tokens, whole);
                assert!(outcome.prefill > Duration::ZERO);
            }
        });
        let later = queue.ask(request(index, "where?", 1)).expect("an answer");
        assert_eq!((later.prefix_tokens, later.prefill), (0, Duration::ZERO));
    });
}

#[test]
fn warming_decodes_the_prefix_and_nothing_else() {
    serve(Mock::new(4096, 4096), |index, queue, control| {
        let warm = Request {
            question: None,
            ..request(index, "unasked", 1)
        };
        let outcome = queue.ask(warm).expect("warms");
        assert_eq!(outcome.prefix_tokens as usize, index.prefix().len());
        assert!(outcome.found.is_empty());
        assert_eq!(*control.log.lock(), [[0]]);
        let outcome = queue.ask(request(index, "asked", 1)).expect("answers");
        assert_eq!(outcome.prefix_tokens, 0);
    });
}

#[test]
fn a_decode_that_fails_is_everybodys_error_and_the_next_question_starts_anew() {
    serve(Mock::new(4096, 4096), |index, queue, control| {
        queue.ask(request(index, "first", 1)).expect("answers");
        let before = control.decodes();
        let gate = control.gate.lock();
        control.fail_at.store(before + 1, Ordering::SeqCst);
        std::thread::scope(|scope| {
            let ask = || queue.ask(request(index, "second", 9));
            let one = scope.spawn(ask);
            control.await_decode(before + 1);
            let other = scope.spawn(ask);
            drop(gate);
            let error = one.join().expect("returns").expect_err("fails");
            assert!(matches!(&error, Error::Decode(what) if what == "forced"));
            // The other one came too late to be part of it.
            other.join().expect("returns").expect("answers");
        });
        let prefix = index.prefix().len();
        let decoded = control.prefix_tokens.load(Ordering::SeqCst);
        assert_eq!(decoded, 2 * prefix, "the prefix is decoded again, once");
        let outcome = queue.ask(request(index, "third", 3)).expect("answers");
        assert_eq!(outcome.found, alone(index, "third", 3));
    });
}

#[test]
fn a_decode_that_fails_is_the_error_of_all_in_flight() {
    serve(Mock::new(4096, 4096), |index, queue, control| {
        let gate = control.gate.lock();
        std::thread::scope(|scope| {
            let warm = scope.spawn(|| queue.ask(request(index, "first", 9)));
            control.await_decode(1);
            let rest: Vec<_> = (1..PARALLEL)
                .map(|_| scope.spawn(|| queue.ask(request(index, "rest", 9))))
                .collect();
            let waiting = || queue.count_waiting();
            eventually(|| waiting() == PARALLEL - 1, "all ask");
            // After the prefix all are admitted, and the next decode is theirs together.
            control.fail_at.store(2, Ordering::SeqCst);
            drop(gate);
            let results = rest.into_iter().chain([warm]).map(|caller| caller.join());
            let failed = results
                .map(|result| result.expect("returns"))
                .filter(|result| matches!(result, Err(Error::Decode(_))))
                .count();
            assert_eq!(failed, PARALLEL);
        });
        queue.ask(request(index, "next", 1)).expect("answers");
    });
}

#[test]
fn a_question_whose_logits_are_no_numbers_fails_alone() {
    serve(Mock::new(4096, 4096), |index, queue, control| {
        let gate = control.gate.lock();
        std::thread::scope(|scope| {
            let good = scope.spawn(|| queue.ask(request(index, "good", 9)));
            let bad = scope.spawn(|| queue.ask(request(index, "bad~", 9)));
            control.await_decode(1);
            drop(gate);
            let error = bad.join().expect("returns").expect_err("fails");
            assert!(matches!(error, Error::Decode(_)), "{error}");
            let outcome = good.join().expect("returns").expect("answers");
            assert_eq!(outcome.found, alone(index, "good", 9));
        });
        let prefix = index.prefix().len();
        let decoded = control.prefix_tokens.load(Ordering::SeqCst);
        assert_eq!(decoded, prefix, "nothing is decoded again");
    });
}

#[test]
fn a_panic_of_the_model_answers_everybody_now_and_later() {
    serve(Mock::new(4096, 4096), |index, queue, control| {
        let gate = control.gate.lock();
        control.panic_at.store(1, Ordering::SeqCst);
        std::thread::scope(|scope| {
            // More than are in flight: the rest waits.
            let callers: Vec<_> = (0..2 * PARALLEL)
                .map(|_| scope.spawn(|| queue.ask(request(index, "any", 1))))
                .collect();
            control.await_decode(1);
            drop(gate);
            for caller in callers {
                let error = caller.join().expect("returns").expect_err("panicked");
                assert!(matches!(&error, Error::Panic(what) if what == "forced"));
            }
        });
        let error = queue.ask(request(index, "later", 1)).expect_err("ended");
        assert!(matches!(error, Error::Panic(_)), "{error}");
    });
}

#[test]
fn a_closed_queue_answers_everybody_who_waits_and_refuses_the_rest() {
    serve(Mock::new(4096, 4096), |index, queue, control| {
        let gate = control.gate.lock();
        std::thread::scope(|scope| {
            let callers: Vec<_> = (0..2 * PARALLEL)
                .map(|_| scope.spawn(|| queue.ask(request(index, "any", 9))))
                .collect();
            control.await_decode(1);
            queue.close();
            drop(gate);
            for caller in callers {
                let result = caller.join().expect("returns");
                assert!(matches!(result, Err(Error::Closed)), "{result:?}");
            }
        });
        let error = queue.ask(request(index, "later", 1)).expect_err("closed");
        assert!(matches!(error, Error::Closed), "{error}");
    });
}

#[test]
fn a_worker_that_leaves_answers_who_is_in_flight_and_the_next_one_those_who_wait() {
    let (index, queue) = (index(), Queue::new(usize::MAX));
    let title = index.longest_title() as usize;
    let division = Division {
        parallel: 1,
        room: Room {
            states: STATES,
            tokens: 2 * title,
        },
    };
    let first = Mock::new(96, 64);
    let control = Arc::clone(&first.control);
    let (index, queue) = (&index, &queue);
    std::thread::scope(|scope| {
        let gate = control.gate.lock();
        let worker = scope.spawn(move || Worker::new(first, index, queue, division).run());
        let callers = ["one?", "two?"].map(|question| {
            let caller = scope.spawn(move || queue.ask(request(index, question, 3)));
            // The first is in flight before the second asks.
            control.await_decode(1);
            (question, caller)
        });
        eventually(|| queue.has_waiting(), "the second waits");
        queue.leave();
        drop(gate);
        assert!(worker.join().expect("no panic"), "it left");
        assert!(queue.has_waiting() && queue.wait());
        queue.stay();
        let second = Mock::new(96, 64);
        let prefix = Arc::clone(&second.control);
        let worker = scope.spawn(move || Worker::new(second, index, queue, division).run());
        for (question, caller) in callers {
            let outcome = caller.join().expect("no panic").expect("answers");
            assert_eq!(outcome.found, alone(index, question, 3));
        }
        // What the first one held is gone.
        let decoded = prefix.prefix_tokens.load(Ordering::SeqCst);
        assert_eq!(decoded, index.prefix().len());
        queue.close();
        assert!(!worker.join().expect("no panic"), "it was closed");
    });
}

#[test]
fn a_worker_that_is_to_leave_before_it_begins_answers_who_waits_first() {
    let (index, queue) = (index(), Queue::new(usize::MAX));
    let title = index.longest_title() as usize;
    let division = Division {
        parallel: 1,
        room: Room {
            states: STATES,
            tokens: 2 * title,
        },
    };
    let (index, queue) = (&index, &queue);
    std::thread::scope(|scope| {
        let caller = scope.spawn(move || queue.ask(request(index, "one?", 3)));
        eventually(|| queue.has_waiting(), "it waits");
        queue.leave();
        let worker = Mock::new(96, 64);
        assert!(Worker::new(worker, index, queue, division).run(), "it left");
        let outcome = caller.join().expect("no panic").expect("answers");
        assert_eq!(outcome.found, alone(index, "one?", 3));
    });
}

#[test]
fn a_worker_that_leaves_while_idle_does_so_at_once() {
    let (index, queue) = (index(), Queue::new(usize::MAX));
    let division = Division {
        parallel: 1,
        room: Room {
            states: STATES,
            tokens: 64,
        },
    };
    std::thread::scope(|scope| {
        let worker = Mock::new(96, 64);
        let worker = scope.spawn(|| Worker::new(worker, &index, &queue, division).run());
        queue.leave();
        assert!(worker.join().expect("no panic"));
        queue.close();
        assert!(!queue.wait());
    });
}

#[test]
fn who_comes_when_too_many_wait_is_told_at_once_with_both_numbers() {
    let (index, queue) = (index(), Queue::new(2));
    let (index, queue) = (&index, &queue);
    std::thread::scope(|scope| {
        let waiting = [1, 2].map(|_| scope.spawn(|| queue.ask(request(index, "x?", 1)).err()));
        let both = || queue.count_waiting() == 2;
        eventually(both, "two wait");
        let error = queue.ask(request(index, "y?", 1)).expect_err("refused");
        assert!(matches!(error, Error::Busy { waiting: 2, max: 2 }));
        let text = error.to_string();
        assert!(
            text.contains("2 questions") && text.contains("is 2"),
            "{text}"
        );
        queue.refuse(&Error::Decode("no memory".to_owned()));
        for caller in waiting {
            let error = caller.join().expect("no panic");
            assert!(matches!(error, Some(Error::Decode(_))), "{error:?}");
        }
    });
}

#[test]
fn who_gives_up_waits_no_more() {
    let (index, queue) = (index(), Queue::new(1));
    for _ in 0..2 {
        let mut request = request(&index, "x?", 1);
        request.deadline = Some(Instant::now() + Duration::from_millis(10));
        let error = queue.ask(request).expect_err("nobody answers");
        assert!(matches!(error, Error::Timeout { .. }), "{error}");
        assert!(!queue.has_waiting());
    }
}

/// Asks a worker with a warm file in `folder` its first question.
fn first_answer(folder: &Path, model: Mock, key: u128) -> Outcome {
    let mut outcome = Outcome::default();
    serve_with(model, Some((folder, key)), |index, queue, _| {
        outcome = queue.ask(request(index, "Where?", 3)).expect("answers");
    });
    outcome
}

/// Tokens of the prefix that were decoded, and that were restored.
fn prefix_of(outcome: &Outcome) -> (usize, usize) {
    let Outcome {
        prefix_tokens,
        restored_tokens,
        ..
    } = outcome;
    (*prefix_tokens as usize, *restored_tokens as usize)
}

#[test]
fn the_prefix_is_written_after_the_first_answer_and_read_by_the_next_worker() {
    let folder = tempfile::tempdir().expect("a folder");
    let prefix = index().prefix().len();
    let first = first_answer(folder.path(), Mock::new(96, 64), 1);
    assert_eq!(prefix_of(&first), (prefix, 0));
    let again = Mock::new(96, 64);
    let control = Arc::clone(&again.control);
    let second = first_answer(folder.path(), again, 1);
    assert_eq!(prefix_of(&second), (0, prefix));
    assert_eq!(control.prefix_tokens.load(Ordering::SeqCst), 0);
    assert_eq!(first.found, second.found);
    // Under another key there is nothing.
    let other = first_answer(folder.path(), Mock::new(96, 64), 2);
    assert_eq!(prefix_of(&other), (prefix, 0));
}

#[test]
fn a_state_that_the_model_refuses_is_decoded_and_written_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let prefix = index().prefix().len();
    let first = first_answer(folder.path(), Mock::new(96, 64), 1);
    let path = WarmFile::new(folder.path(), 1, index().prefix());
    let written = || std::fs::metadata(path.path()).and_then(|file| file.modified());
    let before = written().expect("is there");
    let mut picky = Mock::new(96, 64);
    picky.refuses_states = true;
    let refused = first_answer(folder.path(), picky, 1);
    assert_eq!(prefix_of(&refused), (prefix, 0));
    assert_eq!(refused.found, first.found);
    assert!(written().expect("is there") > before);
}

#[test]
fn after_a_decode_that_fails_a_restored_prefix_is_decoded() {
    let folder = tempfile::tempdir().expect("a folder");
    first_answer(folder.path(), Mock::new(96, 64), 1);
    let path = WarmFile::new(folder.path(), 1, index().prefix());
    let written = || std::fs::metadata(path.path()).and_then(|file| file.modified());
    let before = written().expect("is there");
    let model = Mock::new(96, 64);
    model.control.fail_at.store(1, Ordering::SeqCst);
    serve_with(model, Some((folder.path(), 1)), |index, queue, _| {
        let first = queue.ask(request(index, "Where?", 3));
        assert!(matches!(first, Err(Error::Decode(_))), "{first:?}");
        let second = queue.ask(request(index, "Where?", 3)).expect("answers");
        assert_eq!(prefix_of(&second), (index.prefix().len(), 0));
    });
    assert!(written().expect("is there") > before, "a better one");
}
