//! Any bytes as a Markdown document; what is read must be sound, build and come back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stair::index::BuildOptions;
use stair::toc::{ReadOptions, read_markdown};
use stair_fuzz::round_trip;

fuzz_target!(|bytes: &[u8]| {
    for keep_front_matter in [false, true] {
        let options = ReadOptions {
            keep_front_matter,
            ..ReadOptions::default()
        };
        if let Ok(toc) = read_markdown(bytes, "document", &options) {
            toc.check(bytes.len() as u64)
                .expect("a sound table of contents");
            round_trip(&toc, &BuildOptions::default());
        }
    }
});
