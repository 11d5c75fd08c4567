//! The key terms that a document marks, and what it says of them where it does.

use super::plain::{Block, Mark, MarkKind};
use std::collections::{HashMap, HashSet};
use unicode_segmentation::UnicodeSegmentation;

/// A key term, in the leaf that marks it first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Term {
    /// Position of the leaf among those that were read.
    pub leaf: usize,
    /// The term as it is written there.
    pub name: String,
    /// The sentence that it stands in; `None` for a line that is the term and nothing else, as a
    /// heading inside a section is.
    pub sentence: Option<String>,
}

impl Term {
    /// Questions that ask for the term.
    pub fn questions(&self) -> Vec<String> {
        let name = &self.name;
        match self.sentence {
            Some(_) => vec![
                format!("What is {name}?"),
                format!("What does {name} mean?"),
                format!("Define {name}."),
                name.clone(),
            ],
            None => vec![name.clone()],
        }
    }
}

/// Most words of a term.
const MOST_WORDS: usize = 6;

/// Leaves in which a label (`Note:`) is marked, from which on it is no term.
const LABEL: usize = 4;

/// The terms that `leaves` mark, in document order, each once.
///
/// Bold text of up to six words is a term, and so is an entry of a definition list. Italic text is
/// one where the document uses those words for the first time: stress and names in italics stand
/// elsewhere too. Words at the start of a block that end with a colon and return in four leaves are
/// labels.
pub(super) fn terms(leaves: &[Vec<Block>]) -> Vec<Term> {
    let document = Document::new(leaves);
    let mut labels: HashMap<String, HashSet<usize>> = HashMap::new();
    for (leaf, block, mark) in marks(leaves) {
        if is_label(block, mark) || mark.kind == MarkKind::Emphasis {
            labels.entry(key(block, mark)).or_default().insert(leaf);
        }
    }
    let mut seen = HashSet::new();
    let mut terms = Vec::new();
    for ((leaf, block, mark), start) in marks(leaves).zip(document.marks()) {
        let name = name(block, mark);
        let words = name.unicode_words().count();
        if !(1..=MOST_WORDS).contains(&words) || !name.contains(char::is_alphabetic) {
            continue;
        }
        let key = key(block, mark);
        if labels.get(&key).is_some_and(|leaves| leaves.len() >= LABEL) {
            continue;
        }
        let alone = is_alone(block, mark);
        let passes = match mark.kind {
            MarkKind::Strong => true,
            MarkKind::Emphasis => !alone && document.first_use(&key) == Some(start),
        };
        if passes && seen.insert(key) {
            terms.push(Term {
                leaf,
                name: name.to_owned(),
                sentence: (!alone).then(|| sentence(block, mark).to_owned()),
            });
        }
    }
    terms
}

/// Every mark in document order, with its leaf and block.
fn marks(leaves: &[Vec<Block>]) -> impl Iterator<Item = (usize, &Block, &Mark)> {
    leaves.iter().enumerate().flat_map(|(leaf, blocks)| {
        blocks
            .iter()
            .flat_map(move |block| block.marks.iter().map(move |mark| (leaf, block, mark)))
    })
}

/// What is marked, without the punctuation around it.
fn name<'a>(block: &'a Block, mark: &Mark) -> &'a str {
    let text = &block.text[mark.span.clone()];
    let bare = |c: char| c.is_whitespace() || ":;,.!?\"“”„«»".contains(c);
    text.trim_matches(bare)
}

fn key(block: &Block, mark: &Mark) -> String {
    name(block, mark).to_lowercase()
}

fn is_label(block: &Block, mark: &Mark) -> bool {
    let rest = &block.text[mark.span.end..];
    mark.span.start == 0 && (block.text[..mark.span.end].ends_with(':') || rest.starts_with(':'))
}

/// Whether the block says nothing but the term.
fn is_alone(block: &Block, mark: &Mark) -> bool {
    let around = [&block.text[..mark.span.start], &block.text[mark.span.end..]];
    !around
        .iter()
        .any(|text| text.contains(char::is_alphanumeric))
}

/// The sentence that the mark stands in, with the next one when it says hardly more than the term.
fn sentence<'a>(block: &'a Block, mark: &Mark) -> &'a str {
    let text = &block.text;
    let mut start = 0;
    for (at, sentence) in text.split_sentence_bound_indices() {
        let end = at + sentence.len();
        if end <= mark.span.start {
            start = end;
            continue;
        }
        let found = text[start..end].trim();
        let term = name(block, mark).unicode_words().count();
        if end >= mark.span.end && found.unicode_words().count() > term + 2 {
            return found;
        }
    }
    text[start..].trim()
}

/// The whole text in lower case, to find where words are used first.
struct Document {
    text: String,
    /// Where each mark begins, in the order of [`marks`].
    marks: Vec<usize>,
}

impl Document {
    fn new(leaves: &[Vec<Block>]) -> Self {
        let mut document = Self {
            text: String::new(),
            marks: Vec::new(),
        };
        for block in leaves.iter().flatten() {
            let start = document.text.len();
            for mark in &block.marks {
                let name = name(block, mark).as_ptr() as usize;
                let before = name - block.text.as_ptr() as usize;
                let before = block.text[..before].to_lowercase().len();
                document.marks.push(start + before);
            }
            document.text.push_str(&block.text.to_lowercase());
            document.text.push('\n');
        }
        document
    }

    fn marks(&self) -> impl Iterator<Item = usize> + '_ {
        self.marks.iter().copied()
    }

    /// Where `words` stand first as words of their own.
    fn first_use(&self, words: &str) -> Option<usize> {
        let found = self.text.match_indices(words).find(|(at, found)| {
            let before = self.text[..*at].chars().next_back();
            let after = self.text[at + found.len()..].chars().next();
            let inside = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
            !inside(before) && !inside(after)
        });
        found.map(|(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::plain::blocks;
    use super::*;

    fn of(leaves: &[&str]) -> Vec<Term> {
        let leaves: Vec<_> = leaves.iter().map(|text| blocks(text)).collect();
        terms(&leaves)
    }

    fn names(leaves: &[&str]) -> Vec<String> {
        of(leaves).into_iter().map(|term| term.name).collect()
    }

    #[test]
    fn a_bold_term_comes_with_its_sentence() {
        let found = of(&["First. A **claim window** is the 60 days after it. Last."]);
        assert_eq!(
            found,
            [Term {
                leaf: 0,
                name: "claim window".to_owned(),
                sentence: Some("A claim window is the 60 days after it.".to_owned()),
            }]
        );
        assert_eq!(found[0].questions()[0], "What is claim window?");
    }

    #[test]
    fn lists_of_terms_are_read_in_both_forms() {
        let found = of(&["- **Roster**: the binding plan\n- **Gate:** a door\n\nPen\n: to write"]);
        let sentences: Vec<_> = found.iter().map(|t| t.sentence.as_deref()).collect();
        assert_eq!(
            sentences,
            [
                Some("Roster: the binding plan"),
                Some("Gate: a door"),
                Some("Pen: to write")
            ]
        );
        assert_eq!(found[1].name, "Gate");
    }

    #[test]
    fn a_term_belongs_to_the_leaf_that_marks_it_first() {
        let found = of(&[
            "The pen writes.",
            "A **Pen** is a tool.",
            "A **pen** again.",
        ]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].leaf, 1);
    }

    #[test]
    fn italics_are_terms_where_the_words_are_new() {
        let leaves = [
            "Do *not* wait. This is called *lock-out*.",
            "Not so: *lock-out*.",
        ];
        assert_eq!(
            names(&["It is not so.", leaves[0], leaves[1]]),
            ["lock-out"]
        );
        // A name that is set in italics wherever it stands.
        assert!(names(&["*E. coli* grows", "*E. coli*", "*E. coli*", "*E. coli*"]).is_empty());
    }

    #[test]
    fn labels_headings_numbers_and_phrases_are_told_apart() {
        let note = "**Note:** mind the gap.";
        assert_eq!(names(&[note, note, note]), ["Note"]);
        assert!(names(&[note, note, note, note]).is_empty());
        let found = of(&["**Format**\n\nText."]);
        assert_eq!(found[0].sentence, None);
        assert_eq!(found[0].questions(), ["Format"]);
        assert!(names(&["**12** and **one two three four five six seven** x"]).is_empty());
    }
}
