//! Which titles are worth evaluating with the question, before the model was asked.
//!
//! A decode has a cost of its own, whatever is in it. So a title that the words of the question make
//! likely is evaluated in the question's own decode, where its row of decodes would follow. Measured on 40 development questions of the handbook (`stair eval` prints decodes
//! and tokens): from 3.6 decodes and 26.6 tokens to 1.3 and 28.3 for one hit, from 5.0 and 41.3 to
//! 3.5 and 44.2 for three.

/// Drafts at most; more found nothing that these had not.
const MOST: usize = 3;

/// Least probability of a draft: below it, what is saved is less than what is wasted. Between 0.1
/// and 0.4 the cost is the same within 2 %.
const LEAST: f64 = 0.2;

/// How much a unit of lexical score says when the caller gives no weight. Between 0.5 and 1.5 the cost
/// is the same.
pub(super) const WEIGHT: f32 = 1.0;

/// Writes the sections to draft to `drafts`, the likeliest first. Probabilities are the softmax of
/// `expected`, over the sections that have a lexical score above 0 in `scores`.
pub(super) fn choose(scores: &[f32], expected: &[f32], drafts: &mut Vec<u32>) {
    drafts.clear();
    let weigh = |section: u32| f64::from(expected[section as usize]);
    let score = |section: u32| scores[section as usize];
    for (section, _) in (0u32..).zip(scores).filter(|(_, score)| **score > 0.0) {
        let better = |other: &u32| score(*other) >= score(section);
        let rank = drafts.partition_point(better);
        if rank < MOST {
            drafts.truncate(MOST - 1);
            drafts.insert(rank, section);
        }
    }
    let Some(&best) = drafts.first() else { return };
    let best = weigh(best);
    let shared = (0u32..).zip(scores).filter(|(_, score)| **score > 0.0);
    let all: f64 = shared
        .map(|(section, _)| (weigh(section) - best).exp())
        .sum();
    drafts.retain(|&section| (weigh(section) - best).exp() >= LEAST * all);
}

#[cfg(all(test, feature = "building"))]
mod tests {
    use super::*;
    use crate::index::{BuildOptions, Index, build};
    use crate::lexical::Lexicon;
    use crate::toc::{ReadOptions, read_markdown};
    use crate::tokens::testing::Bytes;

    #[test]
    fn sections_are_drafted_as_far_as_the_words_are_sure() {
        let text = "# Cats and dogs\n\n# Dogs\n\n# Birds\n\n# Fish\n";
        let toc = read_markdown(text.as_bytes(), "Pets", &ReadOptions::default()).expect("reads");
        let (bytes, _) = build(&toc, &Bytes, &BuildOptions::default(), &|_| ()).expect("builds");
        let lexicon = Lexicon::new(&Index::from_bytes(&bytes).expect("opens"));
        let drafts = |question, weight: f32| {
            let scores = lexicon.scores(question);
            let weigh = |score: &f32| (weight * *score).min(f32::MAX);
            let mut drafts = vec![9];
            choose(
                &scores,
                &scores.iter().map(weigh).collect::<Vec<_>>(),
                &mut drafts,
            );
            drafts
        };
        assert_eq!(drafts("birds", WEIGHT), [2]);
        assert_eq!(drafts("dogs", 1.0), [1, 0]);
        // A large weight leaves no doubt, and one beyond all numbers does no harm.
        assert_eq!(drafts("dogs", 1e3), [1]);
        assert_eq!(drafts("dogs", f32::MAX), [1]);
        // Four equals are as many as none.
        assert_eq!(drafts("dogs birds fish", 1e-9).len(), 3);
        assert_eq!(drafts("cows", 1.0), Vec::<u32>::new());
    }
}
