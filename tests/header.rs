//! `include/stair.h` is what `src/capi` says, to the letter.

use std::path::Path;

#[test]
fn the_committed_header_is_the_generated_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml");
    let mut builder = cbindgen::Builder::new().with_config(config);
    // Only these files speak C; the order is the header's.
    for file in [
        "text",
        "version",
        "status",
        "error",
        "cancel",
        "log",
        "model",
        "index",
        "retriever",
        "results",
    ] {
        builder = builder.with_src(root.join("src/capi").join(file).with_extension("rs"));
    }
    let mut generated = Vec::new();
    builder.generate().expect("cbindgen").write(&mut generated);
    let generated = mark_unused_results(&String::from_utf8(generated).expect("UTF-8"));
    let path = root.join("include/stair.h");
    if std::env::var_os("STAIR_BLESS").is_some() {
        std::fs::write(&path, &generated).expect("writes the header");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == generated,
        "include/stair.h is not what src/capi says; renew it with STAIR_BLESS=1 cargo test --release --test header"
    );
}

/// A status that nobody looks at is a mistake. cbindgen marks such functions by an attribute that
/// Rust's own lints would trip over, so it is added here.
fn mark_unused_results(header: &str) -> String {
    let mut marked = String::new();
    let mut lines = header.lines().peekable();
    while let Some(line) = lines.next() {
        let next = lines.peek().copied().unwrap_or_default();
        let prototype = match line {
            "STAIR_API" => next,
            _ => line.strip_prefix("STAIR_API ").unwrap_or_default(),
        };
        let tells_of_failure = prototype.starts_with("stair_status ")
            && !prototype.starts_with("stair_status stair_error_code");
        if tells_of_failure {
            marked.push_str("STAIR_NODISCARD ");
        }
        marked.push_str(line);
        marked.push('\n');
    }
    marked
}
