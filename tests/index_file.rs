//! The `.stair` file from outside: golden files of every version of the format, and files that
//! are missing, locked, replaced or of another kind.
//!
//! The files in `tests/data/v1/` are never written again. When the format's version rises,
//! `STAIR_BLESS=1 cargo test --test index_file` writes the golden files of the new version into a
//! folder of its own, from the same documents; it never overwrites a file.

#![cfg(feature = "building")]

use serde_json::{Value, json};
use stair::index::{BuildOptions, Index, NodeId, build};
use stair::prompt::Template;
use stair::toc::{self, ReadOptions};
use stair::tokens::TokenizerJson;
use stair::{Code, Error};
use std::fs;
use std::path::{Path, PathBuf};

/// The documents, and whether their indexes have text.
const DOCUMENTS: [(&str, bool); 5] = [
    ("plain.md", true),
    ("deep.md", true),
    ("notext.md", false),
    ("scripts.md", true),
    ("toc.json", true),
];

/// Questions for the leaves of `scripts.md`, which make an index of version 1.1.
const ASKED: [&str; 3] = ["Where is it?", "Wo ist es?", "\u{3069}\u{3053}?"];

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// The folder of the golden files of version 1.0, and of 1.1.
fn folder(asked: bool) -> PathBuf {
    data().join(if asked { "v1.1" } else { "v1" })
}

fn stem(document: &str) -> &str {
    document.split('.').next().unwrap_or(document)
}

/// The index that today's builder makes of a document. The one without text has a chat's template,
/// so that both ways of tokenizing are in the golden files.
fn build_document(document: &str, text: bool, asked: bool) -> Vec<u8> {
    let path = data().join("v1").join(document);
    let source = fs::read(&path).expect("a document of the tests");
    let toc = toc::read(&source, &path, &ReadOptions::default()).expect("reads");
    let template = match text {
        true => Template::default(),
        false => Template {
            head: "<|user|>{title}\n".to_owned(),
            after_question: "<|user|>".to_owned(),
            terminator: Some("<|endoftext|>".to_owned()),
            special: true,
            ..Template::default()
        },
    };
    let tokenizer = TokenizerJson::open(data().join("tokenizer.json")).expect("reads");
    let leaves = (0u32..)
        .zip(&toc.sections)
        .filter(|(_, section)| section.leaf);
    let questions = leaves
        .zip(ASKED)
        .map(|((id, _), text)| (id, text.to_owned()));
    let options = BuildOptions {
        template,
        text,
        asked: questions.filter(|_| asked).collect(),
    };
    let (bytes, _) = build(&toc, &tokenizer, &options, &|_| ()).expect("builds");
    bytes
}

/// Everything that an index answers.
fn dump(index: &Index) -> Value {
    let info = index.info();
    let question = index.question();
    let sections: Vec<Value> = (0..index.sections())
        .map(|id| {
            let section = index.section(id).expect("ids go from 0 to sections()");
            let mut dump = json!({
                "number": section.number,
                "title": section.title,
                "depth": section.depth,
                "parent": section.parent,
                "leaf": section.leaf,
                "span": [section.span.start, section.span.end],
                "page": section.page,
                "text": section.text,
                "path": index.path(id),
            });
            if !index.asked(id).is_empty() {
                dump["asked"] = index.asked(id).into();
            }
            dump
        })
        .collect();
    let trie = index.trie();
    let mut titles = Vec::new();
    let mut stack = vec![(NodeId::ROOT, Vec::new())];
    while let Some((node, tokens)) = stack.pop() {
        if let Some(section) = trie.section(node) {
            titles.push(json!({ "section": section, "tokens": tokens }));
        }
        let children: Vec<_> = trie.children(node).collect();
        for (token, child) in children.into_iter().rev() {
            stack.push((child, [&tokens[..], &[token]].concat()));
        }
    }
    json!({
        "title": info.title,
        "version": [info.version.0, info.version.1],
        "bytes": info.bytes,
        "leaves": info.leaves,
        "nodes": info.nodes,
        "longest_title": info.longest_title,
        "has_text": info.has_text,
        "vocab_size": info.vocab_size,
        "fingerprint": format!("{:016x}", info.fingerprint),
        "terminator": index.terminator(),
        "template": {
            "anchor": question.anchor,
            "before_question": question.before_question,
            "after_question": question.after_question,
            "before_title": question.before_title,
            "special": question.special,
        },
        "prefix": index.prefix(),
        "sections": sections,
        "titles": titles,
    })
}

#[test]
fn golden_files_of_every_version_answer_as_they_did() {
    let mut compared = 0;
    for folder in fs::read_dir(data()).expect("lists") {
        let folder = folder.expect("lists").path();
        if !folder.is_dir() {
            continue;
        }
        for file in fs::read_dir(folder).expect("lists") {
            let file = file.expect("lists").path();
            if file
                .extension()
                .is_none_or(|extension| extension != "stair")
            {
                continue;
            }
            let expected = fs::read(file.with_extension("expected.json")).expect("a dump beside");
            let expected: Value = serde_json::from_slice(&expected).expect("JSON");
            for index in [Index::open(&file), Index::open_copy(&file)] {
                let index = index.unwrap_or_else(|e| panic!("{}: {e}", file.display()));
                assert_eq!(dump(&index), expected, "{}", file.display());
            }
            compared += 1;
        }
    }
    assert!(compared >= DOCUMENTS.len(), "only {compared} golden files");
}

#[test]
fn the_builder_still_gives_the_golden_bytes() {
    let bless = std::env::var_os("STAIR_BLESS").is_some_and(|value| value == "1");
    let documents = DOCUMENTS.map(|(document, text)| (document, text, false));
    for (document, text, asked) in documents.into_iter().chain([("scripts.md", true, true)]) {
        let bytes = build_document(document, text, asked);
        let folder = folder(asked);
        let golden = folder.join(stem(document)).with_extension("stair");
        if bless && !golden.exists() {
            fs::create_dir_all(folder).expect("makes the folder");
            let dump = dump(&Index::from_bytes(&bytes).expect("opens"));
            let dump = serde_json::to_string_pretty(&dump).expect("is JSON") + "\n";
            fs::write(golden.with_extension("expected.json"), dump).expect("writes");
            fs::write(&golden, &bytes).expect("writes");
        }
        let expected = fs::read(&golden).unwrap_or_else(|error| {
            let path = golden.display();
            panic!("{path}: {error}; a new version's golden files are written with STAIR_BLESS=1")
        });
        let differs = || bytes.iter().zip(&expected).position(|(a, b)| a != b);
        assert!(
            bytes == expected,
            "{document}: {} bytes, golden {}, first difference at {:?}: either undo the change, \
             or raise the version of the format",
            bytes.len(),
            expected.len(),
            differs()
        );
    }
}

/// The worked example in docs/format.md is the file that it says it is.
#[test]
fn the_documented_bytes_are_those_of_the_file() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/format.md");
    let document = fs::read_to_string(document).expect("reads");
    let mut bytes = Vec::new();
    for line in document.lines() {
        let Some((offset, rest)) = line.split_once(' ') else {
            continue;
        };
        let dumped = rest.split_once("  >").filter(|_| offset.len() == 6);
        if let (Some((hex, _)), Ok(offset)) = (dumped, usize::from_str_radix(offset, 16)) {
            assert_eq!(offset, bytes.len());
            let byte = |hex| u8::from_str_radix(hex, 16).expect("a byte");
            bytes.extend(hex.split_whitespace().map(byte));
        }
    }
    assert!(bytes == fs::read(data().join("v1/notext.stair")).expect("reads"));
}

#[test]
fn golden_files_have_what_they_are_there_for() {
    let open = |name: &str| Index::open(folder(false).join(name)).expect("opens");
    let deepest = |index: &Index| (0..index.sections()).map(|id| index.path(id).len()).max();
    assert_eq!(deepest(&open("deep.stair")), Some(5));
    assert!(!open("notext.stair").info().has_text);
    assert!(open("notext.stair").question().special);
    assert!(open("plain.stair").info().has_text);
    let toc = open("toc.stair");
    assert_eq!(toc.section(1).and_then(|s| s.page), Some(12));
    assert_eq!(toc.section(3).and_then(|s| s.page), Some(0));
    assert_eq!(toc.section(0).map(|s| s.span), Some(5000..6200));
}

/// Opens `path` in both ways; they must agree.
fn open_both(path: &Path) -> Result<Index, Error> {
    let copy = Index::open_copy(path);
    match (Index::open(path), copy) {
        (Ok(mapped), Ok(copy)) => {
            assert_eq!(dump(&mapped), dump(&copy));
            Ok(mapped)
        }
        (Err(mapped), Err(copy)) => {
            assert_eq!(mapped.to_string(), copy.to_string());
            assert_eq!(mapped.code(), copy.code());
            Err(mapped)
        }
        (mapped, copy) => panic!("open: {mapped:?}, open_copy: {copy:?}"),
    }
}

fn error_of(path: &Path) -> Error {
    open_both(path).expect_err("is no index")
}

#[test]
fn what_is_not_a_file_is_said_so() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(error_of(folder.path()).code(), Code::NotAFile);
    assert_eq!(error_of(&folder.path().join("no")).code(), Code::NotFound);
    assert_eq!(error_of(Path::new("")).code(), Code::NotFound);
    #[cfg(unix)]
    {
        assert_eq!(error_of(Path::new("/dev/null")).code(), Code::NotAFile);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path().join("gone"), &link).expect("links");
        assert_eq!(error_of(&link).code(), Code::NotFound);
    }
}

/// Opening a pipe waits for somebody to write to it; a host must not hang on a wrong path.
#[cfg(unix)]
#[test]
fn a_named_pipe_is_refused_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no mkfifo");
        return;
    }
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || send.send(error_of(&pipe).code()));
    let code = receive.recv_timeout(std::time::Duration::from_secs(20));
    assert_eq!(code.expect("it waits for a writer"), Code::NotAFile);
}

#[test]
fn an_empty_file_and_other_files_are_no_indexes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x");
    for bytes in [
        &b""[..],
        b"G",
        b"GGUF\x03\0\0\0 and more",
        b"# A document\n",
    ] {
        fs::write(&path, bytes).expect("writes");
        assert_eq!(error_of(&path).code(), Code::NotAnIndex, "{bytes:?}");
    }
}

/// Symbolic links are followed, and a path need not be UTF-8.
#[cfg(unix)]
#[test]
fn a_link_and_a_strange_path_open() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder
        .path()
        .join(std::ffi::OsStr::from_bytes(b"\xff \n.stair"));
    std::os::unix::fs::symlink(self::folder(false).join("plain.stair"), &path).expect("links");
    open_both(&path).expect("opens");
}

#[cfg(unix)]
#[test]
fn a_file_without_read_permission_is_said_so() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("locked.stair");
    fs::copy(self::folder(false).join("plain.stair"), &path).expect("copies");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).expect("locks");
    if fs::read(&path).is_ok() {
        eprintln!("skipped: this user may read everything");
        return;
    }
    assert_eq!(error_of(&path).code(), Code::PermissionDenied);
}

#[test]
fn an_open_index_keeps_answering_after_it_is_replaced_or_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.stair");
    let plain = fs::read(self::folder(false).join("plain.stair")).expect("reads");
    let deep = fs::read(self::folder(false).join("deep.stair")).expect("reads");
    stair::files::write_atomically(&path, &plain).expect("writes");
    let first = Index::open(&path).expect("opens");
    let before = dump(&first);

    stair::files::write_atomically(&path, &deep).expect("replaces");
    let second = Index::open(&path).expect("opens");
    assert_eq!(dump(&first), before);
    assert_eq!(second.title(), "The deep handbook");

    stair::files::write_atomically(&path, b"no index").expect("replaces");
    assert_eq!(error_of(&path).code(), Code::NotAnIndex);
    fs::remove_file(&path).expect("removes");
    assert_eq!(dump(&first), before);
    assert_eq!(second.title(), "The deep handbook");
}

#[test]
fn the_three_ways_of_opening_agree_on_damage() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.stair");
    let whole = fs::read(self::folder(false).join("toc.stair")).expect("reads");
    let mut damaged: Vec<Vec<u8>> = vec![whole.clone()];
    damaged.extend(
        (0..whole.len())
            .step_by(61)
            .map(|len| whole[..len].to_vec()),
    );
    damaged.extend((0..whole.len()).step_by(37).map(|at| {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        bytes
    }));
    let whole_dump = dump(&Index::from_bytes(&whole).expect("opens")).to_string();
    for bytes in damaged {
        fs::write(&path, &bytes).expect("writes");
        let said = |index: Result<Index, Error>| match index {
            Ok(index) => dump(&index).to_string(),
            Err(error) => error.to_string(),
        };
        // Only what comes from a file can say which.
        let in_file = said(open_both(&path));
        let file = path.display().to_string();
        let anywhere = in_file
            .replace(&format!("{file}: "), "")
            .replace(&format!(" (in {file})"), "");
        assert_eq!(anywhere, said(Index::from_bytes(&bytes)));
        assert!(
            anywhere == whole_dump || in_file.contains(&file),
            "{in_file}"
        );
    }
}

/// What a file says of itself without being checked is the same, and damage beyond the header is
/// no danger.
#[test]
fn a_peek_tells_what_opening_tells() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.stair");
    let whole = fs::read(self::folder(false).join("toc.stair")).expect("reads");
    fs::write(&path, &whole).expect("writes");
    let mut expected = Index::open(&path).expect("opens").info();
    expected.title.clear();
    assert_eq!(Index::peek(&path).expect("peeks"), expected);
    for at in (0..64).chain((64..whole.len()).step_by(11)) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xFF;
        fs::write(&path, &bytes).expect("writes");
        let peeked = Index::peek(&path);
        assert!(at >= 64 || peeked.is_err(), "byte {at}");
        fs::write(&path, &whole[..at]).expect("writes");
        assert!(Index::peek(&path).is_err(), "cut at {at}");
    }
}

#[test]
fn an_index_is_shared_between_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    let index = Index::open(folder(false).join("plain.stair")).expect("opens");
    shared(&index);
    let before = dump(&index);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(dump(&index), before));
        }
    });
}
