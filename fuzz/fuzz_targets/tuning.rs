//! Any bytes as the tuning beside a model; what is read can be used, is written and comes back
//! equal.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stair::eval::Tuning;
use stair::eval::confidence::Evidence;
use stair_fuzz::with_file;

fuzz_target!(|bytes: &[u8]| {
    let Ok(Some(tuning)) = with_file(bytes, Tuning::read) else {
        return;
    };
    assert!(tuning.lexical_weight >= 0.0 && tuning.lexical_weight.is_finite());
    if let Some(refusal) = &tuning.refusal {
        let evidence = Evidence {
            scores: vec![-0.5, -1.0],
            log_prob: Some(-0.5),
            legal_mass: Some(0.5),
        };
        assert!(refusal.needs() > 2 || refusal.answerable(&evidence).is_some());
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("m.tune.json");
    tuning.write(&path).expect("writes");
    assert_eq!(Tuning::read(&path).expect("reads"), Some(tuning));
});
