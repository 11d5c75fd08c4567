//! How many examples were made, and where there are few.

use super::Task;
use crate::index::Index;
use std::collections::{BTreeMap, BTreeSet};

/// What was made, for a person to read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// For each chosen task, in the order of the file.
    pub tasks: Vec<TaskReport>,
    /// Identifiers of the leaves that have no example of any task.
    pub without_examples: Vec<String>,
    /// Questions of the split that no section answers; examples too, of no leaf.
    pub unanswerable: usize,
    /// Questions of other splits.
    pub other_splits: usize,
    /// Tokens of the longest example, its title included and the prefix not.
    pub longest: usize,
    /// The leaves, and how many examples they have for each task.
    leaves: BTreeMap<u32, (String, BTreeMap<Task, usize>)>,
}

/// How one task's examples are spread over the leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskReport {
    /// The task.
    pub task: Task,
    /// Number of examples.
    pub examples: usize,
    /// Fewest examples of a leaf.
    pub min: usize,
    /// Median over the leaves; of an even number the lower of the two in the middle.
    pub median: usize,
    /// Most examples of a leaf.
    pub max: usize,
    /// Identifiers of the leaves that have none.
    pub without: Vec<String>,
}

impl Report {
    pub(super) fn new(index: &Index, tasks: &BTreeSet<Task>) -> Self {
        let none: BTreeMap<Task, usize> = tasks.iter().map(|&task| (task, 0)).collect();
        let leaves = (0..index.sections())
            .filter_map(|id| index.section(id))
            .filter(|section| section.leaf)
            .map(|section| (section.id, (section.identifier(), none.clone())))
            .collect();
        Self {
            tasks: Vec::new(),
            without_examples: Vec::new(),
            unanswerable: 0,
            other_splits: 0,
            longest: 0,
            leaves,
        }
    }

    pub(super) fn count(&mut self, task: Task, section: Option<u32>, tokens: usize) {
        self.longest = self.longest.max(tokens);
        let Some(section) = section else {
            self.unanswerable += 1;
            return;
        };
        if let Some((_, counts)) = self.leaves.get_mut(&section) {
            *counts.entry(task).or_default() += 1;
        }
    }

    /// Adds up what was counted.
    pub(super) fn finish(mut self, tasks: &BTreeSet<Task>) -> Self {
        let without = |has_none: &dyn Fn(&BTreeMap<Task, usize>) -> bool| -> Vec<String> {
            let leaves = self.leaves.values();
            let without = leaves.filter(|(_, counts)| has_none(counts));
            without.map(|(name, _)| name.clone()).collect()
        };
        let reports = tasks.iter().map(|task| {
            let of = |counts: &BTreeMap<Task, usize>| counts.get(task).copied().unwrap_or(0);
            let mut counts: Vec<usize> = self.leaves.values().map(|(_, c)| of(c)).collect();
            counts.sort_unstable();
            TaskReport {
                task: *task,
                examples: counts.iter().sum(),
                min: counts.first().copied().unwrap_or(0),
                median: counts
                    .get(counts.len().saturating_sub(1) / 2)
                    .copied()
                    .unwrap_or(0),
                max: counts.last().copied().unwrap_or(0),
                without: without(&|counts| of(counts) == 0),
            }
        });
        let reports = reports.collect();
        self.without_examples = without(&|counts| counts.values().all(|&count| count == 0));
        self.tasks = reports;
        self
    }

    /// Every leaf's identifier with the number of its examples of `task`, in document order.
    pub fn per_leaf(&self, task: Task) -> impl Iterator<Item = (&str, usize)> {
        self.leaves
            .values()
            .map(move |(name, counts)| (name.as_str(), counts.get(&task).copied().unwrap_or(0)))
    }
}
