//! Any texts as a collection and its modules, which bytes that are no UTF-8 keep apart: a book that
//! is read has the sections that its questions name, and comes back from its files.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stair::openstax::{read, write};
use stair::toc::{ReadOptions, read_markdown};
use std::collections::HashSet;
use std::fs;

fuzz_target!(|bytes: &[u8]| {
    let mut files = bytes.split(|&byte| byte == 0xFF);
    let folder = tempfile::tempdir().expect("a folder");
    let inside = |name: &str| folder.path().join(name);
    fs::create_dir(inside("collections")).expect("makes");
    let collection = files.next().unwrap_or_default();
    fs::write(inside("collections/x.collection.xml"), collection).expect("writes");
    for (module, text) in ["m1", "m2", "m3"].into_iter().zip(files) {
        let module = inside("modules").join(module);
        fs::create_dir_all(&module).expect("makes");
        fs::write(module.join("index.cnxml"), text).expect("writes");
    }
    let Ok(book) = read(folder.path(), "x") else {
        return;
    };
    let options = ReadOptions {
        keep_front_matter: true,
        ..ReadOptions::default()
    };
    let toc = read_markdown(book.markdown.as_bytes(), &book.title, &options).expect("reads");
    // No paragraph became a heading, and no heading was lost.
    let headings = book.markdown.lines().filter(|line| line.starts_with("##"));
    assert_eq!(toc.sections.len(), headings.count(), "{}", book.markdown);
    let leaves: HashSet<String> = toc.leaves().map(|leaf| leaf.identifier()).collect();
    for question in &book.questions {
        assert!(leaves.contains(question.section.as_deref().expect("a section")));
    }
    let out = inside("out");
    write(&book, &out).expect("writes");
    assert_eq!(
        fs::read_to_string(out.join("book.md")).expect("reads"),
        book.markdown
    );
    if !book.questions.is_empty() {
        let questions = stair::questions::read(out.join("questions.jsonl"));
        assert_eq!(questions.expect("reads"), book.questions);
    }
});
