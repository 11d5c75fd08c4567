//! The reader for Markdown.

use std::ops::Range;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::metadata::{self, Metadata};
use super::outline::{Heading, Outline, Preamble, TitleHeading};
use super::{ReadOptions, Toc, text};
use crate::error::{Error, Result};

/// Reads the table of contents of a Markdown document, as CommonMark has it.
///
/// - A section starts at each ATX (`## A`) and setext (underlined) heading. Lines of code blocks
///   and HTML blocks are no headings, and neither are headings inside a block quote or a list
///   item: those belong to what is quoted or listed.
/// - Titles are plain text on one line: of links and emphasis the text, of code the code, of
///   images the description; HTML tags are dropped. A heading of which nothing is left (`#`,
///   `## <a id="x"></a>`) starts no section: it is text.
/// - A file may start with a YAML block: a line `---`, a mapping, a line `---` or `...`. Its
///   `title` is the document's. A `---` that starts no such block is Markdown.
/// - The document's title is that of `options`, else of the YAML block, else the single first
///   heading of level 1, else `file_stem`.
/// - Spans count bytes of `source` as it is, byte order mark and line ends included.
///
/// # Errors
///
/// [`Error::InvalidUtf8`] when `source` is not UTF-8; [`Error::NoHeadings`] when no section starts
/// in it.
pub fn read_markdown(source: &[u8], file_stem: &str, options: &ReadOptions) -> Result<Toc> {
    let source = std::str::from_utf8(source).map_err(|error| Error::InvalidUtf8 {
        what: "the document".to_owned(),
        at: error.valid_up_to(),
    })?;
    let mark = source.len() - source.trim_start_matches(BYTE_ORDER_MARK).len();
    let metadata = Metadata::read(&source[mark..]);
    let mut warnings = Vec::new();
    if metadata.is_none() && metadata::is_broken(&source[mark..]) {
        warnings.push(
            "the block between lines --- at the start is not YAML and was read as text: put values that contain a colon into quotes, and name no key twice".to_owned(),
        );
    }
    let comments = metadata
        .as_ref()
        .map_or(0, |metadata| metadata.comments(&source[mark..]));
    if comments > 0 {
        warnings.push(format!(
            "the block between lines --- at the start is YAML and left out, with {comments} lines that begin with #, comments to YAML: if they are headings, put a blank line after the first ---"
        ));
    }
    let start = mark + metadata.as_ref().map_or(0, |metadata| metadata.len);
    let found = find_headings(source, start);

    let before = &source[start..found.first().map_or(source.len(), |first| first.span.start)];
    let preamble = text::trim_lines(before);
    let preamble_start = start + before.len() - before.trim_start().len();
    let ends = found.iter().skip(1).map(|next| next.span.start);
    let ends = ends.chain([source.len()]).collect::<Vec<_>>();
    let headings = found.into_iter().zip(ends).map(|(found, end)| Heading {
        level: found.level,
        number: None,
        title: found.title,
        span: Some(found.span.start as u64..end as u64),
        page: None,
        text: text::trim_lines(&source[found.span.end..end]).to_owned(),
    });
    let headings: Vec<_> = headings.collect();
    let outline = Outline {
        title: metadata.and_then(|metadata| metadata.title),
        fallback_title: file_stem.to_owned(),
        title_heading: TitleHeading::Any,
        preamble: (!preamble.is_empty()).then(|| Preamble {
            text: preamble.to_owned(),
            span: preamble_start as u64..(start + before.len()) as u64,
        }),
        headings,
        warnings,
    };
    outline.into_toc(options)
}

const BYTE_ORDER_MARK: char = '\u{feff}';

/// A heading in the source.
struct Found {
    level: u16,
    title: String,
    /// From its first visible byte, in the whole source.
    span: Range<usize>,
}

/// What many writers take for granted: a rule under a table is no underline of a heading.
const EXTENSIONS: Options = Options::ENABLE_TABLES;

/// The headings in `source` from byte `start` on that start a section.
fn find_headings(source: &str, start: usize) -> Vec<Found> {
    let mut found = Vec::new();
    // Block quotes and lists around the current event.
    let mut containers = 0_usize;
    let mut title: Option<String> = None;
    let events = Parser::new_ext(&source[start..], EXTENSIONS).into_offset_iter();
    for (event, range) in events {
        match event {
            Event::Start(Tag::BlockQuote(_) | Tag::List(_)) => containers += 1,
            Event::End(TagEnd::BlockQuote(_) | TagEnd::List(_)) => containers -= 1,
            Event::Start(Tag::Heading { .. }) if containers == 0 => title = Some(String::new()),
            Event::End(TagEnd::Heading(level)) => {
                let title = title.take().map(|title| text::fold(&title));
                let Some(title) = title.filter(|title| !text::is_blank(title)) else {
                    continue;
                };
                let range = start + range.start..start + range.end;
                let indentation = &source[range.clone()];
                let indentation = indentation.len() - indentation.trim_start().len();
                found.push(Found {
                    level: depth(level),
                    title,
                    span: range.start + indentation..range.end,
                });
            }
            event => {
                if let Some(title) = &mut title {
                    push_plain(&event, title);
                }
            }
        }
    }
    found
}

/// Appends what an event inside a heading has of plain text.
fn push_plain(event: &Event<'_>, title: &mut String) {
    match event {
        Event::Text(text) | Event::Code(text) => title.push_str(text),
        Event::SoftBreak | Event::HardBreak => title.push(' '),
        // A line break, so what it parts are two words.
        Event::InlineHtml(tag)
            if tag
                .get(..3)
                .is_some_and(|tag| tag.eq_ignore_ascii_case("<br")) =>
        {
            title.push(' ');
        }
        _ => {}
    }
}

fn depth(level: HeadingLevel) -> u16 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::time::Instant;
    use std::{fs, iter};

    use proptest::prelude::*;

    use super::super::outline::tests::{identifiers, read, titles};
    use super::*;

    /// The titles of the headings in `markdown`; an anchor heading keeps it from being empty.
    #[track_caller]
    fn check(markdown: &str, expected: &[&str]) {
        let found = find_headings(markdown, 0);
        let titles: Vec<_> = found.iter().map(|found| found.title.as_str()).collect();
        assert_eq!(titles, expected, "{markdown:?}");
    }

    #[test]
    fn headings_of_both_kinds_are_found() {
        check("# A\n## B\n###### C", &["A", "B", "C"]);
        check("A\n===\n\nB\n---\n", &["A", "B"]);
        check("A\nb\n c\n=\n", &["A b c"]);
        check("   ### A  \n", &["A"]);
        check("#\tA\t\n##   B", &["A", "B"]);
        check(
            "# A #\n## B ####   \n# C\\#\n# D#\n# E \\#\n",
            &["A", "B", "C#", "D#", "E #"],
        );
        check("text\n# A\ntext\n", &["A"]);
        check("# A\r\n\r\nB\r\n---\r\n", &["A", "B"]);
    }

    #[test]
    fn what_looks_like_a_heading_is_not_one() {
        for markdown in [
            "#hashtag\n",
            "\\# escaped\n",
            "####### seven\n",
            "    # code\n",
            "\t# code\n",
            "text\n    # continued\n",
            "&#35; entity\n",
            "```\n# code\n```\n",
            "~~~\n# code\n~~~\n",
            "````\n```\n# code\n````\n",
            "~~~\n```\n# code\n~~~\n",
            "```sh\n# code\n``` no end\n# code\n",
            "```\n# never closed\n",
            "<div>\n# html\n</div>\n",
            "<!--\n# comment\n\n# comment\n-->\n",
            "<pre>\n\n# html\n</pre>\n",
            "<script>\n\n# js\n",
            "***\n---\n",
            "a\n\n---\n",
            "- a\n---\n",
            "| a |\n|---|\n",
            "| a | b |\n|---|---|\n| c | d |\n---\n",
        ] {
            check(markdown, &[]);
            check(&format!("# A\n\n{markdown}"), &["A"]);
        }
        check("```\n# code\n```\n# A\n", &["A"]);
        check("````\n```\n````\n# A\n", &["A"]);
        check("<div>\n# html\n\n# A\n", &["A"]);
    }

    #[test]
    fn headings_in_quotes_and_lists_start_no_section() {
        check("> # Q\n\n# A\n", &["A"]);
        check("- # L\n  text\n1. # M\n\n# A\n", &["A"]);
        check("> - # Q\n\n# A\n", &["A"]);
        check("> quoted\n# A\n", &["A"]);
        check("- listed\n# A\n", &["A"]);
    }

    #[test]
    fn titles_are_plain_text() {
        for (heading, title) in [
            ("[A](https://a.example \"x\") b", "A b"),
            ("[A][r] <https://a.example>", "A https://a.example"),
            ("`A  b` *c* **d** ***e*** _f_", "A b c d e f"),
            ("![A *b*](c.png) d", "A b d"),
            ("A &amp; b &lt;c&gt; &copy; &#x41;", "A & b <c> © A"),
            ("A<sup>2</sup> <a id=\"x\"></a>b", "A2 b"),
            ("A<br/>b<BR>c", "A b c"),
            ("A\u{a0}\u{a0}b\u{2009}c", "A b c"),
            ("A\\*b\\* \\[c\\]", "A*b* [c]"),
            ("A \u{0}b", "A \u{fffd}b"),
            ("مقدمة في الطب", "مقدمة في الطب"),
            ("微生物学 入門", "微生物学 入門"),
            ("🧫 Cells 👩‍🔬", "🧫 Cells 👩‍🔬"),
            ("snake_case and 2 * 3 * 4", "snake_case and 2 * 3 * 4"),
        ] {
            check(&format!("# {heading}\n\n[r]: /x\n"), &[title]);
        }
        let long = iter::repeat_n("word", 400).collect::<Vec<_>>().join(" ");
        check(&format!("## {long} ##\n"), &[&long]);
    }

    #[test]
    fn headings_without_visible_text_start_no_section() -> Result<()> {
        for empty in [
            "#",
            "##  ##",
            "# <a id=\"x\"></a>",
            "# ![](x.png)",
            "# &nbsp;",
            "# \u{200b}",
        ] {
            let toc = read(&format!("# A\n\n{empty}\n\na\n"))?;
            assert_eq!(titles(&toc), ["A"], "{empty}");
            assert!(toc.sections[0].text.ends_with("\n\na"), "{empty}");
        }
        Ok(())
    }

    #[test]
    fn a_break_at_the_start_is_not_metadata() -> Result<()> {
        let toc = read("---\n\n# A\n\n---\n\n# B\n")?;
        assert_eq!(titles(&toc), ["A", "B"]);
        let toc = read("---\nnot: closed\n\n# A\n")?;
        assert_eq!(titles(&toc), ["A"]);
        // Between two breaks, the text is a heading underlined by the second.
        let toc = read("---\ntext\n---\n# A\n")?;
        assert_eq!(titles(&toc), ["text", "A"]);
        Ok(())
    }

    #[test]
    fn metadata_gives_the_title_and_no_section() -> Result<()> {
        let toc = read("\u{feff}---\ntitle: T\n# a comment\n---\n# A\n# B\n")?;
        assert_eq!(toc.title, "T");
        assert_eq!(titles(&toc), ["A", "B"]);
        Ok(())
    }

    #[test]
    fn spans_count_from_the_files_first_byte() -> Result<()> {
        let source = concat!(
            "\u{feff}---\r\ntitle: T\r\n---\r\n\r\n  # A\r\n\r\ntext\r\n\r\n",
            "B\r\nb\r\n---\r\n\r\nb\r\n# C\r\n",
        );
        let toc = read(source)?;
        toc.check(source.len() as u64)?;
        assert_eq!(titles(&toc), ["A", "B b", "C"]);
        let slices: Vec<_> = toc
            .sections
            .iter()
            .map(|s| slice(source, &s.span))
            .collect();
        assert_eq!(
            slices[0],
            "# A\r\n\r\ntext\r\n\r\nB\r\nb\r\n---\r\n\r\nb\r\n"
        );
        assert_eq!(slices[1], "B\r\nb\r\n---\r\n\r\nb\r\n");
        assert_eq!(slices[2], "# C\r\n");
        let texts: Vec<_> = toc.sections.iter().map(|s| s.text.as_str()).collect();
        assert_eq!(texts, ["text", "b", ""]);
        Ok(())
    }

    #[test]
    fn text_is_as_in_the_source() -> Result<()> {
        let toc = read("# A\n\n    code\n\n*b* &amp; c  \n\n\n# B\n")?;
        assert_eq!(toc.sections[0].text, "    code\n\n*b* &amp; c");
        Ok(())
    }

    #[test]
    fn a_definition_before_an_underlined_heading_is_not_its_start() -> Result<()> {
        let source = "[r]: /x\nA [r]\n---\n\nB\n===\n";
        let toc = read(source)?;
        assert_eq!(slice(source, &toc.sections[0].span), "A [r]\n---\n\n");
        Ok(())
    }

    #[test]
    fn bytes_that_are_not_utf8_are_refused_with_their_place() {
        let result = read_markdown(b"# A\n\xff", "stem", &ReadOptions::default());
        assert!(matches!(result, Err(Error::InvalidUtf8 { at: 4, .. })));
    }

    #[test]
    fn nul_bytes_are_no_obstacle() -> Result<()> {
        let toc = read("# A\0B\n\na\0b\n\n# C\n")?;
        assert_eq!(titles(&toc), ["A\u{fffd}B", "C"]);
        assert_eq!(toc.sections[0].text, "a\0b");
        Ok(())
    }

    #[test]
    #[cfg_attr(miri, ignore = "large inputs take Miri hours")]
    fn large_and_strange_documents_take_linear_time() -> Result<()> {
        let start = Instant::now();
        for part in [
            "# A\n",
            "###### A\n# B\n",
            "A\n=\n",
            "> ",
            "- ",
            "[",
            "<!--",
            "# `\n",
            "*_",
        ] {
            let source = format!("# A\n\n{}", part.repeat(100_000));
            read(&source)?.check(source.len() as u64)?;
        }
        assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
        Ok(())
    }

    /// The two real books, which lie beside the checkout where they lie at all.
    fn book(name: &str) -> Option<(PathBuf, String)> {
        let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/books");
        let folder = shared.join(name);
        match fs::read_to_string(folder.join("book.md")) {
            Ok(source) => Some((folder, source)),
            Err(error) => {
                eprintln!("skipped: no {}: {error}", folder.display());
                None
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "large inputs take Miri hours")]
    fn real_books_keep_their_numbers_and_titles() -> Result<()> {
        for (name, leaves) in [("microbiology", 159), ("principles-economics-3e", 182)] {
            let Some((folder, source)) = book(name) else {
                continue;
            };
            let toc = read(&source)?;
            toc.check(source.len() as u64)?;
            // Every heading but the book's title is a section, called what its line says.
            let lines = source.lines().filter(|line| line.starts_with("##"));
            let lines: Vec<_> = lines
                .map(|line| line.trim_start_matches(['#', ' ']))
                .collect();
            assert_eq!(identifiers(&toc), lines);
            assert_eq!(toc.leaves().count(), leaves);
            assert!(toc.notes.dropped.is_empty() && toc.notes.renamed.is_empty());

            let names: Vec<_> = toc.leaves().map(|leaf| leaf.identifier()).collect();
            let questions = folder.join("questions.jsonl");
            let questions =
                fs::read_to_string(&questions).map_err(|e| Error::io("read", &questions, e))?;
            for line in questions.lines() {
                let question: serde_json::Value =
                    serde_json::from_str(line).map_err(|e| Error::Document(e.to_string()))?;
                let section = question["section"].as_str().unwrap_or_default();
                assert!(names.iter().any(|name| name == section), "{section}");
            }
        }
        Ok(())
    }

    fn slice<'a>(source: &'a str, span: &Range<u64>) -> &'a str {
        &source[span.start as usize..span.end as usize]
    }

    /// Lines that headings, and what looks like them, are made of.
    fn any_markdown() -> impl Strategy<Value = String> {
        let line = prop_oneof![
            "#{1,7} ?[a-z0-9.#*`<>\\[\\]() ]{0,12}",
            "[-=]{1,4}",
            "[`~]{3,4}[a-z]?",
            "[> \\-\t]{0,5}#? ?[a-z]{0,3}",
            "<(div|!--|/div|pre|script)>?(-->)?",
            "[a-z: \u{a0}\u{feff}é漢🧫]{0,10}",
            "---",
        ];
        let end = prop_oneof![Just("\n"), Just("\r\n"), Just("\n\n"), Just("\r")];
        prop::collection::vec((line, end), 0..30)
            .prop_map(|lines| lines.iter().flat_map(|(line, end)| [line, *end]).collect())
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(
            source in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            for path in ["a.md", "a.json"] {
                let _ = super::super::read(&source, Path::new(path), &ReadOptions::default());
            }
        }

        #[test]
        fn any_markdown_makes_a_sound_table_of_contents(source in any_markdown()) {
            if let Ok(toc) = read(&source) {
                toc.check(source.len() as u64)?;
                let start = source.len() - source.trim_start_matches(BYTE_ORDER_MARK).len();
                let found = find_headings(&source, start);
                let mut last = 0;
                for section in &toc.sections {
                    // Metadata apart, each section starts where a heading does.
                    let starts = |found: &Found| found.span.start as u64 == section.span.start;
                    let has_metadata = source[start..].starts_with("---");
                    prop_assert!(has_metadata || found.iter().any(starts));
                    prop_assert!(section.span.start >= last);
                    last = section.span.start;
                    let own = slice(&source, &section.span);
                    prop_assert!(own.contains(&section.text));
                }
            }
        }

        #[test]
        fn headings_written_as_markdown_come_back(
            headings in prop::collection::vec(
                (1..=6_u16, "[A-Z][a-z]{0,8}( [a-z漢é]{1,5}){0,3}", any::<bool>(), 0..3_usize),
                1..40,
            ),
        ) {
            let mut source = String::new();
            for (level, title, setext, filler) in &headings {
                match (level, setext) {
                    (1, true) => source += &format!("{title}\n===\n"),
                    (2, true) => source += &format!("{title}\n---\n"),
                    _ => source += &format!("{} {title}\n", "#".repeat(usize::from(*level))),
                }
                source += ["", "\ntext\n\n", "```\n# code\n```\n"][*filler];
            }
            let found = find_headings(&source, 0);
            let found: Vec<_> = found.iter().map(|f| (f.level, f.title.as_str())).collect();
            let written: Vec<_> = headings.iter().map(|h| (h.0, h.1.as_str())).collect();
            prop_assert_eq!(found, written);

            let options = ReadOptions { keep_front_matter: true, ..ReadOptions::default() };
            let toc = read_markdown(source.as_bytes(), "stem", &options)?;
            toc.check(source.len() as u64)?;
            let collapsed = headings.len() - toc.sections.len();
            prop_assert!(collapsed <= 1);
            let sections = toc.sections.iter().zip(&headings[collapsed..]);
            for (section, (level, title, setext, _)) in sections {
                let line = match (setext, level) {
                    (true, 1 | 2) => title.clone(),
                    _ => format!("{} {title}", "#".repeat(usize::from(*level))),
                };
                prop_assert!(slice(&source, &section.span).starts_with(&line));
                prop_assert!(section.title.starts_with(title.as_str()));
                prop_assert!(section.depth < *level);
            }
        }
    }
}
