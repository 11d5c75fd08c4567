//! From a flat list of headings to the tree of sections.

use std::ops::Range;

use super::{Notes, ReadOptions, Section, Toc, front_matter, identifiers, numbering, text};
use crate::error::{Error, Result};

/// Text of more words than this is a leaf of its own where no leaf contains it.
const MAX_STRAY_WORDS: usize = 40;

/// The deepest level a heading may have. Markdown has 6; the bound keeps the assigned numbers of a
/// hostile toc.json from growing with its square.
pub(super) const MAX_LEVEL: u16 = 64;

/// What a reader found.
#[derive(Debug)]
pub(super) struct Outline {
    /// The title that the document gives apart from its headings, folded.
    pub(super) title: Option<String>,
    /// The title where nothing else gives one.
    pub(super) fallback_title: String,
    /// Which first heading is the document's title rather than a section.
    pub(super) title_heading: TitleHeading,
    /// Text before the first heading, from its first visible byte.
    pub(super) preamble: Option<Preamble>,
    /// The headings in document order.
    pub(super) headings: Vec<Heading>,
    /// What the reader wondered about.
    pub(super) warnings: Vec<String>,
}

/// Which first heading is the document's title, given that it is the only one of level 1 and deeper
/// ones follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TitleHeading {
    /// Any.
    Any,
    /// One that says the same as [`Outline::title`].
    Repeated,
}

/// Text before the first heading.
#[derive(Debug)]
pub(super) struct Preamble {
    pub(super) text: String,
    pub(super) span: Range<u64>,
}

/// A heading and what belongs to it alone.
#[derive(Debug)]
pub(super) struct Heading {
    /// 1 to [`MAX_LEVEL`].
    pub(super) level: u16,
    /// The number, where the format tells it apart from the title.
    pub(super) number: Option<String>,
    /// Folded, and not blank.
    pub(super) title: String,
    /// From the heading to the next one, or further: what contains subsections is extended to
    /// their end. `None` where it is unknown.
    pub(super) span: Option<Range<u64>>,
    pub(super) page: Option<u32>,
    /// The text up to the next heading.
    pub(super) text: String,
}

/// A section before it is numbered.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) number: Option<String>,
    /// Set when the title is a number and nothing else, so that it is not shown twice.
    pub(super) number_is_title: bool,
    pub(super) title: String,
    pub(super) depth: u16,
    /// Position of the section around this one; it stands before it.
    pub(super) parent: Option<usize>,
    span: Option<Range<u64>>,
    /// Whether a subsection follows, at once as the first always does.
    has_children: bool,
    page: Option<u32>,
    text: String,
}

impl Node {
    pub(super) fn is_top_level_leaf(&self) -> bool {
        self.parent.is_none() && !self.has_children
    }
}

impl Outline {
    /// Makes the table of contents.
    pub(super) fn into_toc(mut self, options: &ReadOptions) -> Result<Toc> {
        if self.headings.is_empty() {
            return Err(Error::NoHeadings);
        }
        let title_heading = self.take_title_heading();
        let title = self.title(options, title_heading.as_ref());
        let mut warnings = self.warnings;
        if let Some(heading) = title_heading
            .as_ref()
            .filter(|heading| heading.title != title)
        {
            warnings.push(format!(
                "the heading {:?}, the only one of its level, is taken for the document's title and is no section, and another title was given, {title:?}",
                heading.title
            ));
        }
        let preamble = join(self.preamble, title_heading).and_then(|(preamble, page)| {
            if text::has_more_words(&preamble.text, MAX_STRAY_WORDS) {
                return Some((preamble, page));
            }
            if text::has_more_words(&preamble.text, 0) {
                warnings.push(format!(
                    "the text before the first section belongs to no section and is left out; it would be one of its own with more than {MAX_STRAY_WORDS} words"
                ));
            }
            None
        });

        let mut nodes = tree(self.headings);
        let mut dropped = Vec::new();
        if !options.keep_front_matter {
            for node in front_matter::drop_front_matter(&mut nodes) {
                if text::has_more_words(&node.text, MAX_STRAY_WORDS) {
                    warnings.push(format!(
                        "the section {:?} is taken for front matter and left out with more than {MAX_STRAY_WORDS} words of text: keep_front_matter (--keep-front-matter) keeps it",
                        node.title
                    ));
                }
                dropped.push(node.title);
            }
        }
        let mut toc = Toc {
            sections: sections(nodes, preamble, &title)?,
            title,
            notes: Notes {
                dropped,
                renamed: Vec::new(),
                warnings,
            },
        };
        identifiers::make_unique(&mut toc);
        Ok(toc)
    }

    /// Takes the first heading out if it is the document's title.
    fn take_title_heading(&mut self) -> Option<Heading> {
        let (first, rest) = self.headings.split_first()?;
        let is_above_all = first.level == 1 && rest.iter().all(|heading| heading.level > 1);
        let is_title = match self.title_heading {
            TitleHeading::Any => true,
            TitleHeading::Repeated => self.title.as_ref() == Some(&first.title),
        };
        if rest.is_empty() || !is_above_all || !is_title {
            return None;
        }
        Some(self.headings.remove(0))
    }

    fn title(&self, options: &ReadOptions, heading: Option<&Heading>) -> String {
        let given = options.title.as_deref().map(text::fold);
        let of_heading = heading.map(|heading| heading.title.clone());
        let fallback = text::fold(&self.fallback_title);
        [given, self.title.clone(), of_heading, Some(fallback)]
            .into_iter()
            .flatten()
            .find(|title| !text::is_blank(title))
            .unwrap_or_else(|| "Untitled".to_owned())
    }
}

/// All text before the first section: what stands before the first heading, and under the title's
/// heading.
fn join(before: Option<Preamble>, title: Option<Heading>) -> Option<(Preamble, Option<u32>)> {
    let (text, span, page) = match (before, title) {
        (None, None) => return None,
        (Some(before), None) => (before.text, Some(before.span), None),
        (None, Some(title)) => (title.text, title.span, title.page),
        (Some(before), Some(title)) => {
            let end = title.span.map_or(before.span.end, |span| span.end);
            let text = if title.text.is_empty() {
                before.text
            } else {
                format!("{}\n\n{}", before.text, title.text)
            };
            (text, Some(before.span.start..end), title.page)
        }
    };
    let span = span.unwrap_or(0..0);
    Some((Preamble { text, span }, page))
}

/// Puts each heading under the nearest shallower one before it.
fn tree(headings: Vec<Heading>) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::with_capacity(headings.len());
    // The levels and positions of the headings around the current one, the innermost last.
    let mut around: Vec<(u16, usize)> = Vec::new();
    for heading in headings {
        while around
            .pop_if(|(level, _)| *level >= heading.level)
            .is_some()
        {}
        let parent = around.last().map(|&(_, parent)| parent);
        let i = nodes.len();
        around.push((heading.level, i));
        let depth = match parent {
            None => 0,
            Some(parent) => {
                nodes[parent].has_children = true;
                // Levels fall strictly from a section to the ones around it, so depths stay below
                // `MAX_LEVEL`.
                nodes[parent].depth + 1
            }
        };
        nodes.push(Node {
            number: heading.number,
            number_is_title: false,
            title: heading.title,
            depth,
            parent,
            span: heading.span,
            has_children: false,
            page: heading.page,
            text: heading.text,
        });
    }
    nodes
}

/// Numbers the sections and lists them, with the leaves made of text that belongs to none.
fn sections(
    mut nodes: Vec<Node>,
    preamble: Option<(Preamble, Option<u32>)>,
    title: &str,
) -> Result<Vec<Section>> {
    let mut numbering = numbering::Numbering::of(&mut nodes);
    let introductions = introductions(&nodes);
    extend_over_children(&mut nodes);

    let mut sections = Vec::with_capacity(nodes.len() + 1);
    if let Some((Preamble { text, span }, page)) = preamble {
        sections.push(Section {
            number: numbering.zero_under(None),
            title: title.to_owned(),
            depth: 0,
            parent: None,
            leaf: true,
            span,
            page,
            text,
        });
    }
    // Where each node's section stands.
    let mut places: Vec<u32> = Vec::with_capacity(nodes.len());
    for (i, (node, introduction)) in nodes.into_iter().zip(introductions).enumerate() {
        let place = position(sections.len())?;
        places.push(place);
        let mut section = Section {
            number: numbering.numbers[i].clone(),
            title: node.title,
            depth: node.depth,
            parent: node.parent.map(|parent| places[parent]),
            leaf: !node.has_children,
            span: node.span.unwrap_or(0..0),
            page: node.page,
            text: node.text,
        };
        if node.number_is_title {
            section.number.clear();
        }
        let introduction = introduction.map(|span| Section {
            number: numbering.zero_under(Some(i)),
            title: section.title.clone(),
            depth: section.depth + 1,
            parent: Some(place),
            leaf: true,
            span,
            page: section.page,
            text: std::mem::take(&mut section.text),
        });
        sections.push(section);
        sections.extend(introduction);
    }
    Ok(sections)
}

/// The spans of the leaves to be made of text between a heading and its first subsection; `None`
/// where there is none, or too little of it.
fn introductions(nodes: &[Node]) -> Vec<Option<Range<u64>>> {
    let introduction = |(i, node): (usize, &Node)| {
        let child = nodes.get(i + 1).filter(|_| node.has_children)?;
        if !text::has_more_words(&node.text, MAX_STRAY_WORDS) {
            return None;
        }
        let mut span = node.span.clone().unwrap_or(0..0);
        if let Some(child) = &child.span
            && child.start >= span.start
        {
            span.end = span.end.min(child.start);
        }
        Some(span)
    };
    nodes.iter().enumerate().map(introduction).collect()
}

/// Extends every span over the spans of the subsections.
fn extend_over_children(nodes: &mut [Node]) {
    // From the end, so that a subsection's span is whole before it is looked at.
    for i in (0..nodes.len()).rev() {
        let (before, rest) = nodes.split_at_mut(i);
        let Some(parent) = rest[0].parent else {
            continue;
        };
        if let Some(inner) = rest[0].span.as_ref().filter(|span| !span.is_empty()) {
            let outer = before[parent].span.get_or_insert(inner.clone());
            if outer.is_empty() {
                *outer = inner.clone();
            }
            outer.start = outer.start.min(inner.start);
            outer.end = outer.end.max(inner.end);
        }
    }
}

fn position(position: usize) -> Result<u32> {
    // One below the maximum: the leaf that may follow has a position too.
    u32::try_from(position)
        .ok()
        .filter(|&position| position < u32::MAX)
        .ok_or(Error::TooLarge {
            what: "the number of sections",
            found: position as u64,
            limit: u64::from(u32::MAX - 1),
        })
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Instant;

    use proptest::prelude::*;

    use super::super::read_markdown;
    use super::*;

    /// Reads Markdown with the default options and the file stem `stem`.
    pub(in super::super) fn read(markdown: &str) -> Result<Toc> {
        read_markdown(markdown.as_bytes(), "stem", &ReadOptions::default())
    }

    /// The table of contents of headings given by level, number and title.
    pub(in super::super) fn read_outline(headings: &[(u16, Option<&str>, &str)]) -> Result<Toc> {
        let headings = headings.iter().map(|&(level, number, title)| Heading {
            level,
            number: number.map(str::to_owned),
            title: title.to_owned(),
            span: None,
            page: None,
            text: String::new(),
        });
        outline(headings.collect()).into_toc(&ReadOptions::default())
    }

    pub(in super::super) fn titles(toc: &Toc) -> Vec<&str> {
        toc.sections.iter().map(|s| s.title.as_str()).collect()
    }

    pub(in super::super) fn identifiers(toc: &Toc) -> Vec<String> {
        toc.sections.iter().map(Section::identifier).collect()
    }

    fn outline(headings: Vec<Heading>) -> Outline {
        Outline {
            title: None,
            fallback_title: "stem".to_owned(),
            title_heading: TitleHeading::Any,
            preamble: None,
            headings,
            warnings: Vec::new(),
        }
    }

    /// `n` words.
    fn words(n: usize) -> String {
        vec!["word"; n].join(" ")
    }

    fn shape(toc: &Toc) -> Vec<(String, u16, Option<u32>, bool)> {
        let sections = toc.sections.iter();
        sections
            .map(|s| (s.identifier(), s.depth, s.parent, s.leaf))
            .collect()
    }

    #[test]
    fn skipped_levels_nest_under_the_nearest_shallower_heading() -> Result<()> {
        let toc = read("## A\n#### B\n### C\n#### D\n# E\n###### F\n")?;
        let expected = [
            ("1 A", 0, None, false),
            ("1.1 B", 1, Some(0), true),
            ("1.2 C", 1, Some(0), false),
            ("1.2.1 D", 2, Some(2), true),
            ("2 E", 0, None, false),
            ("2.1 F", 1, Some(4), true),
        ];
        let expected =
            expected.map(|(name, depth, parent, leaf)| (name.into(), depth, parent, leaf));
        assert_eq!(shape(&toc), expected);
        assert_eq!(toc.title, "stem");
        Ok(())
    }

    #[test]
    fn a_single_first_heading_of_level_1_is_the_title() -> Result<()> {
        let toc = read("# T\n## A\n### B\n## C\n")?;
        assert_eq!(toc.title, "T");
        assert_eq!(identifiers(&toc), ["1 A", "1.1 B", "2 C"]);
        Ok(())
    }

    #[test]
    fn other_headings_of_level_1_are_sections() -> Result<()> {
        for (markdown, expected) in [
            ("# T\n", vec!["T"]),
            ("# T\n# A\n## B\n", vec!["T", "A", "B"]),
            ("## A\n# T\n## B\n", vec!["A", "T", "B"]),
            ("## A\n### B\n", vec!["A", "B"]),
        ] {
            let toc = read(markdown)?;
            assert_eq!(toc.title, "stem", "{markdown}");
            assert_eq!(titles(&toc), expected, "{markdown}");
        }
        Ok(())
    }

    #[test]
    fn titles_are_preferred_in_order() -> Result<()> {
        let plain = "# H\n## A\n";
        let yaml = "---\ntitle: Y\n---\n# H\n## A\n";
        for (markdown, option, stem, expected) in [
            (yaml, Some(" O\n o "), "stem", "O o"),
            (yaml, Some(" "), "stem", "Y"),
            (yaml, None, "stem", "Y"),
            (plain, Some("O"), "stem", "O"),
            (plain, None, "stem", "H"),
            ("# A\n# B\n", None, "stem", "stem"),
            ("# A\n", None, "", "Untitled"),
        ] {
            let options = ReadOptions {
                title: option.map(str::to_owned),
                ..ReadOptions::default()
            };
            let toc = read_markdown(markdown.as_bytes(), stem, &options)?;
            assert_eq!(toc.title, expected, "{markdown} {option:?}");
            assert!(!titles(&toc).contains(&"H"), "{markdown} {option:?}");
        }
        Ok(())
    }

    #[test]
    fn a_long_preamble_is_section_0() -> Result<()> {
        let long = words(41);
        let toc = read(&format!("# T\n\n{long}\n\n## A\n\na\n"))?;
        assert_eq!(identifiers(&toc), ["0 T", "1 A"]);
        assert_eq!(toc.sections[0].text, long);
        assert_eq!(toc.sections[0].span.start, 0);
        assert_eq!(toc.sections[0].span.end, toc.sections[1].span.start);
        assert!(toc.sections[0].leaf);

        // Before the title and under it, counted together.
        let (before, under) = (words(20), words(21));
        let toc = read(&format!("\n{before}\n\n# T\n\n{under}\n\n## A\n"))?;
        assert_eq!(toc.sections[0].text, format!("{before}\n\n{under}"));
        assert_eq!(toc.sections[0].span.start, 1);

        // Without a title heading, and where `0` is taken.
        let toc = read(&format!("{long}\n# 0 A\n# 1 B\n"))?;
        assert_eq!(identifiers(&toc), ["0.0 stem", "0 A", "1 B"]);
        toc.check(u64::MAX)
    }

    #[test]
    fn a_short_preamble_is_no_section() -> Result<()> {
        let toc = read(&format!("# T\n\n{}\n\n## A\n", words(40)))?;
        assert_eq!(identifiers(&toc), ["1 A"]);
        Ok(())
    }

    #[test]
    fn long_text_before_the_first_subsection_is_a_leaf() -> Result<()> {
        let long = words(41);
        let markdown = format!("# A\n\n{long}\n\n## B\n\nb\n\n# C\n");
        let toc = read(&markdown)?;
        assert_eq!(identifiers(&toc), ["1 A", "1.0 A", "1.1 B", "2 C"]);
        let [a, introduction, b, _] = &toc.sections[..] else {
            panic!("four sections, as their names say");
        };
        assert_eq!((a.text.as_str(), introduction.text.as_str()), ("", &*long));
        assert_eq!((introduction.depth, introduction.parent), (1, Some(0)));
        assert_eq!(introduction.span, a.span.start..b.span.start);
        assert!(introduction.leaf && !a.leaf);
        toc.check(markdown.len() as u64)
    }

    #[test]
    fn short_text_before_the_first_subsection_stays() -> Result<()> {
        let short = words(40);
        let toc = read(&format!("# A\n\n{short}\n\n## B\n\n# C\n"))?;
        assert_eq!(identifiers(&toc), ["1 A", "1.1 B", "2 C"]);
        assert_eq!(toc.sections[0].text, short);
        Ok(())
    }

    #[test]
    fn an_introduction_never_takes_a_number_in_use() -> Result<()> {
        let long = words(41);
        let toc = read(&format!(
            "# 1 A\n{long}\n## 1.0 B\n## 1.1 C\n# X\n{long}\n## Y\n"
        ))?;
        let expected = ["1 A", "1.0.0 A", "1.0 B", "1.1 C", "X", "X (2)", "Y"];
        assert_eq!(identifiers(&toc), expected);
        toc.check(u64::MAX)
    }

    #[test]
    fn what_is_left_out_is_said() -> Result<()> {
        assert!(read("# T\n\n## A\n\na\n")?.notes.warnings.is_empty());
        for markdown in [
            "A few words.\n\n# A\n# B\n",
            "# T\n\nA few words.\n\n## A\n",
        ] {
            let warnings = read(markdown)?.notes.warnings;
            assert!(
                matches!(&warnings[..], [warning] if warning.contains("before the first section")),
                "{warnings:?}"
            );
        }
        let warnings = read("---\ntitle: A: b\n---\n# A\n# B\n")?.notes.warnings;
        assert!(warnings[0].contains("not YAML"), "{warnings:?}");
        let long = words(41);
        for (markdown, word) in [
            (format!("# Cover\n\n{long}\n\n# A\n# B\n"), "front matter"),
            ("---\ntitle: A\n---\n# B\n## C\n## D\n".to_owned(), "\"B\""),
            (
                "---\na: b\n\n# C\nd: e\n---\n# F\n# G\n".to_owned(),
                "1 lines that begin",
            ),
        ] {
            let warnings = read(&markdown)?.notes.warnings;
            assert!(
                matches!(&warnings[..], [warning] if warning.contains(word)),
                "{warnings:?}"
            );
        }
        let warnings = read("---\n# made by a program\ntitle: A: b\n---\n# A\n# B\n")?
            .notes
            .warnings;
        assert!(warnings[0].contains("not YAML"), "{warnings:?}");
        assert!(
            read("---\n\n# A\n\nVersion: 2\n\n---\n\n# B\n")?
                .notes
                .warnings
                .is_empty()
        );
        Ok(())
    }

    #[test]
    fn a_document_without_headings_is_refused() {
        for markdown in [
            "",
            " \n\u{feff}\n",
            "text\n\n---\n",
            "---\na: b\n---\n",
            "#\n",
        ] {
            assert!(
                matches!(read(markdown), Err(Error::NoHeadings)),
                "{markdown:?}"
            );
        }
    }

    #[test]
    fn spans_of_interiors_cover_what_is_known_of_their_subsections() -> Result<()> {
        let heading = |level, span: Option<Range<u64>>| Heading {
            level,
            number: None,
            title: format!("{level}"),
            span,
            page: None,
            text: String::new(),
        };
        let headings = vec![
            heading(1, None),
            heading(2, Some(30..30)),
            heading(3, Some(20..40)),
            heading(3, None),
            heading(2, Some(10..15)),
            heading(1, None),
        ];
        let toc = outline(headings).into_toc(&ReadOptions::default())?;
        let spans: Vec<_> = toc.sections.iter().map(|s| s.span.clone()).collect();
        assert_eq!(spans, [10..40, 20..40, 20..40, 0..0, 10..15, 0..0]);
        toc.check(40)
    }

    #[test]
    #[cfg_attr(miri, ignore = "large inputs take Miri hours")]
    fn a_hundred_thousand_headings_up_and_down_take_linear_time() -> Result<()> {
        let start = Instant::now();
        let levels = (0..100_000).map(|i| [1, 6, 2, 5, 3, 4, 6][i % 7]);
        let headings: Vec<_> = levels.map(|level| (level, None, "A")).collect();
        let toc = read_outline(&headings)?;
        assert_eq!(toc.sections.len(), 100_000);
        toc.check(u64::MAX)?;
        let chain: Vec<_> = (1..=MAX_LEVEL).map(|level| (level, None, "A")).collect();
        let toc = read_outline(&chain)?;
        assert_eq!(toc.sections.len(), usize::from(MAX_LEVEL) - 1);
        toc.check(u64::MAX)?;
        assert!(start.elapsed().as_secs() < 20);
        Ok(())
    }

    proptest! {
        #[test]
        fn any_headings_make_a_sound_table_of_contents(
            raw in prop::collection::vec(
                (
                    1..=MAX_LEVEL,
                    prop::option::weighted(0.2, "[0-9A-C](\\.[0-3])?"),
                    "([0-3](\\.[0-3])? ?)?(A|B|Contents|Preface)?",
                    prop::option::of((0..50_u64, 0..50_u64)),
                    0..60_usize,
                ),
                0..60,
            ),
            keep_front_matter: bool,
        ) {
            let headings = raw.into_iter().map(|(level, number, title, span, n)| Heading {
                level: level.min(if level % 3 == 0 { MAX_LEVEL } else { 3 }),
                number,
                title: if title.trim().is_empty() { "X".into() } else { text::fold(&title) },
                span: span.map(|(a, b)| a.min(b)..a.max(b)),
                page: None,
                text: words(n),
            });
            let headings: Vec<_> = headings.collect();
            let is_empty = headings.is_empty();
            let options = ReadOptions { keep_front_matter, ..ReadOptions::default() };
            match outline(headings).into_toc(&options) {
                Ok(toc) => toc.check(50)?,
                Err(error) => {
                    prop_assert!(is_empty && matches!(error, Error::NoHeadings));
                }
            }
        }
    }
}
