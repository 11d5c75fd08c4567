//! The figures that libstair promises, each printed beside its goal and written to
//! `target/bench.json`.
//!
//! usage: cargo bench --bench figures -- MODEL.gguf [GROUP...]
//!
//! Groups: `trie`, `million`, `overhead`, `callers`, `warm`, `steady`, `soak`, `books`, `decodes`; all of them when
//! none is named, and only then is the file written. Machines are busy and differ, so a figure is a ratio within one run, or
//! the best of several rounds, wherever that says the same.

mod books;
mod callers;
mod clock;
mod decodes;
mod handbook;
mod heap;
mod memory;
mod million;
mod overhead;
mod report;
mod soak;
mod steady;
mod trie;
mod warm;

use report::{Anything, Report};
use std::path::Path;

#[global_allocator]
static HEAP: heap::Counting = heap::Counting;

type Group = fn(&Path, &mut Report) -> Anything;

const GROUPS: [(&str, Group); 9] = [
    ("trie", trie::measure),
    ("million", million::measure),
    ("overhead", overhead::measure),
    ("callers", callers::measure),
    ("warm", warm::measure),
    ("steady", steady::measure),
    ("soak", soak::measure),
    ("books", books::measure),
    ("decodes", decodes::measure),
];

fn main() -> Anything {
    // Cargo adds `--bench` to what it was given.
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| arg != "--bench")
        .collect();
    let Some((model, wanted)) = args.split_first() else {
        return Err("usage: figures MODEL.gguf [GROUP...]".into());
    };
    let known = |name: &String| GROUPS.iter().any(|(group, _)| group == name);
    if let Some(name) = wanted.iter().find(|name| !known(name)) {
        return Err(format!("there is no group {name:?}").into());
    }
    let mut report = Report::default();
    for (name, measure) in GROUPS {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            measure(Path::new(model), &mut report)?;
        }
    }
    report.print();
    if wanted.is_empty() {
        let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
        report.write(&Path::new(&target).join("bench.json"))?;
    }
    Ok(())
}
