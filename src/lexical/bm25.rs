//! Okapi BM25: how much a document's words say about a question's.
//!
//! A document of length `l`, in words, that has a word `f` times scores for it
//!
//! ```text
//! idf * f * (K1 + 1) / (f + K1 * (1 - B + B * l / mean length))      idf = ln(1 + (N - n + 0.5) / (n + 0.5))
//! ```
//!
//! where `n` of the `N` documents have the word; its score for a question is the sum over the
//! question's words. The formula is that of Robertson and Zaragoza, *The Probabilistic Relevance
//! Framework: BM25 and Beyond* (2009), section 3.4; the `1 +` inside the logarithm is Lucene's, and
//! keeps words that more than half of the documents have from scoring below 0. Lucene leaves out
//! the constant factor `K1 + 1`, which changes no ranking.

/// How soon a word that is repeated says nothing new; the usual value, not tuned.
pub const K1: f32 = 1.2;

/// How much longer documents must repeat a word to say the same: 0 not at all, 1 in proportion to
/// their length; the usual value, not tuned.
pub const B: f32 = 0.75;

/// Scores of every word in every document that has it.
#[derive(Debug)]
pub struct Bm25 {
    /// Where in `postings` each term's begin, and the end of the last one's.
    starts: Vec<u32>,
    postings: Vec<Posting>,
}

/// What one document scores for one word.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Posting {
    /// The document, in the order in which they were counted, from 0.
    pub document: u32,
    /// Its score for the word; positive and finite.
    pub weight: f32,
}

impl Bm25 {
    /// The documents that have `term`, ascending.
    pub fn postings(&self, term: u32) -> &[Posting] {
        let term = term as usize;
        match (self.starts.get(term), self.starts.get(term + 1)) {
            (Some(&start), Some(&end)) => &self.postings[start as usize..end as usize],
            _ => &[],
        }
    }
}

/// Counts the words of documents, one document after the other.
#[derive(Debug, Default)]
pub struct Counter {
    /// Terms of the document under way.
    document: Vec<u32>,
    /// Length of each finished document in words.
    lengths: Vec<u32>,
    /// How often each finished document has each of its terms.
    counts: Vec<Count>,
    /// Number of documents with each term.
    documents_with: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Count {
    term: u32,
    document: u32,
    count: u32,
}

impl Counter {
    /// One more word of the document under way. Terms are small numbers from 0.
    pub fn count(&mut self, term: u32) {
        self.document.push(term);
    }

    /// Number of finished documents.
    pub fn documents(&self) -> usize {
        self.lengths.len()
    }

    /// Ends the document under way; the next word is the next document's.
    pub fn end_document(&mut self) {
        let document = self.lengths.len() as u32;
        self.lengths.push(self.document.len() as u32);
        self.document.sort_unstable();
        for run in self.document.chunk_by(|a, b| a == b) {
            let term = run[0];
            if self.documents_with.len() <= term as usize {
                self.documents_with.resize(term as usize + 1, 0);
            }
            self.documents_with[term as usize] += 1;
            self.counts.push(Count {
                term,
                document,
                count: run.len() as u32,
            });
        }
        self.document.clear();
    }

    /// The scores of all finished documents.
    pub fn finish(self) -> Bm25 {
        let documents = self.lengths.len() as f32;
        let words: f64 = self.lengths.iter().map(|&length| f64::from(length)).sum();
        let mean_length = (words / self.lengths.len().max(1) as f64) as f32;
        let mut starts = vec![0u32];
        for with in &self.documents_with {
            starts.push(starts[starts.len() - 1] + with);
        }
        let idf: Vec<f32> = self
            .documents_with
            .iter()
            .map(|&with| (1.0 + (documents - with as f32 + 0.5) / (with as f32 + 0.5)).ln())
            .collect();
        let nothing = Posting {
            document: 0,
            weight: 0.0,
        };
        let mut postings = vec![nothing; self.counts.len()];
        let mut next = starts.clone();
        for Count {
            term,
            document,
            count,
        } in self.counts
        {
            let (term, count) = (term as usize, count as f32);
            let length = self.lengths[document as usize] as f32 / mean_length;
            let weight = idf[term] * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length));
            postings[next[term] as usize] = Posting { document, weight };
            next[term] += 1;
        }
        Bm25 { starts, postings }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The score of `document` for `term`, by the definition, in double precision.
    fn by_definition(documents: &[Vec<u32>], document: usize, term: u32) -> f64 {
        let count = |words: &[u32]| words.iter().filter(|&&word| word == term).count() as f64;
        let all = documents.len() as f64;
        let with = documents
            .iter()
            .filter(|words| words.contains(&term))
            .count() as f64;
        let mean = documents.iter().map(Vec::len).sum::<usize>() as f64 / all;
        let length = documents[document].len() as f64;
        let (k1, b) = (f64::from(K1), f64::from(B));
        let frequency = count(&documents[document]);
        let idf = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
        idf * frequency * (k1 + 1.0) / (frequency + k1 * (1.0 - b + b * length / mean))
    }

    fn bm25(documents: &[Vec<u32>]) -> Bm25 {
        let mut counter = Counter::default();
        for words in documents {
            words.iter().for_each(|&word| counter.count(word));
            counter.end_document();
        }
        counter.finish()
    }

    proptest! {
        #[test]
        fn it_equals_its_definition(
            documents in prop::collection::vec(prop::collection::vec(0u32..12, 0..40), 1..20)
        ) {
            let bm25 = bm25(&documents);
            for term in 0..14 {
                let postings = bm25.postings(term);
                let with = (0..documents.len()).filter(|&d| documents[d].contains(&term));
                let expected: Vec<u32> = with.map(|d| d as u32).collect();
                let found: Vec<u32> = postings.iter().map(|posting| posting.document).collect();
                prop_assert_eq!(found, expected);
                for posting in postings {
                    let expected = by_definition(&documents, posting.document as usize, term);
                    let error = (f64::from(posting.weight) - expected).abs();
                    prop_assert!(error < 1e-5 * expected, "{posting:?} {expected}");
                    prop_assert!(posting.weight > 0.0 && posting.weight.is_finite());
                }
            }
        }
    }

    #[test]
    fn it_gives_what_the_formula_gives_by_hand() {
        // Two documents of mean length 3; the word stands twice in the one of length 4.
        let bm25 = bm25(&[vec![0, 0, 1, 2], vec![1, 2]]);
        // ln(1 + 1.5 / 1.5) * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 4 / 3))
        let expected = 2f32.ln() * 4.4 / 3.5;
        assert!((bm25.postings(0)[0].weight - expected).abs() < 1e-6);
        assert_eq!(bm25.postings(0).len(), 1);
    }

    #[test]
    fn nothing_counted_scores_nothing() {
        for documents in [&[][..], &[vec![]], &[vec![], vec![]]] {
            assert!(bm25(documents).postings(0).is_empty());
        }
    }
}
