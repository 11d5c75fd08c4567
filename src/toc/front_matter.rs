//! Front matter that answers no question: covers, copyright pages, tables of contents.

use super::numbering;
use super::outline::Node;

/// Takes covers, title pages, copyright pages and tables of contents out of `nodes` and returns
/// them.
///
/// Only top-level leaves at the document's front are looked at: up to the first section that is
/// neither one of them nor a preface or the like. A document that would lose every section keeps
/// them all.
pub(super) fn drop_front_matter(nodes: &mut Vec<Node>) -> Vec<Node> {
    let mut dropped = Vec::new();
    let mut i = 0;
    while let Some(node) = nodes.get(i) {
        let name = name(&node.title);
        let is_leaf = node.is_top_level_leaf();
        if is_leaf && DROPPED.contains(&name.as_str()) {
            dropped.push(i);
        } else if !(is_leaf && PASSED.contains(&name.as_str())) {
            break;
        }
        i += 1;
    }
    if dropped.is_empty() || dropped.len() == nodes.len() {
        return Vec::new();
    }
    // All that was looked at is leaves, so no dropped section is a parent; the parents of the rest
    // move up by what was dropped before them, which is all of it.
    let mut at = 0;
    let taken = nodes
        .extract_if(.., |_| {
            at += 1;
            dropped.binary_search(&(at - 1)).is_ok()
        })
        .collect();
    for node in nodes {
        node.parent = node.parent.map(|parent| parent - dropped.len());
    }
    taken
}

/// What is left out, in lower case and without punctuation.
const DROPPED: &[&str] = &[
    "cover",
    "cover page",
    "front cover",
    "title page",
    "half title",
    "half title page",
    "copyright",
    "copyright page",
    "copyright notice",
    "contents",
    "table of contents",
    "toc",
];

/// What stays and may stand before or between the above.
const PASSED: &[&str] = &[
    "about the author",
    "about the authors",
    "about this book",
    "acknowledgements",
    "acknowledgments",
    "dedication",
    "epigraph",
    "foreword",
    "introduction",
    "preface",
    "prologue",
];

/// `title` without its number and punctuation, in lower case.
fn name(title: &str) -> String {
    let title = match numbering::leading_number(title) {
        Some(number) if !number.rest.is_empty() => number.rest,
        _ => title,
    };
    let words = title
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::super::outline::tests::{read, titles};
    use super::super::{ReadOptions, read_markdown};
    use crate::error::Result;

    #[test]
    fn front_matter_is_left_out_and_listed() -> Result<()> {
        let toc = read(
            "## Cover\n## *Title Page*\n## COPYRIGHT\n## Preface\n## Z\n## Contents\n## A\n### B\n",
        )?;
        assert_eq!(titles(&toc), ["Preface", "Z", "Contents", "A", "B"]);
        assert_eq!(toc.notes.dropped, ["Cover", "Title Page", "COPYRIGHT"]);
        let toc = read("## Half-title\n## Foreword\n## 1. Table of Contents:\n## A\n### B\n")?;
        assert_eq!(titles(&toc), ["Foreword", "A", "B"]);
        assert_eq!(toc.notes.dropped, ["Half-title", "1. Table of Contents:"]);
        toc.check(u64::MAX)
    }

    #[test]
    fn front_matter_names_stay_after_the_first_real_section_and_inside_others() -> Result<()> {
        let toc = read("## A\n### Contents\n## Copyright\n## Index\n")?;
        assert_eq!(titles(&toc), ["A", "Contents", "Copyright", "Index"]);
        let toc = read("## Contents\n### A\n## B\n")?;
        assert_eq!(titles(&toc), ["Contents", "A", "B"]);
        Ok(())
    }

    #[test]
    fn a_document_of_front_matter_alone_keeps_it() -> Result<()> {
        assert_eq!(titles(&read("# Copyright\n")?), ["Copyright"]);
        assert_eq!(
            titles(&read("# Cover\n# Contents\n")?),
            ["Cover", "Contents"]
        );
        Ok(())
    }

    #[test]
    fn front_matter_is_kept_on_demand() -> Result<()> {
        let options = ReadOptions {
            keep_front_matter: true,
            ..ReadOptions::default()
        };
        let toc = read_markdown(b"## Cover\n## A\n", "stem", &options)?;
        assert_eq!(titles(&toc), ["Cover", "A"]);
        assert!(toc.notes.dropped.is_empty());
        Ok(())
    }

    #[test]
    fn parents_are_right_after_a_drop_between_kept_sections() -> Result<()> {
        let toc = read("## Preface\n## Contents\n## A\n### B\n#### C\n### D\n")?;
        let parents: Vec<_> = toc.sections.iter().map(|s| s.parent).collect();
        assert_eq!(parents, [None, None, Some(1), Some(2), Some(1)]);
        toc.check(u64::MAX)
    }
}
