//! Any bytes as a predictions file; what is read is ranked, is written and comes back equal, so
//! that figures can be computed from it again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stair::eval::predictions::{format, parse};
use std::collections::HashSet;

fuzz_target!(|bytes: &[u8]| {
    let Ok(predictions) = parse(bytes, "predictions") else {
        return;
    };
    let mut ids = HashSet::new();
    for prediction in &predictions {
        assert!(ids.insert(&prediction.id));
        assert_eq!(prediction.system, predictions[0].system);
        assert!(prediction.hits.is_sorted_by(|a, b| a.score >= b.score));
        assert!(
            prediction
                .rank()
                .is_none_or(|rank| rank <= prediction.hits.len())
        );
    }
    let written = format(&predictions).expect("writes");
    assert_eq!(parse(&written, "written").expect("reads"), predictions);
});
