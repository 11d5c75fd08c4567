//! Which leaf of an index each question of a file is about.

use super::predictions::Gold;
use crate::index::Index;
use crate::questions::Question;
use std::collections::HashMap;

/// The sections of an index by what identifies them.
pub struct Sections {
    leaves: HashMap<String, u32>,
    others: HashMap<String, u32>,
}

impl Sections {
    /// The sections of `index`.
    pub fn new(index: &Index) -> Self {
        let mut sections = Self {
            leaves: HashMap::new(),
            others: HashMap::new(),
        };
        for section in (0..index.sections()).filter_map(|id| index.section(id)) {
            let map = match section.leaf {
                true => &mut sections.leaves,
                false => &mut sections.others,
            };
            map.insert(section.identifier(), section.id);
        }
        sections
    }

    /// What `question` asks for.
    pub fn gold(&self, question: &Question) -> Gold {
        match &question.section {
            None => Gold::Nothing,
            Some(name) => self
                .leaves
                .get(name)
                .map_or(Gold::Orphan, |id| Gold::Leaf(*id)),
        }
    }

    /// Whether `identifier` is that of the leaf `id`.
    pub fn is_leaf(&self, id: u32, identifier: &str) -> bool {
        self.leaves.get(identifier) == Some(&id)
    }

    /// The section with subsections that `identifier` names.
    pub fn inner(&self, identifier: &str) -> Option<u32> {
        self.others.get(identifier).copied()
    }
}

/// For each leaf, how many questions of `split` it answers.
pub fn counts(questions: &[Question], sections: &Sections, split: &str) -> HashMap<u32, u32> {
    let mut counts = HashMap::new();
    for question in questions.iter().filter(|question| question.split == split) {
        if let Gold::Leaf(leaf) = sections.gold(question) {
            *counts.entry(leaf).or_default() += 1;
        }
    }
    counts
}
