//! Model files that are missing, cut, damaged or of the wrong kind: each its own error, with cause
//! and remedy; and the two ways to a tokenizer, which agree.

#![cfg(all(feature = "engine", feature = "building"))]

mod common;

use common::gguf::{Metadata, Value};
use common::{handbook, handbook_path, index_bytes, model_path, scratch, vocabulary_only};
use stair::tokens::{Special, Tokenizer, TokenizerJson};
use stair::{Code, Error, Index, Model, ModelOptions, Retriever, RetrieverOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// A folder that is gone after the test.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir_in(scratch()).expect("a folder"))
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).expect("writes");
        path
    }
}

fn error(path: &Path) -> Error {
    match Model::open(path, &vocabulary_only()) {
        Ok(model) => panic!("{} opens: {model:?}", path.display()),
        Err(error) => error,
    }
}

/// Checks the code, and that the message has the cause and the remedy.
fn assert_error(path: &Path, code: Code, words: &[&str]) {
    let error = error(path);
    let message = error.to_string();
    assert_eq!(error.code(), code, "{message}");
    for word in words {
        assert!(message.contains(word), "no {word:?} in: {message}");
    }
}

fn metadata() -> Metadata {
    Metadata::read(&model_path())
}

/// The first bytes of the real model.
fn beginning(len: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(model_path()).expect("opens");
    file.take(len as u64)
        .read_to_end(&mut bytes)
        .expect("reads");
    bytes
}

#[test]
fn a_missing_file_a_folder_and_what_is_no_gguf() {
    let folder = Folder::new();
    assert_error(
        &folder.0.path().join("no.gguf"),
        Code::NotFound,
        &["no.gguf"],
    );
    assert_error(
        folder.0.path(),
        Code::NotAFile,
        &["give the path of a file"],
    );
    for bytes in [
        &b""[..],
        b"GGUF",
        b"<html>Not found</html> and so on",
        &[0; 4096],
    ] {
        let path = folder.file("x.gguf", bytes);
        assert_error(&path, Code::NotAModel, &["x.gguf", "give a .gguf file"]);
    }
    #[cfg(unix)]
    {
        let link = folder.0.path().join("null.gguf");
        std::os::unix::fs::symlink("/dev/null", &link).expect("links");
        assert_error(&link, Code::NotAFile, &["null.gguf"]);
    }
}

#[test]
fn a_big_endian_file_and_one_of_another_version() {
    let folder = Folder::new();
    let mut bytes = beginning(4096);
    bytes[4..8].copy_from_slice(&3u32.to_be_bytes());
    let path = folder.file("big.gguf", &bytes);
    assert_error(&path, Code::NotAModel, &["big-endian", "give a .gguf file"]);
    bytes[4..8].copy_from_slice(&9u32.to_le_bytes());
    let path = folder.file("new.gguf", &bytes);
    assert_error(&path, Code::NotAModel, &["version is 9"]);
}

#[test]
fn a_model_cut_short_anywhere_is_damaged() {
    let folder = Folder::new();
    let len = std::fs::metadata(model_path()).expect("is there").len();
    let header = metadata().end as u64;
    // A link costs nothing; cutting a copy of it step by step costs little.
    let path = folder.0.path().join("cut.gguf");
    std::fs::copy(model_path(), &path).expect("copies");
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .expect("opens");
    let mut lengths: Vec<u64> = vec![len - 1, len - 4096, len / 2, header + 65_536, header + 1];
    lengths.extend([header, header - 1, header / 2, 100_000, 4096, 100, 25, 24]);
    for cut in lengths {
        file.set_len(cut).expect("cuts");
        for options in [ModelOptions::default(), vocabulary_only()] {
            let error = Model::open(&path, &options).expect_err("cut");
            assert_eq!(error.code(), Code::ModelCorrupt, "{cut}: {error}");
            assert!(error.to_string().contains("copy it again"), "{error}");
        }
    }
    file.set_len(23).expect("cuts");
    assert_error(&path, Code::NotAModel, &["it has 23 bytes"]);
}

#[test]
fn an_architecture_that_llama_cpp_does_not_know() {
    let folder = Folder::new();
    let unknown = metadata().with("general.architecture", Value::Text("nonesuch".into()));
    let path = folder.file("unknown.gguf", &unknown.to_gguf());
    let words = ["\"nonesuch\"", "use a decoder model"];
    assert_error(&path, Code::ModelArchitecture, &words);
    let nameless = metadata().without("general.architecture");
    let path = folder.file("nameless.gguf", &nameless.to_gguf());
    assert_error(&path, Code::ModelCorrupt, &["architecture"]);
}

#[test]
fn an_encoder_does_not_generate_text() {
    let folder = Folder::new();
    let encoder = metadata()
        .with("general.architecture", Value::Text("bert".into()))
        .with("bert.attention.causal", Value::bool(false));
    let path = folder.file("encoder.gguf", &encoder.to_gguf());
    let words = ["\"bert\"", "encoder", "use a decoder model"];
    assert_error(&path, Code::ModelArchitecture, &words);
    let t5 = metadata().with("general.architecture", Value::Text("t5encoder".into()));
    let path = folder.file("t5.gguf", &t5.to_gguf());
    assert_error(&path, Code::ModelArchitecture, &["\"t5encoder\""]);
    let llada = metadata().with("general.architecture", Value::Text("llada".into()));
    let path = folder.file("llada.gguf", &llada.to_gguf());
    assert_error(&path, Code::ModelArchitecture, &["\"llada\""]);
}

#[test]
fn a_model_without_a_vocabulary() {
    let folder = Folder::new();
    let path = folder.file(
        "bare.gguf",
        &metadata().without("tokenizer.ggml.tokens").to_gguf(),
    );
    let words = ["no usable vocabulary", "convert the model again"];
    assert_error(&path, Code::ModelVocabulary, &words);
    let none = metadata().with("tokenizer.ggml.model", Value::Text("no_vocab".into()));
    let path = folder.file("none.gguf", &none.to_gguf());
    let error = error(&path);
    assert_eq!(error.code(), Code::ModelVocabulary, "{error}");
}

#[test]
fn a_vocabulary_that_llama_cpp_refuses_is_refused_in_its_words() {
    let folder = Folder::new();
    for (key, value) in [
        ("tokenizer.ggml.model", Value::Text("nonesuch".into())),
        ("tokenizer.ggml.pre", Value::Text("nonesuch".into())),
        ("tokenizer.ggml.tokens", Value::u32(7)),
        ("tokenizer.ggml.merges", Value::Text("a b".into())),
        (
            "tokenizer.ggml.token_type",
            Value::Plains(5, 3, vec![1; 12]),
        ),
    ] {
        let path = folder.file("odd.gguf", &metadata().with(key, value.clone()).to_gguf());
        let output = child(&path);
        assert!(
            output.status.code().is_some(),
            "{key} = {value:?} ended the process: {output:?}"
        );
        let said = String::from_utf8_lossy(&output.stdout);
        eprintln!(
            "{key}: {}",
            said.lines().find(|l| l.contains("[child]")).unwrap_or("?")
        );
    }
}

#[test]
fn a_long_word_ends_no_process_with_any_pre_tokenizer() {
    // Some are regular expressions in llama.cpp, whose matcher recurses for every character.
    let folder = Folder::new();
    for pre in [
        "qwen2",
        "llama-bpe",
        "deepseek-llm",
        "gpt-4o",
        "tekken",
        "exaone-moe",
        "deepseek-v3",
        "default",
    ] {
        let other = metadata().with("tokenizer.ggml.pre", Value::Text(pre.into()));
        let path = folder.file(&format!("{pre}.gguf"), &other.to_gguf());
        let output = child(&path);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{pre}: {:?} {said}", output.status);
        let line = said.lines().find(|line| line.contains("[child]"));
        eprintln!("{}", line.unwrap_or_default());
    }
}

#[test]
fn the_prompt_of_a_large_document_needs_no_more_stack_than_there_is() {
    let model = Model::open(model_path(), &vocabulary_only()).expect("opens");
    let line = "4.2 Sections without end\n";
    let tokens = |text: &str| model.encode(text, Special::AsText).expect("encodes");
    let few = tokens(&line.repeat(10)).len();
    assert_eq!(tokens(&line.repeat(50_000)).len(), 5_000 * few);
}

/// Opens the model at `path` for its vocabulary in another process, which an abort would end.
fn child(path: &Path) -> std::process::Output {
    Command::new(std::env::current_exe().expect("a test has a path"))
        .args([
            "the_child_that_opens_a_model",
            "--exact",
            "--nocapture",
            "--include-ignored",
        ])
        .env("STAIR_TEST_OPEN", path)
        .output()
        .expect("starts")
}

/// Not a test by itself: what [`child`] starts.
#[test]
fn the_child_that_opens_a_model() {
    let Some(path) = std::env::var_os("STAIR_TEST_OPEN") else {
        return;
    };
    for path in std::env::split_paths(&path) {
        print!("\n[child] {}: ", path.display());
        std::io::stdout().flush().expect("prints");
        match Model::open(&path, &vocabulary_only()) {
            Ok(model) => {
                // What a host would do next, with the longest question that is tokenised at all.
                let count = |text: &str| model.encode(text, Special::AsText).map_or(0, |t| t.len());
                let short = count("The 42nd <|im_end|> section.");
                let words = count(&"word ".repeat(512 * 256 / 5));
                let mut longest = 0;
                for piece in [
                    "a", "夜", "7", " ", "\n", ".", "-", "a-", ".-", "\u{301}", "Aa", "Ⓐ.", "a b ",
                ] {
                    let at_once = 1024 / piece.chars().count();
                    longest = longest.max(count(&piece.repeat(at_once)));
                    longest = longest.max(count(&piece.repeat(512 * 256 / piece.len())));
                }
                println!("opens, {short}, {words} and {longest} tokens");
            }
            Err(error) => println!("{} {error}", error.code().name()),
        }
    }
}

#[test]
fn damage_in_the_header_never_ends_the_process() {
    const CASES: u64 = 200;
    let folder = Folder::new();
    let original = metadata();
    // The real header without the tensors, so that a case is small.
    let whole = original.to_gguf();
    let mut seed = 0x9E37_79B9_7F4A_7C15u64;
    let mut random = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below as u64) as usize
    };
    // Small numbers and lengths stand where the keys do, so these are hit more often.
    let keys: Vec<usize> = original
        .entries
        .iter()
        .filter_map(|(key, _)| {
            let at = whole
                .windows(key.len())
                .position(|window| window == key.as_bytes())?;
            Some(at + key.len())
        })
        .collect();
    let mut cases = Vec::new();
    for case in 0..CASES {
        let mut bytes = whole.clone();
        let mut what = Vec::new();
        for _ in 0..1 + random(3) {
            let at = match random(2) {
                0 => 8 + random((64 << 10) - 8),
                _ => keys[random(keys.len())] + random(24),
            }
            .min(bytes.len() - 1);
            let bit = 1u8 << random(8);
            bytes[at] ^= bit;
            what.push(format!("{at}_{bit:02x}"));
        }
        let path = folder.file(&format!("{case}-{}.gguf", what.join("-")), &bytes);
        cases.push(path);
    }
    let mut ended = Vec::new();
    let mut rest = &cases[..];
    let mut counts = std::collections::BTreeMap::<String, usize>::new();
    while !rest.is_empty() {
        let together = std::env::join_paths(&rest[..rest.len().min(50)]).expect("paths");
        let output = child(Path::new(&together));
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines: Vec<&str> = said.lines().filter(|l| l.starts_with("[child]")).collect();
        for line in &lines {
            let result = line.split(".gguf: ").nth(1).unwrap_or_default();
            let kind = result.split([' ', ',']).next().unwrap_or_default();
            *counts.entry(kind.to_owned()).or_default() += 1;
        }
        assert!(!lines.is_empty(), "{output:?}");
        if !output.status.success() {
            ended.push(format!("{} {:?}", lines[lines.len() - 1], output.status));
        }
        rest = &rest[lines.len()..];
    }
    eprintln!("{counts:?}");
    assert!(
        ended.is_empty(),
        "{} ended the process:\n{}",
        ended.len(),
        ended.join("\n")
    );
}

#[test]
fn an_index_of_another_vocabulary_is_refused() {
    let other = TokenizerJson::open(common::root().join("tests/data/tokenizer.json"));
    let other = other.expect("a tokenizer of the tests");
    let refuse = |bytes: &[u8], word: &str| {
        let index = Arc::new(Index::from_bytes(bytes).expect("an index"));
        let result = Retriever::new(common::model(), index, &RetrieverOptions::default());
        let error = result.expect_err("another vocabulary");
        assert_eq!(error.code(), Code::VocabularyMismatch);
        let message = error.to_string();
        assert!(
            message.contains(word) && message.contains("rebuild it"),
            "{message}"
        );
    };
    let source = b"# One\n\nText.\n\n# Two\n\nText.\n";
    refuse(&index_bytes(source, Path::new("x.md"), &other), "tokens");
    // As many tokens, and two of them exchanged.
    let (json, config) = metadata().tokenizer_json();
    let mut json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    let vocab = json["model"]["vocab"]
        .as_object_mut()
        .expect("a vocabulary");
    let (one, two) = (vocab["One"].clone(), vocab["Two"].clone());
    vocab["One"] = two;
    vocab["Two"] = one;
    let json = json.to_string();
    let other = TokenizerJson::from_bytes(json.as_bytes(), Some(&config)).expect("reads");
    refuse(
        &index_bytes(source, Path::new("x.md"), &other),
        "fingerprint",
    );
}

#[test]
fn a_model_opened_for_its_vocabulary_does_not_retrieve() {
    let model = Model::open(model_path(), &vocabulary_only()).expect("opens");
    assert!(model.is_vocabulary_only());
    assert_eq!((model.info().parameters, model.info().bytes), (0, 0));
    let index = handbook().index.clone();
    let result = Retriever::new(Arc::new(model), index, &RetrieverOptions::default());
    let error = result.expect_err("has no weights");
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.to_string().contains("open it whole"), "{error}");
}

#[test]
fn loading_can_be_cancelled() {
    let options = ModelOptions::default();
    options.cancel.trigger();
    let error = Model::open(model_path(), &options).expect_err("cancelled");
    assert_eq!(error.code(), Code::Cancelled);
}

#[test]
fn a_context_that_is_too_small_says_how_large_it_must_be() {
    let mut options = RetrieverOptions::default();
    options.context_tokens = Some(100);
    let new = |options: &RetrieverOptions| {
        Retriever::new(common::model(), handbook().index.clone(), options)
    };
    let Err(Error::ContextTooSmall {
        needed,
        available: 100,
        ..
    }) = new(&options)
    else {
        panic!("too small for the table of contents");
    };
    options.context_tokens = Some(needed as u32);
    new(&options).expect("what it asked for is enough");
    for (parallel, question) in [(0, 512), (1000, 512), (8, 0)] {
        options.max_parallel = parallel;
        options.max_question_tokens = question;
        let error = new(&options).expect_err("out of range");
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    }
    let mut options = RetrieverOptions::default();
    options.max_question_tokens = u32::MAX;
    assert_eq!(
        new(&options).expect_err("long").code(),
        Code::ContextTooSmall
    );
}

/// The tokenizer of the model's `tokenizer.json`, made from its GGUF.
fn tokenizer_json() -> TokenizerJson {
    let (json, config) = metadata().tokenizer_json();
    let folder = Folder::new();
    let path = folder.file("tokenizer.json", &json);
    folder.file("tokenizer_config.json", &config);
    TokenizerJson::open(path).expect("a tokenizer")
}

#[test]
fn a_gguf_and_its_tokenizer_json_build_the_same_bytes() {
    let json = tokenizer_json();
    let gguf = common::vocabulary();
    assert_eq!(json.vocab_size(), gguf.vocab_size());
    assert_eq!(json.fingerprint(), gguf.fingerprint());
    assert_eq!(json.end_of_text(), gguf.end_of_text());
    let path = handbook_path();
    let built = index_bytes(&handbook().source, &path, &json);
    assert!(built == handbook().index.bytes(), "the indexes differ");
}

#[test]
fn a_gguf_and_its_tokenizer_json_agree_on_any_text() {
    let json = tokenizer_json();
    let gguf = common::vocabulary();
    let pieces = [
        "leaf 12.9 ",
        "Step",
        " seven:",
        "design",
        "'s",
        "’s ",
        "don't",
        "\n",
        "\n\n",
        "  ",
        "\t",
        "1234567",
        "3,14 %",
        "Ünï",
        "cödé ",
        "ﬁ",
        "\u{301}",
        "é",
        "ß",
        "ſ",
        "日本語",
        "、",
        "العربية",
        "हिन्दी",
        "ไทย",
        "한국어",
        "🧾",
        "👩‍👩‍👧‍👦",
        "\u{FEFF}",
        "\u{200B}",
        "\u{A0}",
        "\u{2028}",
        "٣",
        "Ⅻ",
        "½",
        "<|im_end|>",
        "<|im_start|>",
        "<|endoftext|>",
        "<repo_name>",
        "### Query:",
        "e.g.",
        "--",
        "…",
        "(",
        ")",
        "/",
        "\\",
        "\"",
        "{}",
        "ALLCAPS",
        "camelCase",
        "snake_case",
        "I'LL",
        "\r\n",
        "\u{7}",
    ];
    let mut seed = 7usize;
    for case in 0..200 {
        let mut text = String::new();
        for _ in 0..1 + case % 12 {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            text += pieces[(seed >> 33) % pieces.len()];
        }
        for special in [Special::AsText, Special::AsToken] {
            let json = json.encode(&text, special).expect("encodes");
            let gguf = gguf.encode(&text, special).expect("encodes");
            assert_eq!(json, gguf, "{text:?} {special:?}");
        }
    }
}
