//! Any bytes as a file of questions; what is read is written and comes back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stair::questions::{read, read_unchecked};
use stair_fuzz::with_file;
use std::collections::HashSet;

fuzz_target!(|bytes: &[u8]| {
    let (checked, questions) = with_file(bytes, |path| (read(path), read_unchecked(path)));
    let Ok(questions) = questions else {
        assert!(checked.is_err());
        return;
    };
    let lines: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').collect();
    assert!(questions.is_sorted_by(|a, b| a.line < b.line));
    assert!(
        questions
            .iter()
            .all(|q| (1..=lines.len()).contains(&q.line))
    );

    let mut written = String::new();
    for question in &questions {
        written += &serde_json::to_string(question).expect("writes");
        written.push('\n');
    }
    let mut again = with_file(written.as_bytes(), |path| read_unchecked(path)).expect("reads");
    for (again, question) in again.iter_mut().zip(&questions) {
        again.line = question.line;
    }
    assert_eq!(again, questions);

    let ids: HashSet<&str> = questions.iter().map(|q| q.id.as_str()).collect();
    let sound =
        ids.len() == questions.len() && questions.iter().all(|q| !q.query.trim().is_empty());
    assert_eq!(checked.is_ok(), sound);
});
