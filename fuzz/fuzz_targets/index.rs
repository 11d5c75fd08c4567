//! Any bytes as an index; and the same bytes with a header and checksums that fit, so that only
//! the structural pass stands between them and the walks.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stair::index::Index;
use stair_fuzz::{forge, walk};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(index) = Index::from_bytes(bytes) {
        walk(&index);
    }
    if let Some(forged) = forge(bytes)
        && let Ok(index) = Index::from_bytes(&forged)
    {
        walk(&index);
    }
});
