//! A document's table of contents: what the readers of each format make, and what an index is
//! built from.
//!
//! A reader finds a document's headings ([`read_markdown`], [`read_json`]); one set of rules makes
//! the sections of them, whatever the format:
//!
//! - A heading belongs to the nearest shallower heading before it, skipped levels or not.
//! - A single first heading of level 1 with deeper ones after it is the document's title.
//! - Text of more than 40 words that belongs to no leaf becomes one: before the first section it
//!   is section `0` under the document's title, between a section's heading and its first
//!   subsection it is `N.0` under the section's title. Shorter text stays with the section; before the
//!   first one there is none, and a warning says that it is left out.
//! - The document's own numbers are split off the titles where they are plausible as such;
//!   a document without numbers gets `1`, `1.1`, `1.2`...
//! - A cover, a title page, a copyright page and a table of contents at the front are left out.
//! - Every [`Section::identifier`] is unique: a repeated one gets ` (2)`, ` (3)`...

mod front_matter;
mod identifiers;
mod json;
mod markdown;
mod metadata;
mod numbering;
mod outline;
mod text;

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

pub use self::json::read_json;
pub use self::markdown::read_markdown;
pub(crate) use self::text::{is_blank, strip_markup};
use crate::error::{Error, Result};

/// Reads the table of contents of the document in `source`: as toc.json when `path_hint` ends in
/// `.json` (in any case), else as Markdown. No file is opened; the path only tells the format and,
/// by its stem, the title of a Markdown document that has none.
///
/// # Errors
///
/// Those of [`read_json`] and [`read_markdown`].
pub fn read(source: &[u8], path_hint: &Path, options: &ReadOptions) -> Result<Toc> {
    let is_json = path_hint
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    if is_json {
        return read_json(source, options);
    }
    let stem = path_hint.file_stem().unwrap_or_default();
    read_markdown(source, &stem.to_string_lossy(), options)
}

/// A document's table of contents, in document order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toc {
    /// The document's title.
    pub title: String,
    /// The sections in document order: a parent stands before its children.
    pub sections: Vec<Section>,
    /// What was dropped or renamed on the way, for a person to read.
    pub notes: Notes,
}

impl Toc {
    /// A table of contents of leaves alone, one after another, with neither numbers nor texts.
    pub fn flat(title: impl Into<String>, leaves: impl IntoIterator<Item = String>) -> Self {
        let sections = leaves.into_iter().map(|title| Section {
            number: String::new(),
            title,
            depth: 0,
            parent: None,
            leaf: true,
            span: 0..0,
            page: None,
            text: String::new(),
        });
        Self {
            title: title.into(),
            sections: sections.collect(),
            notes: Notes::default(),
        }
    }

    /// The sections that can be retrieved, in document order.
    pub fn leaves(&self) -> impl Iterator<Item = &Section> {
        self.sections.iter().filter(|section| section.leaf)
    }

    /// Positions in [`Toc::sections`] from the top-level section down to section `i` itself. Empty
    /// when there is no section `i`.
    pub fn path(&self, i: u32) -> Vec<u32> {
        let mut path = Vec::new();
        let mut next = Some(i);
        while let Some(i) = next {
            let Some(section) = self.sections.get(i as usize) else {
                break;
            };
            path.push(i);
            // A parent stands before its child; the filter ends the walk on a `Toc` made by hand
            // where it does not.
            next = section.parent.filter(|&parent| parent < i);
        }
        path.reverse();
        path
    }

    /// Checks what every reader promises, for a document of `source_len` bytes (`u64::MAX` where
    /// that is unknown): parents stand before their children and one level above them, exactly the
    /// leaves have no children, spans lie within the document and within their parents' (an empty
    /// span says nothing), titles are not blank and leaf identifiers are unique.
    ///
    /// # Errors
    ///
    /// [`Error::Internal`] says the first thing that does not hold.
    pub fn check(&self, source_len: u64) -> Result<()> {
        let broken = |i: usize, what: &str| Err(Error::Internal(format!("section {i}: {what}")));
        let mut has_child = vec![false; self.sections.len()];
        let mut identifiers = HashSet::new();
        for (i, section) in self.sections.iter().enumerate() {
            let span = &section.span;
            if span.start > span.end || span.end > source_len {
                return broken(i, "its span is outside the document");
            }
            match section.parent {
                None if section.depth != 0 => return broken(i, "it is deep and has no parent"),
                None => {}
                Some(parent) => {
                    let at = parent as usize;
                    let Some(parent) = self.sections[..i].get(at) else {
                        return broken(i, "its parent stands after it");
                    };
                    has_child[at] = true;
                    if Some(section.depth) != parent.depth.checked_add(1) {
                        return broken(i, "its depth is not its parent's plus one");
                    }
                    let inside = span.start >= parent.span.start && span.end <= parent.span.end;
                    if !span.is_empty() && !inside {
                        return broken(i, "its span is outside its parent's");
                    }
                }
            }
            if text::is_blank(&section.title) || text::fold(&section.title) != section.title {
                return broken(i, "its title is blank or not on one line");
            }
            if !identifiers.insert(section.identifier()) {
                return broken(i, "its identifier is another section's too");
            }
        }
        for (i, section) in self.sections.iter().enumerate() {
            if section.leaf == has_child[i] {
                return broken(i, "it is a leaf and has children, or neither");
            }
        }
        Ok(())
    }
}

/// One entry of a table of contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// `"4.2"`: the document's own number, or an assigned one. Empty only in a document that
    /// numbers its sections, for one without a number that no numbered section contains (a
    /// preface), and where the number is the whole title (`## 4`).
    pub number: String,
    /// The title as plain text, on one line.
    pub title: String,
    /// 0 for a top-level section.
    pub depth: u16,
    /// Position in [`Toc::sections`] of the section that this one belongs to.
    pub parent: Option<u32>,
    /// Whether it has no subsection. Only leaves can be retrieved.
    pub leaf: bool,
    /// Bytes of the original file, from the heading's first byte; an interior section's span
    /// covers its subsections. `0..0` where it is unknown.
    pub span: Range<u64>,
    /// Page in the original, where it is known.
    pub page: Option<u32>,
    /// The section's own text, without the heading and without subsections; as in the source.
    pub text: String,
}

impl Section {
    /// What the section is called in the prompt, in an index and in an answer: its number and its
    /// title, `"4.2 Proofs"`, or its title alone when it has no number. Unique among the leaves of
    /// a [`Toc`] that a reader made.
    pub fn identifier(&self) -> String {
        if self.number.is_empty() {
            self.title.clone()
        } else {
            format!("{} {}", self.number, self.title)
        }
    }
}

/// What a reader dropped or renamed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notes {
    /// Titles of front matter left out.
    pub dropped: Vec<String>,
    /// Identifiers that had to change to be unique: before and after.
    pub renamed: Vec<(String, String)>,
    /// What may not be as the author meant it, a sentence each.
    pub warnings: Vec<String>,
}

/// How a document is read.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// The document's title, in place of its own. A blank one counts as none.
    pub title: Option<String>,
    /// Keep front matter (cover, copyright, contents) as sections.
    pub keep_front_matter: bool,
}

#[cfg(test)]
mod tests {
    use super::outline::tests::read;
    use super::*;

    #[test]
    fn the_path_tells_the_format_and_the_last_resort_title() -> Result<()> {
        let options = ReadOptions::default();
        let toc = super::read(b"# A\n", Path::new("dir/My notes.md"), &options)?;
        assert_eq!(toc.title, "My notes");
        let json = br#"{"title": "T", "sections": [{"level": 1, "title": "A"}]}"#;
        assert_eq!(super::read(json, Path::new("x.JSON"), &options)?.title, "T");
        Ok(())
    }

    #[test]
    fn paths_lead_from_the_top_down() -> Result<()> {
        let toc = read("# A\n## B\n### C\n# D\n")?;
        assert_eq!(toc.path(2), [0, 1, 2]);
        assert_eq!(toc.path(3), [3]);
        assert!(toc.path(4).is_empty());
        assert_eq!(toc.leaves().count(), 2);
        Ok(())
    }

    #[test]
    fn check_finds_what_is_broken() -> Result<()> {
        let toc = read("# A\n\na\n\n## B\n\nb\n\n# C\n")?;
        toc.check(u64::MAX)?;
        let breaks: [fn(&mut Toc); 8] = [
            |toc| toc.sections[0].leaf = true,
            |toc| toc.sections[1].parent = Some(1),
            |toc| toc.sections[1].parent = Some(9),
            |toc| toc.sections[1].depth = 2,
            |toc| toc.sections[2].depth = 1,
            |toc| toc.sections[1].span.end = 1_000,
            |toc| toc.sections[1].title = "a\nb".into(),
            |toc| {
                toc.sections[2].number = toc.sections[1].number.clone();
                toc.sections[2].title = toc.sections[1].title.clone();
            },
        ];
        for (i, break_it) in breaks.iter().enumerate() {
            let mut broken = toc.clone();
            break_it(&mut broken);
            assert!(
                matches!(broken.check(u64::MAX), Err(Error::Internal(_))),
                "{i}"
            );
        }
        assert!(toc.check(3).is_err());
        Ok(())
    }
}
