//! The library writes nothing to standard output and standard error, by file descriptor.

#![cfg(all(feature = "engine", feature = "building", unix))]
#![allow(clippy::undocumented_unsafe_blocks)]

mod common;

use common::{QUESTIONS, handbook, model_path, scratch};
use stair::capi::*;
use std::path::Path;
use std::process::{Command, Stdio};
use std::ptr::{null, null_mut};

#[test]
fn nothing_is_written_whatever_happens() {
    let folder = tempfile::tempdir_in(scratch()).expect("a folder");
    let damaged = folder.path().join("damaged.gguf");
    let mut bytes = std::fs::read(model_path()).expect("reads");
    bytes.truncate(4 << 20);
    std::fs::write(&damaged, &bytes).expect("writes");
    let metadata = common::gguf::Metadata::read(&model_path());
    let unknown = common::gguf::Value::Text("nonesuch".to_owned());
    let unknown = metadata.with("general.architecture", unknown).to_gguf();
    std::fs::write(folder.path().join("unknown.gguf"), unknown).expect("writes");
    // A model whose tensors are not those of its architecture: llama.cpp itself refuses it.
    std::fs::write(folder.path().join("empty.gguf"), metadata.to_gguf()).expect("writes");
    let index = handbook().path.clone();
    let written = folder.path().join("written");
    let file = std::fs::File::create(&written).expect("creates");
    let status = Command::new(std::env::current_exe().expect("a test has a path"))
        .args(["the_child_that_does_it_all", "--exact", "--nocapture"])
        .env("STAIR_TEST_SILENCE", folder.path())
        .env("STAIR_TEST_INDEX", index)
        .env("GGML_LOG_LEVEL", "debug")
        .stdin(Stdio::null())
        .stdout(file.try_clone().expect("shares"))
        .stderr(file)
        .status()
        .expect("starts");
    let written = std::fs::read(&written).expect("reads");
    let written = String::from_utf8_lossy(&written);
    assert_eq!(status.code(), Some(DONE), "{written}");
    // What the test harness itself writes before the child starts its work ends with this.
    let after = written.split_once(MARK).expect("the child began").1;
    assert_eq!(after, "");
}

const MARK: &str = "from here on nothing";
const DONE: i32 = 77;

/// Not a test by itself: what the test above starts.
#[test]
fn the_child_that_does_it_all() {
    let Some(folder) = std::env::var_os("STAIR_TEST_SILENCE") else {
        return;
    };
    let index = std::env::var("STAIR_TEST_INDEX").expect("is set");
    print!("{MARK}");
    std::io::Write::flush(&mut std::io::stdout()).expect("flushes");
    work(Path::new(&folder), &index);
    // Without the harness's own last words.
    unsafe { libc::_exit(DONE) };
}

fn work(folder: &Path, index_path: &str) {
    unsafe {
        let mut model = null_mut();
        let mut error = null_mut();
        for name in [
            "no.gguf",
            "damaged.gguf",
            "unknown.gguf",
            "empty.gguf",
            "written",
            "",
        ] {
            let path = folder.join(name);
            let path = path.to_str().expect("UTF-8");
            let (text, len) = (path.as_ptr().cast(), path.len());
            let status = stair_model_open(text, len, null(), null(), &mut model, &mut error);
            must(status != STAIR_OK && model.is_null());
            stair_error_free(error);
        }
        let path = model_path();
        let path = path.to_str().expect("UTF-8");
        let (text, len) = (path.as_ptr().cast(), path.len());
        must(stair_model_open(text, len, null(), null(), &mut model, null_mut()) == STAIR_OK);
        let mut index = null_mut();
        let (text, len) = (index_path.as_ptr().cast(), index_path.len());
        must(stair_index_open(text, len, 0, &mut index, null_mut()) == STAIR_OK);
        let mut broken = null_mut();
        must(stair_index_open_buffer(text.cast(), len, &mut broken, null_mut()) != STAIR_OK);
        let mut built = null_mut();
        let document = "# A\n\na\n\n# A\n\nb\n";
        let (text, len) = (document.as_ptr().cast(), document.len());
        let status = stair_index_build(model, text, len, null(), 0, null(), &mut built, null_mut());
        must(status == STAIR_OK);
        let mut options: stair_retriever_options = std::mem::zeroed();
        options.struct_size = size_of_val(&options) as u32;
        let mut retriever = null_mut();
        options.context_tokens = 10;
        let status = stair_retriever_new(model, index, &options, &mut retriever, null_mut());
        must(status == STAIR_ERR_CONTEXT_TOO_SMALL);
        options.context_tokens = u32::MAX;
        let status = stair_retriever_new(model, index, &options, &mut retriever, null_mut());
        must(status == STAIR_ERR_INVALID_ARGUMENT);
        // llama.cpp warns of a context that is longer than the model knows.
        options.context_tokens = 20_000;
        // A cache folder that is a file: neither reading nor writing works, and nobody says so.
        options.cache_dir = index_path.as_ptr().cast();
        options.cache_dir_len = index_path.len();
        let status = stair_retriever_new(model, index, &options, &mut retriever, null_mut());
        must(status == STAIR_OK);
        let cancel = stair_cancel_new();
        let mut asked: stair_retrieve_options = std::mem::zeroed();
        must(stair_retrieve_options_init(&mut asked, size_of_val(&asked)) == STAIR_OK);
        asked.k = 1;
        let question = QUESTIONS[0];
        let (text, len) = (question.as_ptr().cast(), question.len());
        let mut results = null_mut();
        asked.timeout_ms = 1;
        let status = stair_retrieve(
            retriever,
            text,
            len,
            &asked,
            cancel,
            &mut results,
            null_mut(),
        );
        must(status == STAIR_ERR_TIMEOUT);
        asked.timeout_ms = 0;
        let status = stair_retrieve(
            retriever,
            text,
            len,
            &asked,
            cancel,
            &mut results,
            null_mut(),
        );
        must(status == STAIR_OK && stair_results_count(results) == 1);
        stair_cancel_trigger(cancel);
        let status = stair_retrieve(
            retriever,
            text,
            len,
            &asked,
            cancel,
            &mut results,
            null_mut(),
        );
        must(status == STAIR_ERR_CANCELLED);
        let status = stair_retrieve(retriever, text, 0, &asked, null(), &mut results, null_mut());
        must(status == STAIR_ERR_EMPTY_QUESTION);
        stair_cancel_free(cancel);
        stair_results_free(results);
        stair_retriever_free(retriever);
        stair_retriever_free(retriever);
        stair_index_free(index);
        stair_index_free(built);
        stair_model_free(model);
    }
}

/// A failed assertion writes, which is what is looked for: the parent sees where.
#[track_caller]
fn must(holds: bool) {
    assert!(holds);
}
