//! What is wrong with a file of questions before anybody trains on it or measures with it.

use super::gold::Sections;
use super::leaks::{Leak, leaks, reworded};
use super::predictions::Gold;
use crate::index::Index;
use crate::questions::Question;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, HashSet};
use unicode_segmentation::UnicodeSegmentation;

/// What an audit found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Audit {
    /// Number of questions.
    pub questions: usize,
    /// Leaves of the index.
    pub leaves: usize,
    /// For each split, what is in it.
    pub splits: BTreeMap<String, Split>,
    /// Questions whose section is not a leaf of the index.
    pub orphans: Vec<Orphan>,
    /// Ids that several questions have. An error.
    pub duplicate_ids: Vec<Repeated>,
    /// Questions that stand more than once in the same split.
    pub duplicate_questions: Vec<Repeated>,
    /// Questions without a visible word. An error.
    pub empty: Vec<usize>,
    /// Questions of different splits that say the same, each with the nearest before it.
    pub leaks: Vec<Leak>,
    /// Questions of different splits that say it with the same words of content.
    pub reworded: Vec<Leak>,
    /// Leaves without text: no evidence but their title. `None` when the index has no texts.
    pub leaves_without_text: Option<Vec<String>>,
}

/// The questions of one split.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Split {
    /// All of them.
    pub questions: usize,
    /// Those that a leaf answers.
    pub answerable: usize,
    /// Those whose section is not a leaf.
    pub orphans: usize,
    /// Those that no section answers.
    pub unanswerable: usize,
    /// Leaves that no question of the split is about.
    pub leaves_without_questions: Vec<String>,
}

/// A question whose section is not a leaf of the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Orphan {
    /// The question's id.
    pub id: String,
    /// Its line in the file.
    pub line: usize,
    /// The section that it names.
    pub section: String,
    /// Whether that is a section with subsections; otherwise the index has none of that name.
    pub has_subsections: bool,
}

/// Something that several lines of the file have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Repeated {
    /// What they have in common.
    pub what: String,
    /// The lines.
    pub lines: Vec<usize>,
}

impl Audit {
    /// Examines `questions`, which need not be valid ([`crate::questions::read_unchecked`]), with
    /// the index that they are about.
    pub fn new(questions: &[Question], index: &Index) -> Self {
        let sections = Sections::new(index);
        let leaks = leaks(questions);
        let leaves: Vec<(u32, String)> = (0..index.sections())
            .filter_map(|id| index.section(id))
            .filter(|section| section.leaf)
            .map(|section| (section.id, section.identifier()))
            .collect();
        Self {
            questions: questions.len(),
            leaves: leaves.len(),
            splits: splits(questions, &sections, &leaves),
            orphans: orphans(questions, &sections),
            duplicate_ids: repeated(questions, |question| Some(question.id.clone())),
            duplicate_questions: repeated(questions, |question| {
                let words: Vec<String> = question
                    .query
                    .unicode_words()
                    .map(str::to_lowercase)
                    .collect();
                (!words.is_empty()).then(|| format!("{}: {}", question.split, words.join(" ")))
            }),
            empty: questions
                .iter()
                .filter(|question| question.query.unicode_words().next().is_none())
                .map(|question| question.line)
                .collect(),
            reworded: reworded(questions, &leaks),
            leaks,
            leaves_without_text: index.info().has_text.then(|| without_text(index, &leaves)),
        }
    }

    /// Whether something is wrong that makes figures meaningless: a repeated id, an empty
    /// question, or no question that a leaf answers.
    pub fn has_errors(&self) -> bool {
        let answerable: usize = self.splits.values().map(|split| split.answerable).sum();
        !self.duplicate_ids.is_empty() || !self.empty.is_empty() || answerable == 0
    }

    /// Whether something may mislead: orphans, questions that stand twice, leaks.
    pub fn has_warnings(&self) -> bool {
        !(self.orphans.is_empty() && self.duplicate_questions.is_empty() && self.leaks.is_empty())
    }
}

fn splits(
    questions: &[Question],
    sections: &Sections,
    leaves: &[(u32, String)],
) -> BTreeMap<String, Split> {
    let mut splits: BTreeMap<String, Split> = BTreeMap::new();
    let mut asked: HashMap<&str, HashSet<u32>> = HashMap::new();
    for question in questions {
        let split = splits.entry(question.split.clone()).or_default();
        let asked = asked.entry(&question.split).or_default();
        split.questions += 1;
        match sections.gold(question) {
            Gold::Leaf(leaf) => {
                split.answerable += 1;
                asked.insert(leaf);
            }
            Gold::Orphan => split.orphans += 1,
            Gold::Nothing => split.unanswerable += 1,
        }
    }
    for (name, split) in &mut splits {
        let asked = &asked[name.as_str()];
        split.leaves_without_questions = leaves
            .iter()
            .filter(|(id, _)| !asked.contains(id))
            .map(|(_, identifier)| identifier.clone())
            .collect();
    }
    splits
}

fn orphans(questions: &[Question], sections: &Sections) -> Vec<Orphan> {
    questions
        .iter()
        .filter(|question| sections.gold(question) == Gold::Orphan)
        .filter_map(|question| {
            let section = question.section.clone()?;
            Some(Orphan {
                id: question.id.clone(),
                line: question.line,
                has_subsections: sections.inner(&section).is_some(),
                section,
            })
        })
        .collect()
}

fn repeated(questions: &[Question], what: impl Fn(&Question) -> Option<String>) -> Vec<Repeated> {
    let mut lines: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for question in questions {
        if let Some(what) = what(question) {
            lines.entry(what).or_default().push(question.line);
        }
    }
    let mut repeated: Vec<Repeated> = lines
        .into_iter()
        .filter(|(_, lines)| lines.len() > 1)
        .map(|(what, lines)| Repeated { what, lines })
        .collect();
    repeated.sort_by_key(|repeated| repeated.lines.clone());
    repeated
}

fn without_text(index: &Index, leaves: &[(u32, String)]) -> Vec<String> {
    let blank = |id: u32| {
        let text = index.section(id).and_then(|section| section.text);
        text.is_none_or(|text| text.unicode_words().next().is_none())
    };
    leaves
        .iter()
        .filter(|(id, _)| blank(*id))
        .map(|(_, identifier)| identifier.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{BuildOptions, build};
    use crate::toc::{ReadOptions, read_markdown};
    use crate::tokens::testing::Bytes;

    fn index() -> Index {
        let document = "# Book\n\n## 1 Pay\n\n### 1.1 Salary\n\nPaid monthly.\n\n### 1.2 Bonus\n\n## 2 Leave\n\nThirty days.\n";
        let toc =
            read_markdown(document.as_bytes(), "book", &ReadOptions::default()).expect("reads");
        let (bytes, _) = build(&toc, &Bytes, &BuildOptions::default(), &|_| {}).expect("builds");
        Index::from_bytes(&bytes).expect("opens")
    }

    fn question(
        line: usize,
        id: &str,
        query: &str,
        section: Option<&str>,
        split: &str,
    ) -> Question {
        Question {
            id: id.to_owned(),
            query: query.to_owned(),
            section: section.map(str::to_owned),
            split: split.to_owned(),
            line,
        }
    }

    #[test]
    fn everything_is_found_and_counted() {
        let audit = Audit::new(
            &[
                question(
                    1,
                    "a",
                    "When is salary paid to us?",
                    Some("1.1 Salary"),
                    "train",
                ),
                question(
                    2,
                    "b",
                    "when is SALARY paid to us",
                    Some("1.1 Salary"),
                    "test",
                ),
                question(3, "b", "How much leave is there?", Some("2 Leave"), "train"),
                question(4, "c", "How much leave is there?", Some("2 Leave"), "train"),
                question(5, "d", "?!", Some("1.2 Bonus"), "test"),
                question(6, "e", "What about pay?", Some("1 Pay"), "test"),
                question(7, "f", "What about pensions?", Some("3 Pensions"), "test"),
                question(8, "g", "Who won the cup?", None, "test"),
            ],
            &index(),
        );
        let test = &audit.splits["test"];
        assert_eq!((test.questions, test.answerable), (5, 2));
        assert_eq!((test.orphans, test.unanswerable), (2, 1));
        assert_eq!(test.leaves_without_questions, ["2 Leave"]);
        assert_eq!(
            audit.splits["train"].leaves_without_questions,
            ["1.2 Bonus"]
        );
        let orphans: Vec<(usize, bool)> = audit
            .orphans
            .iter()
            .map(|o| (o.line, o.has_subsections))
            .collect();
        assert_eq!(orphans, [(6, true), (7, false)]);
        assert_eq!(audit.duplicate_ids[0].lines, [2, 3]);
        assert_eq!(audit.duplicate_questions[0].lines, [3, 4]);
        assert_eq!(audit.empty, [5]);
        assert_eq!((audit.leaks[0].a_line, audit.leaks[0].b_line), (1, 2));
        assert_eq!(
            audit.leaves_without_text,
            Some(vec!["1.2 Bonus".to_owned()])
        );
        assert!(audit.has_errors() && audit.has_warnings());
    }

    #[test]
    fn good_questions_are_neither_wrong_nor_doubtful() {
        let audit = Audit::new(
            &[question(
                1,
                "a",
                "When is salary paid?",
                Some("1.1 Salary"),
                "train",
            )],
            &index(),
        );
        assert!(!audit.has_errors() && !audit.has_warnings());
    }
}
