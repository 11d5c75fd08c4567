//! Any bytes as a LoRA adapter of a small model (`tiny.rs`), so also as a GGUF file: what is merged
//! is a model that opens, and what is refused leaves nothing behind.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stair::Code;
use stair::engine::{MergeOptions, Model, ModelOptions, merge};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("base.gguf"), stair_fuzz::tiny::gguf()).expect("writes");
    folder
});

fuzz_target!(|bytes: &[u8]| {
    let inside = |name: &str| FOLDER.path().join(name);
    let (base, adapter, merged) = (inside("base.gguf"), inside("lora.gguf"), inside("out.gguf"));
    fs::write(&adapter, bytes).expect("writes");
    let mut options = MergeOptions::default();
    options.to = Some("f32");
    match merge(&base, &adapter, &merged, &options) {
        Ok(report) => {
            assert!((1..=report.tensors).contains(&report.changed));
            let info = open(&merged);
            assert_eq!(info, open(&base));
            fs::remove_file(&merged).expect("removes");
        }
        Err(error) => assert_eq!(error.code(), Code::Adapter, "{error}"),
    }
    let left = fs::read_dir(FOLDER.path()).expect("lists").count();
    assert_eq!(left, 2);
});

fn open(path: &Path) -> (u32, u64, u64) {
    let model = Model::open(path, &ModelOptions::default()).expect("opens");
    let info = model.info();
    (info.vocab_size, info.parameters, info.fingerprint)
}
