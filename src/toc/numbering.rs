//! Section numbers: the document's own where it has them, else assigned ones.
//!
//! A number at a title's start (`4.2 Proofs`) may be a false one (`2024 Annual report`, `3 ways to
//! save`), so the document as a whole decides. Depth by depth, a leading number counts when
//!
//! - it extends the number of the nearest numbered section around it (`4.2` under `4`); or
//! - no section around it is numbered, it is no less than the one before it among its siblings, at
//!   least half of such sections at that depth have a number that counts, and most of these are
//!   where counting would put them (one more than the last, or a plausible beginning); or one of
//!   them has subsections that extend it, and then it does not matter how many have one.
//!
//! Where numbers begin below the top they must stand in at least half of the top-level sections, or be
//! extended by subsections in two of them.
//! Otherwise the document is not numbered: the numbered steps of one chapter of a manual are
//! titles, not the manual's numbering.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use super::outline::Node;
use super::text;

/// A number at the start of a title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LeadingNumber<'a> {
    /// `"4.2"`, without what surrounds it.
    pub(super) number: &'a str,
    /// The title after it. Empty where the number is the whole title.
    pub(super) rest: &'a str,
    /// Whether a `§`, `.`, `)` or `:`, or a dash after it, marks it as a number.
    marked: bool,
}

/// The number at the start of a folded title: `4`, `4.2`, `12.8.1` or `A.1`, after an optional `§`
/// and with an optional `.`, `)` or `:` at its end, or a dash or colon on its own after it
/// (`4 - Proofs`). A first part of four digits is a year. Roman numerals and words (`Chapter 4`) are
/// part of a title.
pub(super) fn leading_number(title: &str) -> Option<LeadingNumber<'_>> {
    let unsigned = title.strip_prefix('§').map(str::trim_start);
    let start = unsigned.unwrap_or(title);
    let bytes = start.as_bytes();
    let digits = |at: usize| {
        let digits = bytes[at.min(bytes.len())..].iter();
        digits.take_while(|byte| byte.is_ascii_digit()).count()
    };
    let mut end = match bytes.first()? {
        b'A'..=b'Z' if bytes.get(1) == Some(&b'.') && digits(2) > 0 => 1,
        _ => Some(digits(0)).filter(|count| (1..=3).contains(count))?,
    };
    while bytes.get(end) == Some(&b'.') && digits(end + 1) > 0 {
        let count = digits(end + 1);
        if count > 4 {
            return None;
        }
        end += 1 + count;
    }
    // Every byte up to `end` is ASCII, so the cuts below are at characters.
    let after = &start[end..];
    let unmarked = after.strip_prefix(['.', ')', ':']);
    let rest = unmarked.unwrap_or(after);
    if !rest.is_empty() && !rest.starts_with(char::is_whitespace) {
        return None;
    }
    let rest = rest.trim_start();
    let apart = rest.strip_prefix(['-', '\u{2013}', '\u{2014}', ':']);
    let apart = apart.filter(|title| title.starts_with(char::is_whitespace));
    Some(LeadingNumber {
        number: &start[..end],
        rest: apart.map_or(rest, str::trim_start),
        marked: unsigned.is_some() || unmarked.is_some() || apart.is_some(),
    })
}

/// The numbers of a document's sections.
#[derive(Debug)]
pub(super) struct Numbering {
    /// Of each section, as [`super::Section::number`] has it but that a number which is the whole
    /// title is here too. Subsections are numbered by it.
    pub(super) numbers: Vec<String>,
    /// Every number in `numbers`.
    used: HashSet<String>,
}

impl Numbering {
    /// Gives each of `nodes` its number, and takes from its title the number that was split off.
    pub(super) fn of(nodes: &mut [Node]) -> Self {
        let own: Vec<Option<String>> = if nodes.iter().any(|node| node.number.is_some()) {
            nodes.iter().map(|node| node.number.clone()).collect()
        } else {
            let counts = numbers_that_count(nodes);
            let split = nodes.iter_mut().zip(counts);
            split
                .map(|(node, counts)| split_number(node, counts))
                .collect()
        };
        let is_numbered = own.iter().any(Option::is_some);
        let mut used: HashSet<String> = own.iter().flatten().cloned().collect();
        let counters = counters(&own);
        // For each section: how many subsections it has so far, and the last number it gave one.
        let mut positions = vec![0_usize; nodes.len()];
        let mut last = vec![0_usize; nodes.len()];
        let mut top = 0;
        let mut numbers: Vec<String> = Vec::with_capacity(nodes.len());
        for (node, own) in nodes.iter().zip(&own) {
            let position = node
                .parent
                .map_or(&mut top, |parent| &mut positions[parent]);
            *position += 1;
            let outer = node.parent.map(|parent| (parent, &numbers[parent]));
            let number = match (own, outer) {
                (Some(own), _) => own.clone(),
                (None, None) if is_numbered => String::new(),
                (None, None) => position.to_string(),
                (None, Some((_, outer))) if outer.is_empty() => String::new(),
                (None, Some((parent, outer))) => {
                    let last = &mut last[counters[parent]];
                    loop {
                        // Never back: from an earlier position up to the last number given, all
                        // are taken.
                        *last = (*last + 1).max(*position);
                        let number = format!("{outer}.{last}");
                        if used.insert(number.clone()) {
                            break number;
                        }
                    }
                }
            };
            numbers.push(number);
        }
        if !is_numbered {
            used.extend(numbers.iter().cloned());
        }
        Self { numbers, used }
    }

    /// A number for text that stands before the first subsection of `parent`: `N.0`, or `0` for
    /// the text before the first section; `N.0.0` where that is in use. Empty under a section
    /// without a number.
    pub(super) fn zero_under(&mut self, parent: Option<usize>) -> String {
        let zero = match parent.map(|parent| self.numbers[parent].as_str()) {
            Some("") => return String::new(),
            Some(parent) => format!("{parent}.0"),
            None => "0".to_owned(),
        };
        // Where both are in use the document repeats its numbers, and telling its leaves apart is
        // left to their titles.
        let longer = format!("{zero}.0");
        for number in [&zero, &longer] {
            if self.used.insert(number.clone()) {
                return number.clone();
            }
        }
        zero
    }
}

/// For each section the first one with the same number, which counts for all of them: were each to
/// count anew, a thousand sections `1` would try `1.1` to `1.1000` a thousand times.
fn counters(own: &[Option<String>]) -> Vec<usize> {
    let mut first: HashMap<&str, usize> = HashMap::new();
    let mut counters = Vec::with_capacity(own.len());
    for (i, number) in own.iter().enumerate() {
        counters.push(match number {
            Some(number) => *first.entry(number).or_insert(i),
            None => i,
        });
    }
    counters
}

/// Splits the number off the title of `node` if it counts, and returns it. A title that is a number
/// and nothing else stays as it is.
fn split_number(node: &mut Node, counts: bool) -> Option<String> {
    let found = leading_number(&node.title).filter(|_| counts)?;
    let number = found.number.to_owned();
    if text::is_blank(found.rest) {
        node.number_is_title = true;
    } else {
        node.title = found.rest.to_owned();
    }
    Some(number)
}

/// Which of `nodes` have a leading number that counts.
fn numbers_that_count(nodes: &[Node]) -> Vec<bool> {
    let found: Vec<_> = nodes.iter().map(|n| leading_number(&n.title)).collect();
    let mut depths: Vec<Vec<usize>> = Vec::new();
    // Whether a subsection's number extends the section's: then it is no accident.
    let mut is_extended = vec![false; nodes.len()];
    // The top-level section at or around each section.
    let mut top: Vec<usize> = Vec::with_capacity(nodes.len());
    for (i, node) in nodes.iter().enumerate() {
        let depth = usize::from(node.depth);
        if depths.len() <= depth {
            depths.resize_with(depth + 1, Vec::new);
        }
        depths[depth].push(i);
        top.push(node.parent.map_or(i, |parent| top[parent]));
        if let Some(parent) = node.parent
            && let (Some(outer), Some(inner)) = (found[parent], found[i])
        {
            is_extended[parent] |= extends(outer.number, inner.number);
        }
    }

    let mut counts = vec![false; nodes.len()];
    // The nearest numbered section at or around each section.
    let mut numbered: Vec<Option<usize>> = vec![None; nodes.len()];
    let mut is_numbered = false;
    for depth in &depths {
        let mut free = Vec::new();
        for &i in depth {
            numbered[i] = nodes[i].parent.and_then(|parent| numbered[parent]);
            let outer = numbered[i].and_then(|outer| found[outer]);
            match (outer, found[i]) {
                (None, _) => free.push(i),
                (Some(outer), Some(inner)) => counts[i] = extends(outer.number, inner.number),
                (Some(_), None) => {}
            }
        }
        let sequence = plausible_sequence(&free, nodes, &found, &is_extended);
        if !is_numbered && !sequence.is_empty() {
            let mut branches: Vec<usize> = sequence.iter().map(|&i| top[i]).collect();
            // In document order, so those of one branch lie together.
            branches.dedup();
            // Steps of one chapter may have steps of their own.
            let mut proven = sequence
                .iter()
                .filter(|&&i| is_extended[i])
                .map(|&i| top[i]);
            let first = proven.next();
            let is_proven = proven.any(|branch| Some(branch) != first);
            if !is_proven && branches.len() * 2 < depths[0].len() {
                return vec![false; nodes.len()];
            }
            is_numbered = true;
        }
        for i in sequence {
            counts[i] = true;
        }
        for &i in depth.iter().filter(|&&i| counts[i]) {
            numbered[i] = Some(i);
        }
    }
    counts
}

/// Those of `free`, sections of one depth that no numbered section contains, whose leading numbers
/// count. Empty when they are too few or look like chance.
fn plausible_sequence(
    free: &[usize],
    nodes: &[Node],
    found: &[Option<LeadingNumber<'_>>],
    is_extended: &[bool],
) -> Vec<usize> {
    let mut sequence: Vec<usize> = Vec::new();
    let mut in_place = 0;
    let mut is_proven = false;
    for &i in free {
        let Some(number) = found[i] else {
            continue;
        };
        let last = sequence.last().map(|&last| (last, found[last]));
        let mut follows = false;
        if let Some((last, Some(before))) = last {
            // Each part of a book may count its chapters from 1.
            let same_parent = nodes[last].parent == nodes[i].parent;
            if same_parent && compare(before.number, number.number) == Ordering::Greater {
                continue;
            }
            follows = succeeds(before.number, number.number);
        }
        let begins = number.marked
            || number.number.contains('.')
            || matches!(number.number.parse(), Ok(0 | 1));
        in_place += usize::from(follows || begins);
        is_proven |= is_extended[i];
        sequence.push(i);
    }
    let enough = is_proven || sequence.len() * 2 >= free.len();
    let ordered = is_proven || in_place * 2 > sequence.len();
    if enough && ordered {
        sequence
    } else {
        Vec::new()
    }
}

/// Whether `inner` is `outer` and more: `4.2` extends `4`, and `04`.
fn extends(outer: &str, inner: &str) -> bool {
    let mut inner = parts(inner);
    parts(outer).all(|part| inner.next() == Some(part)) && inner.next().is_some()
}

/// Whether counting leads from `before` to `after`: they are equal, `after` extends `before`, or it
/// is one more where they first differ.
fn succeeds(before: &str, after: &str) -> bool {
    let mut pairs = parts(before).zip(parts(after));
    match pairs.find(|(before, after)| before != after) {
        None => compare(before, after) != Ordering::Greater,
        Some((Part::Digits(before), Part::Digits(after))) => after == before + 1,
        Some((Part::Letter(before), Part::Letter(after))) => after == before + 1,
        Some((_, after)) => after == Part::Letter(b'A'),
    }
}

fn compare(a: &str, b: &str) -> Ordering {
    parts(a).cmp(parts(b))
}

/// A part of a number; letters come after digits, as appendices after chapters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Digits(u32),
    Letter(u8),
}

/// The parts of a number that [`leading_number`] found: of at most four digits, or a letter.
fn parts(number: &str) -> impl Iterator<Item = Part> {
    number.split('.').map(|part| match part.parse() {
        Ok(digits) => Part::Digits(digits),
        Err(_) => Part::Letter(part.bytes().next().unwrap_or_default()),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::outline::tests::{identifiers, read, read_outline};
    use super::*;
    use crate::error::Result;

    #[test]
    fn leading_numbers_are_found() {
        for (title, number, rest) in [
            ("4 Proofs", "4", "Proofs"),
            ("4.2 Proofs", "4.2", "Proofs"),
            ("12.8.1 Proofs", "12.8.1", "Proofs"),
            ("A.1 Proofs", "A.1", "Proofs"),
            ("B.2.3. Proofs", "B.2.3", "Proofs"),
            ("1. Proofs", "1", "Proofs"),
            ("1) Proofs", "1", "Proofs"),
            ("§ 3.1 Proofs", "3.1", "Proofs"),
            ("§3 Proofs", "3", "Proofs"),
            ("4", "4", ""),
            ("4.", "4", ""),
            ("1 证明", "1", "证明"),
            ("4: Proofs", "4", "Proofs"),
            ("4.2 - Proofs", "4.2", "Proofs"),
            ("4 \u{2013} Proofs", "4", "Proofs"),
            ("4 -5 degrees", "4", "-5 degrees"),
        ] {
            let found = leading_number(title);
            let found = found.map(|found| (found.number, found.rest));
            assert_eq!(found, Some((number, rest)), "{title:?}");
        }
    }

    #[test]
    fn other_titles_have_no_leading_number() {
        for title in [
            "",
            "§",
            "Proofs",
            "A Proof",
            "A. Proof",
            "A.b Proof",
            "2024 Annual report",
            "3.5% more",
            "3D graphics",
            "1.Proofs",
            "4.2.x Proofs",
            "1.20000 Proofs",
            "4:3 screens",
            "IV. Proofs",
            "٤ براهين",
            ".5 Proofs",
        ] {
            assert_eq!(leading_number(title), None, "{title:?}");
        }
    }

    /// Headings, one a line, and the identifiers of all sections that come of them.
    #[track_caller]
    fn check(markdown: &str, expected: &[&str]) {
        let toc = read(markdown).expect("the tests' documents have headings");
        toc.check(markdown.len() as u64)
            .expect("readers promise it");
        assert_eq!(identifiers(&toc), expected, "{markdown}");
    }

    #[test]
    fn a_documents_own_numbers_are_kept() {
        check(
            "# 1 A\n## 1.1 B\n## 1.2. C\n# 2. D\n# § 3 E\n",
            &["1 A", "1.1 B", "1.2 C", "2 D", "3 E"],
        );
        check("# 4 A\n# 5 B\n## 5.3 C\n", &["4 A", "5 B", "5.3 C"]);
        check("# 01. A\n## 1.1 B\n# 02. C\n", &["01 A", "1.1 B", "02 C"]);
        check("# Chapter\n## 4.1 A\n## 4.2 B\n", &["4.1 A", "4.2 B"]);
    }

    #[test]
    fn numbers_that_subsections_extend_count_however_few_they_are() {
        check(
            "# I\n# 1. A\n## 1.1 B\n# 2. C\n## 2.1 D\n# G\n# H\n# J\n# K\n",
            &["I", "1 A", "1.1 B", "2 C", "2.1 D", "G", "H", "J", "K"],
        );
        check(
            "# U\n## 1 A\n### 1.1 B\n# V\n## 2 C\n### 2.1 D\n# W\n# X\n# Y\n# Z\n",
            &["U", "1 A", "1.1 B", "V", "2 C", "2.1 D", "W", "X", "Y", "Z"],
        );
    }

    #[test]
    fn what_sets_a_number_apart_is_no_part_of_the_title() {
        check("# 1: A\n## 1.1: B\n# 2: C\n", &["1 A", "1.1 B", "2 C"]);
        check("# 1 - A\n# 2 - B\n", &["1 A", "2 B"]);
    }

    #[test]
    fn a_document_without_numbers_gets_them() {
        check(
            "# A\n## B\n### C\n## D\n# E\n",
            &["1 A", "1.1 B", "1.1.1 C", "1.2 D", "2 E"],
        );
        check(
            "# Chapter 1: A\n# Part II\n",
            &["1 Chapter 1: A", "2 Part II"],
        );
    }

    #[test]
    fn false_numbers_stay_in_the_title() {
        check(
            "# 2023 Annual report\n# 2024 Annual report\n",
            &["1 2023 Annual report", "2 2024 Annual report"],
        );
        check(
            "# 3 ways to save\n# More\n",
            &["1 3 ways to save", "2 More"],
        );
        check(
            "# 3 ways\n# 5 tips\n# 7 Wonders\n",
            &["1 3 ways", "2 5 tips", "3 7 Wonders"],
        );
        // Too few, and falling.
        check("# 1 A\n# B\n# C\n", &["1 1 A", "2 B", "3 C"]);
        check("# 3 C\n# 2 B\n# 1 A\n", &["1 3 C", "2 2 B", "3 1 A"]);
        // One false number in a numbered document: nothing extends the chapter's.
        check(
            "# 1 A\n## 7 Wonders\n## 1.2 B\n# 2 C\n",
            &["1 A", "1.1 7 Wonders", "1.2 B", "2 C"],
        );
        check("# 1 A\n# 2 B\n# 1 Trick\n", &["1 A", "2 B", "1 Trick"]);
    }

    #[test]
    fn numbered_steps_are_not_the_documents_numbering() {
        check(
            "# A\n## 1. Get\n## 2. Run\n# B\n# C\n",
            &["1 A", "1.1 1. Get", "1.2 2. Run", "2 B", "3 C"],
        );
        check(
            "# A\n## 1. Get\n### 1.1 It\n# B\n# C\n",
            &["1 A", "1.1 1. Get", "1.1.1 1.1 It", "2 B", "3 C"],
        );
    }

    #[test]
    fn unnumbered_sections_of_a_numbered_document() {
        check(
            "# Preface\n# 1 A\n## Start\n## 1.1 B\n## 1.2 C\n## End\n### X\n# 2 D\n# Appendix\n## Y\n",
            &[
                "Preface",
                "1 A",
                "1.3 Start",
                "1.1 B",
                "1.2 C",
                "1.4 End",
                "1.4.1 X",
                "2 D",
                "Appendix",
                "Y",
            ],
        );
    }

    #[test]
    fn repeated_names_without_numbers_stay_unique() {
        check(
            "# Chapter 1\n## 1.1 A\n## Summary\n# Chapter 2\n## 2.1 B\n## 2.2 C\n## Summary\n",
            &[
                "Chapter 1",
                "1.1 A",
                "Summary",
                "Chapter 2",
                "2.1 B",
                "2.2 C",
                "Summary (2)",
            ],
        );
    }

    #[test]
    fn appendices_number_with_letters() {
        check(
            "# 1 A\n# 2 B\n# Appendix A\n## A.1 C\n## A.2 D\n# Appendix B\n## B.1 E\n",
            &[
                "1 A",
                "2 B",
                "Appendix A",
                "A.1 C",
                "A.2 D",
                "Appendix B",
                "B.1 E",
            ],
        );
    }

    #[test]
    fn chapters_may_start_again_in_each_part() {
        check(
            "# Part I\n## 1 A\n## 2 B\n# Part II\n## 1 C\n## 2 D\n",
            &["Part I", "1 A", "2 B", "Part II", "1 C", "2 D"],
        );
    }

    #[test]
    fn a_number_alone_is_the_title() {
        assert_eq!(
            read("# 1 \u{200b}\n# 2 B\n")
                .map(|toc| toc.sections.len())
                .ok(),
            Some(2)
        );
        check(
            "# 1\n# 2\n## A\n## 2.2 B\n# 3\n",
            &["1", "2", "2.1 A", "2.2 B", "3"],
        );
        check("# A\n# 4\n# B\n", &["1 A", "2 4", "3 B"]);
    }

    #[test]
    fn explicit_numbers_win_over_titles() -> Result<()> {
        let toc = read_outline(&[(1, Some("I"), "2 A"), (2, None, "3 B"), (1, None, "C")])?;
        assert_eq!(identifiers(&toc), ["I 2 A", "I.1 3 B", "C"]);
        Ok(())
    }

    #[test]
    #[cfg_attr(miri, ignore = "large inputs take Miri hours")]
    fn repeated_numbers_take_linear_time() -> Result<()> {
        let repeated = [(1, Some("1"), "A"), (2, None, "B")];
        let headings: Vec<_> = repeated.into_iter().cycle().take(100_000).collect();
        let start = Instant::now();
        let toc = read_outline(&headings)?;
        assert_eq!(toc.sections[99_999].number, "1.50000");

        let long = "word ".repeat(41);
        read(&format!("# 1 A\n{long}\n## B\n").repeat(10_000))?.check(u64::MAX)?;
        assert!(start.elapsed().as_secs() < 20);
        Ok(())
    }

    #[test]
    fn counting_leads_on() {
        for (before, after, leads) in [
            ("1", "2", true),
            ("1.9", "2", true),
            ("1.9", "1.10", true),
            ("1", "1.1", true),
            ("9", "A.1", true),
            ("A.4", "B.1", true),
            ("1", "1", true),
            ("1", "3", false),
            ("2", "1", false),
            ("1.1", "1", false),
            ("A.1", "C.1", false),
        ] {
            assert_eq!(succeeds(before, after), leads, "{before} {after}");
        }
    }

    #[test]
    fn many_unnumbered_sections_before_numbered_ones_take_linear_time() -> Result<()> {
        let mut headings = vec![(1, Some("1"), "A")];
        headings.extend(vec![(2, None, "B"); 100_000]);
        let numbers: Vec<String> = (1..=100_000).map(|k| format!("1.{k}")).collect();
        headings.extend(numbers.iter().map(|number| (2, Some(number.as_str()), "C")));
        // A second section of level 1, so that the first is not the document's title.
        headings.push((1, Some("2"), "D"));
        let start = Instant::now();
        let toc = read_outline(&headings)?;
        assert_eq!(toc.sections[1].number, "1.100001");
        assert_eq!(toc.sections[100_000].number, "1.200000");
        assert!(start.elapsed().as_secs() < 20);
        Ok(())
    }
}
