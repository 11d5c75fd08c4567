//! The driver of the bench `peers`, whose systems may hang or end at any time.

#![cfg(all(unix, feature = "cli"))]

#[allow(dead_code)]
#[path = "../benches/peers/child.rs"]
mod child;
#[allow(dead_code)]
#[path = "../benches/peers/protocol.rs"]
mod protocol;

use child::{Patience, Running};
use protocol::{Answer, Ask};
use std::process::Command;
use std::time::{Duration, Instant};

/// As in the bench.
type Anything<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Far more than a shell takes, unless it is what a test waits out.
const AMPLE: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);

const READY: &str = r#"echo '{"versions": {}}'; "#;

/// Starts a shell, asks one question and ends it.
fn ask(script: &str, patience: Patience) -> Anything<Answer> {
    let log = tempfile::NamedTempFile::new()?;
    let mut command = Command::new("sh");
    command.arg("-c").arg(script);
    let mut running = Running::start(command, log.path(), patience)?;
    let answer = running.ask(&Ask {
        query: "why?".to_owned(),
        tokens: vec![1, 2],
    });
    running.end();
    answer
}

fn patience(start: Duration, answer: Duration, end: Duration) -> Patience {
    Patience { start, answer, end }
}

#[test]
fn a_system_that_answers_is_heard() {
    let script = format!(r#"{READY} read line; echo '{{"seconds": 2.5, "hits": []}}'; read line"#);
    let answer = ask(&script, patience(AMPLE, AMPLE, AMPLE)).expect("answers");
    assert_eq!((answer.seconds, answer.hits.len()), (2.5, 0));
}

#[test]
fn a_system_that_hangs_is_killed_and_the_reason_said() {
    let started = Instant::now();
    let answers = r#"read line; echo '{"seconds": 1, "hits": []}'"#;
    for (script, limits, word) in [
        (
            "exec sleep 600".to_owned(),
            patience(SHORT, AMPLE, AMPLE),
            Some("within 0.3 s"),
        ),
        (
            format!("{READY} exec sleep 600"),
            patience(AMPLE, SHORT, AMPLE),
            Some("within 0.3 s"),
        ),
        // It says no more, and does not end.
        (
            format!("{READY} exec sleep 600 >&-"),
            patience(AMPLE, AMPLE, SHORT),
            Some("has not ended"),
        ),
        // It answers, and does not end.
        (
            format!("{READY} {answers}; exec sleep 600"),
            patience(AMPLE, AMPLE, SHORT),
            None,
        ),
    ] {
        match (ask(&script, limits), word) {
            (Ok(_), None) => (),
            (Err(error), Some(word)) => {
                assert!(error.to_string().contains(word), "{script}: {error}");
            }
            (other, _) => panic!("{script}: {other:?}"),
        }
    }
    assert!(started.elapsed() < AMPLE);
}

#[test]
fn a_system_that_ends_is_quoted() {
    let script = format!("{READY} read line; echo 'no memory' >&2; exit 3");
    let error = ask(&script, patience(AMPLE, AMPLE, AMPLE)).expect_err("ends");
    let error = error.to_string();
    assert!(
        error.contains("no memory") && error.contains('3'),
        "{error}"
    );
}
