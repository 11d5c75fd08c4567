//! Questions of one split that another split gives away: the same question, or nearly the same.
//!
//! Two questions are nearly the same when the sets of their words overlap by at least
//! [`THRESHOLD`] (Jaccard: words in both over words in either). Words are compared without case and
//! punctuation. They are *reworded* when that holds without the words that many questions have and
//! without plural endings: the same words of content, whatever the order and what stands between.
//! Only pairs that share enough rare words to reach the threshold are compared at all,
//! the prefix filter of Bayardo, Ma and Srikant (*Scaling up all pairs similarity search*, WWW
//! 2007), so thousands of questions take milliseconds.

use crate::lexical::stem::stem;
use crate::questions::Question;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use unicode_segmentation::UnicodeSegmentation;

/// Overlap of words from which two questions are nearly the same. In a question of ten words, one
/// may be another (9 / 11 = 0.82).
pub const THRESHOLD: f64 = 0.8;

/// Words that more questions have than this share do not tell questions apart, ...
const FREQUENT: f64 = 0.02;
/// ... if at least so many questions have them, ...
const FREQUENT_AT_LEAST: u32 = 20;
/// ... and fewer other words than this say too little to call two questions the same.
const TELLING_WORDS: usize = 3;

/// Two questions of different splits that say the same.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Leak {
    /// Id of the question of the split with the earlier line.
    pub a: String,
    /// Its split.
    pub a_split: String,
    /// Its line in the file.
    pub a_line: usize,
    /// Id of the other question.
    pub b: String,
    /// Its split.
    pub b_split: String,
    /// Its line in the file.
    pub b_line: usize,
    /// Overlap of their words, up to 1 for the same words.
    pub overlap: f64,
}

impl Leak {
    fn lines(&self) -> (usize, usize) {
        (self.a_line, self.b_line)
    }
}

/// Pairs of `questions` that are in different splits and nearly the same: each question with the nearest
/// of each other split before it, the first of equally near ones. In the order of the later one's line.
pub fn leaks(questions: &[Question]) -> Vec<Leak> {
    overlapping(questions, &by_rarity(questions, words, u32::MAX))
}

/// The same of those that are reworded and not among `leaks`.
pub fn reworded(questions: &[Question], leaks: &[Leak]) -> Vec<Leak> {
    let most = (FREQUENT * questions.len() as f64) as u32;
    let mut sets = by_rarity(questions, stems, most.max(FREQUENT_AT_LEAST));
    for set in &mut sets {
        if set.len() < TELLING_WORDS {
            set.clear();
        }
    }
    let mut found = overlapping(questions, &sets);
    let same: HashSet<_> = leaks.iter().map(Leak::lines).collect();
    found.retain(|pair| !same.contains(&pair.lines()));
    found
}

/// The pairs whose sets of numbers overlap enough; each set is ascending, the rarest number first.
fn overlapping(questions: &[Question], sets: &[Vec<u32>]) -> Vec<Leak> {
    // Questions of the same words are looked at once: of each split the first one.
    let mut groups: Vec<(&[u32], Vec<usize>)> = Vec::new();
    let mut group_of: HashMap<&[u32], usize> = HashMap::new();
    let mut holders: HashMap<u32, Vec<usize>> = HashMap::new();
    let mut leaks = Vec::new();
    for (later, words) in sets.iter().enumerate() {
        // Sets that overlap enough have one of these many rarest words of each in common.
        let shared = (THRESHOLD * words.len() as f64).ceil() as usize;
        let prefix = &words[..(words.len() + 1 - shared.max(1)).min(words.len())];
        let candidates: BTreeSet<usize> = prefix
            .iter()
            .filter_map(|word| holders.get(word))
            .flatten()
            .copied()
            .collect();
        let split = &questions[later].split;
        let mut nearest: BTreeMap<&str, (f64, usize)> = BTreeMap::new();
        for group in candidates {
            let (words_there, firsts) = &groups[group];
            let overlap = jaccard(words_there, words);
            if overlap < THRESHOLD {
                continue;
            }
            for &earlier in firsts.iter().filter(|&&i| questions[i].split != *split) {
                let found = nearest
                    .entry(&questions[earlier].split)
                    .or_insert((overlap, earlier));
                if overlap > found.0 || overlap == found.0 && earlier < found.1 {
                    *found = (overlap, earlier);
                }
            }
        }
        let mut nearest: Vec<_> = nearest.into_values().collect();
        nearest.sort_unstable_by_key(|(_, earlier)| *earlier);
        for (overlap, earlier) in nearest {
            leaks.push(leak(&questions[earlier], &questions[later], overlap));
        }
        let group = *group_of.entry(words).or_insert_with(|| {
            groups.push((words, Vec::new()));
            for word in prefix {
                holders.entry(*word).or_default().push(groups.len() - 1);
            }
            groups.len() - 1
        });
        let firsts = &mut groups[group].1;
        if firsts.iter().all(|&i| questions[i].split != *split) {
            firsts.push(later);
        }
    }
    leaks
}

fn leak(a: &Question, b: &Question, overlap: f64) -> Leak {
    Leak {
        a: a.id.clone(),
        a_split: a.split.clone(),
        a_line: a.line,
        b: b.id.clone(),
        b_split: b.split.clone(),
        b_line: b.line,
        overlap,
    }
}

/// Each question's words as numbers, without repetition and the rarest first: numbers are given in
/// the order of how many questions have the word. Words that more than `most` have are left out.
fn by_rarity(
    questions: &[Question],
    words: fn(&str) -> BTreeSet<String>,
    most: u32,
) -> Vec<Vec<u32>> {
    let texts: Vec<BTreeSet<String>> = questions.iter().map(|q| words(&q.query)).collect();
    let mut frequency: HashMap<&str, u32> = HashMap::new();
    for word in texts.iter().flatten() {
        *frequency.entry(word).or_default() += 1;
    }
    let mut order: Vec<(&str, u32)> = frequency.into_iter().collect();
    order.retain(|(_, count)| *count <= most);
    order.sort_unstable_by(|a, b| a.1.cmp(&b.1).then(a.0.cmp(b.0)));
    let number: HashMap<&str, u32> = (0..).zip(&order).map(|(i, (word, _))| (*word, i)).collect();
    let numbers = |text: &BTreeSet<String>| {
        let mut numbers: Vec<u32> = text
            .iter()
            .filter_map(|word| number.get(word.as_str()).copied())
            .collect();
        numbers.sort_unstable();
        numbers
    };
    texts.iter().map(numbers).collect()
}

fn words(text: &str) -> BTreeSet<String> {
    text.unicode_words().map(str::to_lowercase).collect()
}

fn stems(text: &str) -> BTreeSet<String> {
    let stemmed = |mut word: String| {
        stem(&mut word);
        word
    };
    words(text).into_iter().map(stemmed).collect()
}

/// Of two ascending lists without repetition.
fn jaccard(a: &[u32], b: &[u32]) -> f64 {
    let both = a
        .iter()
        .filter(|word| b.binary_search(word).is_ok())
        .count();
    match a.len() + b.len() - both {
        0 => 0.0,
        either => both as f64 / either as f64,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn question(line: usize, query: &str, split: &str) -> Question {
        Question {
            id: format!("q{line}"),
            query: query.to_owned(),
            section: None,
            split: split.to_owned(),
            line,
        }
    }

    #[test]
    fn case_and_punctuation_hide_nothing_and_a_word_more_does_not_help() {
        let found = leaks(&[
            question(1, "How many days of leave do I have in a year?", "train"),
            question(2, "How many days of leave do I have in a YEAR", "test"),
            question(3, "So how many days of leave do I have in a year?", "dev"),
            question(4, "How many days of leave do I have in a year?", "train"),
            question(5, "Who pays for my train ticket?", "test"),
        ]);
        let pairs: Vec<(usize, usize)> = found.iter().map(|l| (l.a_line, l.b_line)).collect();
        assert_eq!(pairs, [(1, 2), (1, 3), (2, 3), (2, 4), (3, 4)]);
        assert_eq!(found[0].overlap, 1.0);
    }

    #[test]
    #[cfg_attr(miri, ignore = "large inputs take Miri hours")]
    fn thousands_of_questions_alike_take_no_time() {
        let splits = ["train", "test"];
        let questions: Vec<Question> = (0..20_000)
            .map(|i| question(i, "what is the apple pie for the company", splits[i % 2]))
            .collect();
        // The first but one, and every later one, with the first of the other split.
        assert_eq!(leaks(&questions).len(), 19_999);
    }

    #[test]
    fn other_words_between_the_same_words_of_content_hide_nothing() {
        // Enough questions for all words but these to be frequent.
        let frequent = "when does the end of it for a";
        let others = (0..40).map(|i| question(i + 9, &format!("{frequent} topic{i}?"), "train"));
        let questions: Vec<Question> = [
            question(
                1,
                "When does the probation of new members in sales end?",
                "train",
            ),
            question(
                2,
                "For a new member in sales, probation: the end, when?",
                "test",
            ),
            question(
                3,
                "When does the probation of new members in sales end",
                "dev",
            ),
            question(4, "The end of the topic1", "test"),
        ]
        .into_iter()
        .chain(others)
        .collect();
        let lines = |found: Vec<Leak>| found.iter().map(Leak::lines).collect::<Vec<_>>();
        assert_eq!(lines(leaks(&questions)), [(1, 3)]);
        let same = leaks(&questions);
        assert_eq!(lines(reworded(&questions, &same)), [(1, 2), (2, 3)]);
    }

    proptest! {
        #[test]
        fn the_filter_finds_what_all_pairs_give(
            texts in prop::collection::vec(prop::collection::vec("[a-f]", 0..9), 0..24)
        ) {
            let splits = ["train", "test"];
            let questions: Vec<Question> = texts
                .iter()
                .enumerate()
                .map(|(i, words)| question(i, &words.join(" "), splits[i % 2]))
                .collect();
            let sets = by_rarity(&questions, words, u32::MAX);
            let mut expected = Vec::new();
            for b in 0..questions.len() {
                // Two splits, so one other one.
                let mut best: Option<(f64, usize)> = None;
                for a in (0..b).filter(|&a| questions[a].split != questions[b].split) {
                    let overlap = jaccard(&sets[a], &sets[b]);
                    if overlap >= THRESHOLD && best.is_none_or(|(most, _)| overlap > most) {
                        best = Some((overlap, a));
                    }
                }
                expected.extend(best.map(|(_, a)| (a, b)));
            }
            let found: Vec<(usize, usize)> =
                leaks(&questions).iter().map(|l| (l.a_line, l.b_line)).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
