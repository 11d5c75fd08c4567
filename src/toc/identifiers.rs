//! Unique names for the sections.

use std::collections::{HashMap, HashSet};

use super::{Section, Toc};

/// Makes [`Section::identifier`] unique: of sections named alike the first keeps its title, and each
/// later one gets the first of ` (2)`, ` (3)`... that no section is named by. Each change is noted in
/// [`super::Notes::renamed`].
///
/// Identifiers are compared whole: number `1` with title `2 A` is named like the unnumbered title
/// `1 2 A`. Titles come folded, so whitespace makes no difference.
pub(super) fn make_unique(toc: &mut Toc) {
    // What the document itself calls its sections is taken first: an `A (2)` of its own keeps its
    // name when a second `A` comes before it.
    let mut taken: HashSet<String> = toc.sections.iter().map(Section::identifier).collect();
    if taken.len() == toc.sections.len() {
        return;
    }
    // How often each identifier came up, and the last suffix it got. Without the latter a title
    // repeated n times would take n^2 attempts.
    let mut suffixes: HashMap<String, usize> = HashMap::new();
    for section in &mut toc.sections {
        let before = section.identifier();
        let Some(suffix) = suffixes.get_mut(&before) else {
            suffixes.insert(before, 1);
            continue;
        };
        let after = loop {
            *suffix += 1;
            let after = format!("{before} ({suffix})");
            if taken.insert(after.clone()) {
                break after;
            }
        };
        section.title = format!("{} ({suffix})", section.title);
        toc.notes.renamed.push((before, after));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toc(leaves: &[(&str, &str)]) -> Toc {
        let mut toc = Toc::flat("T", leaves.iter().map(|(_, title)| (*title).to_owned()));
        for (section, (number, _)) in toc.sections.iter_mut().zip(leaves) {
            section.number = (*number).to_owned();
        }
        toc
    }

    fn unique(leaves: &[(&str, &str)]) -> (Vec<String>, usize) {
        let mut toc = toc(leaves);
        make_unique(&mut toc);
        let identifiers = toc.leaves().map(Section::identifier).collect();
        (identifiers, toc.notes.renamed.len())
    }

    #[test]
    fn later_leaves_of_one_name_get_a_suffix() {
        let (names, renamed) = unique(&[("", "A"), ("1", "A"), ("", "A"), ("1", "A"), ("", "A")]);
        assert_eq!(names, ["A", "1 A", "A (2)", "1 A (2)", "A (3)"]);
        assert_eq!(renamed, 3);
    }

    #[test]
    fn a_suffix_that_the_document_uses_itself_is_passed_over() {
        let (names, renamed) = unique(&[("", "A"), ("", "A"), ("", "A (2)"), ("", "A (2)")]);
        assert_eq!(names, ["A", "A (3)", "A (2)", "A (2) (2)"]);
        assert_eq!(renamed, 2);
    }

    #[test]
    fn number_and_title_are_compared_as_one() {
        let (names, _) = unique(&[("1", "2 A"), ("", "1 2 A")]);
        assert_eq!(names, ["1 2 A", "1 2 A (2)"]);
    }

    #[test]
    fn what_was_renamed_is_noted() {
        let mut toc = toc(&[("4", "A"), ("4", "A")]);
        make_unique(&mut toc);
        assert_eq!(toc.notes.renamed, [("4 A".into(), "4 A (2)".into())]);
    }

    #[test]
    fn interiors_count_as_well() {
        for interior in [0, 1] {
            let mut toc = toc(&[("", "A"), ("", "A")]);
            toc.sections[interior].leaf = false;
            make_unique(&mut toc);
            assert_eq!(toc.notes.renamed, [("A".into(), "A (2)".into())]);
            assert_eq!(toc.sections[1].title, "A (2)");
        }
    }

    #[test]
    fn a_hundred_thousand_leaves_of_one_name_take_linear_time() {
        let (names, renamed) = unique(&vec![("", "A"); 100_000]);
        assert_eq!((names.len(), renamed), (100_000, 99_999));
    }
}
