//! The reader for toc.json.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};

use super::outline::{Heading, MAX_LEVEL, Outline, TitleHeading};
use super::{ReadOptions, Toc, text};
use crate::error::{Error, Result};

/// Reads a table of contents from toc.json, the format for documents that are not Markdown:
///
/// ```json
/// {
///   "title": "The handbook",
///   "sections": [
///     { "level": 1, "title": "Safety", "number": "4" },
///     { "level": 2, "title": "Gloves", "number": "4.1", "text": "Wear them.", "page": 12 },
///     { "level": 2, "title": "Goggles", "number": "4.2", "span": [5120, 6200] }
///   ]
/// }
/// ```
///
/// - `title` (required): the document's title.
/// - `sections` (required): in document order; each belongs to the nearest shallower one before it.
///   - `level` (required): 1 to 64. Levels may be skipped.
///   - `title` (required): not blank. Whitespace is folded to single spaces.
///   - `number`: `"4.2"`, at most 64 bytes, no whitespace inside. When no section has one, numbers
///     at the titles' starts are split off as in Markdown.
///   - `text`: the section's own text, without that of its subsections.
///   - `page`: 0 to 4294967294.
///   - `span`: `[start, end]`, bytes of the original document, `end` not counted. A section's span
///     is extended over those of its subsections; `0..0` where nothing is known.
///
/// An optional field may be `null`. A field of another name is an error, so that a misspelt one
/// does not go unnoticed. Here the first section of level 1 is the document's title only if it
/// repeats `title`.
///
/// # Errors
///
/// [`Error::InvalidUtf8`] when `source` is not UTF-8; [`Error::Document`] with line and column when
/// it is not JSON of this form; [`Error::NoHeadings`] when `sections` is empty.
pub fn read_json(source: &[u8], options: &ReadOptions) -> Result<Toc> {
    let source = std::str::from_utf8(source).map_err(|error| Error::InvalidUtf8 {
        what: "the document".to_owned(),
        at: error.valid_up_to(),
    })?;
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    let Object::<Document>(document) = serde_json::from_str(source).map_err(|error| {
        let remedy = match error.classify() {
            serde_json::error::Category::Data => {
                "correct that value; docs/toc-json.md lists the fields"
            }
            _ => r#"make it valid JSON: {"title": ..., "sections": [{"level": 1, "title": ...}]}"#,
        };
        Error::Document(format!("toc.json: {error}: {remedy}"))
    })?;
    let headings = document
        .sections
        .into_iter()
        .map(|Object(section)| Heading {
            level: section.level.0,
            number: section.number.and_then(|number| number.0),
            title: section.title.0,
            span: section.span.map(|span| span.0),
            page: section.page.map(|page| page.0),
            text: section.text.unwrap_or_default(),
        });
    let outline = Outline {
        title: Some(document.title.0),
        fallback_title: String::new(),
        title_heading: TitleHeading::Repeated,
        preamble: None,
        headings: headings.collect(),
        warnings: Vec::new(),
    };
    outline.into_toc(options)
}

/// The file.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    title: Title,
    sections: Vec<Object<Entry>>,
}

/// One section in the file.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    level: Level,
    title: Title,
    number: Option<Number>,
    text: Option<String>,
    page: Option<Page>,
    span: Option<Span>,
}

/// Something written as a JSON object; serde would take an array of the fields' values as well.
struct Object<T>(T);

/// 1 to [`MAX_LEVEL`].
struct Level(u16);

/// Folded, and not blank.
struct Title(String);

/// Trimmed; `None` when blank.
struct Number(Option<String>);

/// 0 to [`MAX_PAGE`].
struct Page(u32);

/// Starts no later than it ends.
struct Span(Range<u64>);

/// The index format keeps the number after it for "no page".
const MAX_PAGE: u32 = u32::MAX - 1;

/// Numbers are written before each other (`4` before `4.1`), so a long one would be copied often.
const MAX_NUMBER_LEN: usize = 64;

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = Object<T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object, {...}")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }

        deserializer.deserialize_map(Fields(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Level {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let level = i64::deserialize(deserializer)?;
        match u16::try_from(level) {
            Ok(level @ 1..=MAX_LEVEL) => Ok(Self(level)),
            _ => Err(D::Error::custom(format_args!(
                "the level is {level} and must be 1 to {MAX_LEVEL}"
            ))),
        }
    }
}

impl<'de> Deserialize<'de> for Title {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let title = text::fold(&String::deserialize(deserializer)?);
        if text::is_blank(&title) {
            return Err(D::Error::custom("the title is blank and must be visible"));
        }
        Ok(Self(title))
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = String::deserialize(deserializer)?;
        let number = number.trim();
        if number.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(D::Error::custom(
                "the number has whitespace inside: put what follows it into the title",
            ));
        }
        if number.len() > MAX_NUMBER_LEN {
            return Err(D::Error::custom(format_args!(
                "the number has {} bytes and may have {MAX_NUMBER_LEN}: put the rest into the title",
                number.len()
            )));
        }
        Ok(Self((!text::is_blank(number)).then(|| number.to_owned())))
    }
}

impl<'de> Deserialize<'de> for Page {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let page = i64::deserialize(deserializer)?;
        match u32::try_from(page) {
            Ok(page @ 0..=MAX_PAGE) => Ok(Self(page)),
            _ => Err(D::Error::custom(format_args!(
                "the page is {page} and must be 0 to {MAX_PAGE}"
            ))),
        }
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (start, end) = <(u64, u64)>::deserialize(deserializer)?;
        if start > end {
            return Err(D::Error::custom(format_args!(
                "the span starts at {start} and ends before that, at {end}"
            )));
        }
        Ok(Self(start..end))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use proptest::prelude::*;

    use super::super::outline::tests::{identifiers, titles};
    use super::*;

    fn read(source: &str) -> Result<Toc> {
        let toc = read_json(source.as_bytes(), &ReadOptions::default())?;
        toc.check(u64::MAX)?;
        Ok(toc)
    }

    /// A document of these entries.
    fn document(entries: &str) -> String {
        format!("{{\"title\": \"T\", \"sections\": [{entries}]}}")
    }

    #[track_caller]
    fn check_error(source: &str, parts: &[&str]) {
        match read(source) {
            Err(Error::Document(message)) => {
                for part in parts {
                    assert!(message.contains(part), "{part:?} is not in {message:?}");
                }
            }
            other => panic!("{source}: {other:?}"),
        }
    }

    #[test]
    fn every_field_is_read() -> Result<()> {
        let toc = read(&document(
            r#"{"level": 1, "title": " Safety\n first ", "number": " 4 ", "page": 3},
               {"level": 2, "title": "Gloves", "number": "4.1", "text": " On.\n", "span": [5, 9]},
               {"level": 2, "title": "Goggles", "number": null, "text": null, "page": null, "span": null}"#,
        ))?;
        assert_eq!(toc.title, "T");
        assert_eq!(
            identifiers(&toc),
            ["4 Safety first", "4.1 Gloves", "4.2 Goggles"]
        );
        let [safety, gloves, goggles] = &toc.sections[..] else {
            panic!("three sections, as their names say");
        };
        assert_eq!((safety.page, safety.span.clone()), (Some(3), 5..9));
        assert_eq!(
            (gloves.text.as_str(), gloves.span.clone()),
            (" On.\n", 5..9)
        );
        assert_eq!((goggles.page, goggles.span.clone()), (None, 0..0));
        Ok(())
    }

    #[test]
    fn numbers_in_titles_are_split_off_where_no_number_is_given() -> Result<()> {
        let toc = read(&document(
            r#"{"level": 1, "title": "4 A"}, {"level": 2, "title": "4.1 B"}"#,
        ))?;
        assert_eq!(toc.sections[1].number, "4.1");
        assert_eq!(titles(&toc), ["A", "B"]);
        Ok(())
    }

    #[test]
    fn levels_may_be_skipped_and_start_anywhere() -> Result<()> {
        let toc = read(&document(
            r#"{"level": 3, "title": "A"}, {"level": 64, "title": "B"}, {"level": 2, "title": "C"}"#,
        ))?;
        assert_eq!(identifiers(&toc), ["1 A", "1.1 B", "2 C"]);
        Ok(())
    }

    #[test]
    fn only_a_section_that_repeats_the_title_is_the_title() -> Result<()> {
        let rest = r#"{"level": 2, "title": "A"}, {"level": 2, "title": "B"}"#;
        let toc = read(&document(&format!(
            r#"{{"level": 1, "title": " T"}}, {rest}"#
        )))?;
        assert_eq!(identifiers(&toc), ["1 A", "2 B"]);
        let toc = read(&document(&format!(
            r#"{{"level": 1, "title": "S"}}, {rest}"#
        )))?;
        assert_eq!(identifiers(&toc), ["1 S", "1.1 A", "1.2 B"]);
        Ok(())
    }

    #[test]
    fn repeated_sections_get_distinct_identifiers() -> Result<()> {
        let entry = r#"{"level": 1, "number": "1", "title": "A"}"#;
        let toc = read(&document(&[entry; 3].join(",")))?;
        assert_eq!(identifiers(&toc), ["1 A", "1 A (2)", "1 A (3)"]);
        assert_eq!(toc.notes.renamed.len(), 2);
        Ok(())
    }

    #[test]
    fn the_title_option_wins() -> Result<()> {
        let options = ReadOptions {
            title: Some("O".into()),
            ..ReadOptions::default()
        };
        let source = document(r#"{"level": 1, "title": "A"}"#);
        assert_eq!(read_json(source.as_bytes(), &options)?.title, "O");
        Ok(())
    }

    #[test]
    fn a_byte_order_mark_is_passed_over() -> Result<()> {
        let source = document(r#"{"level": 1, "title": "A"}"#);
        assert_eq!(titles(&read(&format!("\u{feff}{source}"))?), ["A"]);
        Ok(())
    }

    #[test]
    fn wrong_values_are_refused_with_place_and_remedy() {
        for (entry, parts) in [
            (
                r#"{"level": 1, "titel": "A"}"#,
                &["unknown field `titel`", "`title`"][..],
            ),
            (r#"{"level": 1}"#, &["missing field `title`"]),
            (r#"{"title": "A"}"#, &["missing field `level`"]),
            (
                r#"{"level": "1", "title": "A"}"#,
                &["string \"1\"", "expected i64"],
            ),
            (r#"{"level": 1.5, "title": "A"}"#, &["1.5", "expected i64"]),
            (
                r#"{"level": 0, "title": "A"}"#,
                &["the level is 0", "1 to 64"],
            ),
            (r#"{"level": -1, "title": "A"}"#, &["the level is -1"]),
            (r#"{"level": 65, "title": "A"}"#, &["the level is 65"]),
            (
                r#"{"level": 99999999999999999999, "title": "A"}"#,
                &["expected i64"],
            ),
            (
                r#"{"level": 1, "title": " \t\u00a0"}"#,
                &["the title is blank"],
            ),
            (
                r#"{"level": 1, "title": 4}"#,
                &["integer `4`", "expected a string"],
            ),
            (
                r#"{"level": 1, "title": "A", "number": "1 2"}"#,
                &["whitespace"],
            ),
            (
                r#"{"level": 1, "title": "A", "number": 4.2}"#,
                &["4.2", "expected a string"],
            ),
            (
                r#"{"level": 1, "title": "A", "page": 4294967295}"#,
                &["the page is 4294967295", "0 to 4294967294"],
            ),
            (
                r#"{"level": 1, "title": "A", "page": -1}"#,
                &["the page is -1"],
            ),
            (
                r#"{"level": 1, "title": "A", "span": [2, 1]}"#,
                &["starts at 2"],
            ),
            (r#"{"level": 1, "title": "A", "span": [1]}"#, &["length 1"]),
            (
                r#"{"level": 1, "title": "A", "span": [-1, 1]}"#,
                &["expected u64"],
            ),
            (
                r#"{"level": 1, "title": "A", "title": "B"}"#,
                &["duplicate field"],
            ),
        ] {
            let source = document(entry);
            check_error(&source, parts);
            check_error(
                &source,
                &["toc.json: ", "at line 1 column ", "correct that value"],
            );
        }
        let long = "1".repeat(65);
        let entry = format!(r#"{{"level": 1, "title": "A", "number": "{long}"}}"#);
        check_error(&document(&entry), &["65 bytes", "may have 64"]);
    }

    #[test]
    fn other_documents_are_refused() {
        let long = document("") + "x";
        for source in ["", " \n", "{", "# A\n", &long, "nul"] {
            check_error(source, &["line ", "column ", "make it valid JSON"]);
        }
        check_error("[\"T\", []]", &["expected an object"]);
        check_error(
            &document("[1, \"A\"]"),
            &["expected an object", "line 1 column"],
        );
        check_error("{}", &["missing field `title`"]);
        check_error(r#"{"title": "T"}"#, &["missing field `sections`"]);
        check_error(
            r#"{"title": "T", "sections": {}}"#,
            &["expected a sequence"],
        );
        check_error(
            r#"{"title": "T", "x": [], "sections": []}"#,
            &["unknown field `x`"],
        );
        assert!(matches!(read(&document("")), Err(Error::NoHeadings)));
        let bad = read_json(b"{\"title\": \"\xff\"}", &ReadOptions::default());
        assert!(matches!(bad, Err(Error::InvalidUtf8 { at: 11, .. })));
    }

    #[test]
    #[cfg_attr(miri, ignore = "large inputs take Miri hours")]
    fn deep_nesting_is_refused() {
        for source in ["[".repeat(100_000), "{\"title\":".repeat(100_000)] {
            assert!(read(&source).is_err());
        }
        let deep = format!(r#"{{"level": 1, "title": {}"#, "[".repeat(100_000));
        assert!(read(&document(&deep)).is_err());
    }

    #[test]
    #[cfg_attr(miri, ignore = "large inputs take Miri hours")]
    fn many_sections_take_linear_time() -> Result<()> {
        let entries: Vec<_> = (0..100_000)
            .map(|i| format!(r#"{{"level": {}, "title": "A", "text": "b c"}}"#, i % 9 + 1))
            .collect();
        let source = document(&entries.join(","));
        let start = Instant::now();
        assert_eq!(read(&source)?.sections.len(), 100_000);
        assert!(start.elapsed().as_secs() < 20);
        Ok(())
    }

    proptest! {
        #[test]
        fn any_json_like_text_is_read_without_a_panic(
            source in r#"([{}\[\],:"]|"(title|sections|level|span)"|[0-9.e-]{1,3}|null| ){0,40}"#,
        ) {
            let _ = read(&source);
        }

        #[test]
        fn any_sections_make_a_sound_table_of_contents(
            entries in prop::collection::vec(
                (
                    -1..70_i64,
                    "[ A-B1-2.\u{a0}]{0,5}",
                    prop::option::of("[1-2. ]{0,4}"),
                    0..9_u64,
                    0..9_u64,
                ),
                0..12,
            ),
        ) {
            let entries = entries.into_iter().map(|(level, title, number, start, end)| {
                serde_json::json!({
                    "level": level, "title": title, "number": number, "span": [start, end],
                })
            });
            let source = serde_json::json!({"title": "T", "sections": entries.collect::<Vec<_>>()});
            // `read` checks what it reads.
            match read(&source.to_string()) {
                Err(Error::Document(_) | Error::NoHeadings) | Ok(_) => {}
                Err(error) => prop_assert!(false, "{error}"),
            }
        }
    }
}
