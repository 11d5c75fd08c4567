//! An invented book of two chapters.

use super::*;
use proptest::prelude::*;

fn fixture() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/openstax")
}

#[test]
fn a_collection_becomes_a_document_and_questions_with_their_sections() {
    let book = read(&fixture(), "lighthouses").expect("reads");
    assert_eq!(book.title, "Lighthouses for Beginners");
    assert_eq!(book.licence.as_deref(), Some("https://example.org/licence"));
    let expected = "# Lighthouses for Beginners\n\n\
        ## Preface\n\nThis little book was invented for a test.\n\n\
        ## 1 Towers\n\n\
        ### 1.0 Introduction\n\nTowers stand on rocks & sand.\n\n\
        ### 1.1 Stone and Iron\n\nStone towers are heavy.\n\n**Iron**\n\n\
        Iron towers are put together on the spot.\n\n\\# is no heading here.\n\n\
        ## 2 Lamps\n\n\
        ### 2.1 Lenses\n\nA lens gathers light.\n\n";
    assert_eq!(book.markdown, expected);
    let asked: Vec<_> = book
        .questions
        .iter()
        .map(|q| (q.id.as_str(), q.query.as_str(), q.section.as_deref()))
        .collect();
    assert_eq!(
        asked,
        [
            (
                "lighthouses:m2:e1",
                "Why are stone towers built on rock?",
                Some("1.1 Stone and Iron")
            ),
            (
                "lighthouses:m3:1",
                "What does a lens do with the light?",
                Some("2.1 Lenses")
            ),
        ]
    );
    assert_eq!((book.leaves, book.left_out, book.repeated), (4, 2, 1));
}

#[test]
fn what_is_written_is_read_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let book = read(&fixture(), "lighthouses.collection.xml").expect("reads");
    write(&book, &folder.path().join("new")).expect("writes");
    let questions = crate::questions::read(folder.path().join("new/questions.jsonl"));
    assert_eq!(questions.expect("reads"), book.questions);
}

#[test]
fn a_question_keeps_its_split_and_the_splits_have_their_shares() {
    let mut counts = std::collections::BTreeMap::new();
    for i in 0..10_000 {
        *counts.entry(split(&format!("book:m{i}:e"))).or_insert(0) += 1;
    }
    for (name, share) in [("train", 5000), ("dev", 1000), ("test", 4000)] {
        assert!(
            (share - 200..share + 200).contains(&counts[name]),
            "{counts:?}"
        );
    }
}

#[test]
fn files_that_are_missing_or_broken_are_named() {
    let error = read(&fixture(), "nothing").expect_err("refused");
    assert!(
        error.to_string().contains("nothing.collection.xml"),
        "{error}"
    );
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("collections")).expect("makes");
    for (text, word) in [
        ("<collection", "x.collection.xml"),
        ("<c><metadata><title> </title></metadata></c>", "no title"),
        ("<c><metadata><title>T</title></metadata></c>", "no module"),
        (
            "<c><metadata><title>T</title></metadata><content><module document='../x'/></content></c>",
            "\"../x\"",
        ),
    ] {
        std::fs::write(folder.path().join("collections/x.collection.xml"), text).expect("writes");
        let error = read(folder.path(), "x").expect_err("refused");
        assert!(matches!(error, Error::Document(_)), "{error}");
        assert!(error.to_string().contains(word), "no {word:?} in {error}");
    }
}

#[test]
fn elements_within_elements_without_end_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("makes");
        std::fs::write(path, text).expect("writes");
    };
    let nested = |open: &str, close: &str| [open.repeat(50_000), close.repeat(50_000)].concat();
    let book = |content: &str| {
        format!(
            "<c><metadata><title>T</title></metadata><content><module document='m'/>{content}</content></c>"
        )
    };
    let deep_book = nested("<subcollection><content>", "</content></subcollection>");
    let deep_module = nested("<section>", "</section>");
    for (content, module) in [(deep_book.as_str(), ""), ("", deep_module.as_str())] {
        write("collections/x.collection.xml", &book(content));
        let module = format!("<d><title>M</title><content>{module}</content></d>");
        write("modules/m/index.cnxml", &module);
        let error = read(folder.path(), "x").expect_err("refused");
        assert!(error.to_string().contains("within"), "{error}");
    }
}

#[test]
fn what_stands_apart_stays_apart_and_choices_are_no_question() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("makes");
        std::fs::write(path, text).expect("writes");
    };
    write(
        "collections/x.collection.xml",
        "<c><metadata><title>T</title></metadata><content><subcollection><title>C</title>\
         <content><module document='m'/></content></subcollection></content></c>",
    );
    write(
        "modules/m/index.cnxml",
        "<d><title>A</title><content>\
         <para>First<newline/>second <list><item>one</item><item>two</item></list></para>\
         <para>Force <m><semantics><mi>F</mi><annotation>size 12</annotation></semantics></m>.</para>\
         <section class='review'><exercise id='e'><problem>\
         <para>Which of these colours is the <emphasis>warm</emphasis>est one?\
         <list><item>red</item><item>green</item></list></para>\
         </problem></exercise></section></content></d>",
    );
    let book = read(folder.path(), "x").expect("reads");
    assert!(
        book.markdown.contains("First second one two\n"),
        "{}",
        book.markdown
    );
    assert!(book.markdown.contains("Force F.\n"), "{}", book.markdown);
    assert_eq!(
        book.questions[0].query,
        "Which of these colours is the warmest one?"
    );
}

proptest! {
    /// Titles of all that Markdown gives a meaning, and of other scripts.
    #[test]
    fn any_title_is_read_back_as_it_is(title in r"[a-zé中 *_`#<>&;!~|()\[\]\\+.:-]{1,30}") {
        let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
        prop_assume!(!title.is_empty());
        let markdown = format!("## {}\n\nText.\n", escaped(&title));
        let options = ReadOptions::default();
        let toc = toc::read_markdown(markdown.as_bytes(), "x", &options).expect("reads");
        prop_assert_eq!(&toc.sections[0].title, &title);
    }
}
