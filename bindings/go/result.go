package stair

// These calls only read, so they never log: no callback into Go.

// #cgo noescape go_results_count
// #cgo nocallback go_results_count
// #cgo noescape go_results_get
// #cgo nocallback go_results_get
// #cgo noescape go_results_path
// #cgo nocallback go_results_path
// #cgo noescape go_results_stats
// #cgo nocallback go_results_stats
// #include "shim.h"
import "C"

import "time"

// A Result is the answer to one question.
type Result struct {
	// Hits are the sections found, the best first.
	Hits []Hit
	// LegalMass is the probability, 0 to 1, that the model gave to what this document allows,
	// along the best hit. When it is low, the model wanted to say something that is not in it. It
	// is NaN without a model.
	LegalMass float64
	// Stats says what the answer took.
	Stats Stats
}

// A Hit is one section that was found.
type Hit struct {
	// Section is the section's id in the index.
	Section int
	// Number is the section's number, as in "4.2". It may be empty.
	Number string
	// Title is the heading without the number.
	Title string
	// Path is the way to the section from the top, each entry with number and title; the section
	// itself is the last.
	Path []string
	// Page is the page on which the section begins, nil if that is not known.
	Page *int
	// Span is the section's place in the document, heading included. It is empty if that is not
	// known.
	Span Span
	// Text is the section's text without the heading. It is empty if texts were not kept in the
	// index.
	Text string
	// Score is what the hit is ranked by: LogProb, and the weight of [WithLexicalWeight] times
	// Lexical when there is one; Lexical without a model.
	Score float64
	// LogProb is the natural logarithm of the probability that the model gives to this section;
	// 0 is certain. It is NaN without a model.
	LogProb float64
	// Lexical is the section's lexical score for the question: BM25 of number, title and text, and
	// of passages and known questions; 0 when they share no word. It is NaN with a model and no
	// weight.
	Lexical float64
}

// Stats say what an answer took.
type Stats struct {
	// Decodes is the number of steps of the model that this answer had a part in.
	Decodes int
	// QuestionTokens is the number of tokens of the question and what the prompt has around it.
	QuestionTokens int
	// SearchTokens is the number of tokens the search looked at.
	SearchTokens int
	// PrefixTokens is the number of tokens of the table of contents that had to be decoded for
	// this answer: 0 when the retriever was warm.
	PrefixTokens int
	// RestoredTokens is the number of tokens of the table of contents that were read from the warm
	// file for this answer, rather than decoded.
	RestoredTokens int
	// Prefill is the time spent on those.
	Prefill time.Duration
	// Search is the time spent on the question and the search.
	Search time.Duration
	// Total is the time from the call to the answer, waiting included.
	Total time.Duration
}

// copyResult makes Go data of results, which the caller frees afterwards.
func copyResult(results C.go_handle) (*Result, error) {
	stats := C.stair_stats{struct_size: C.sizeof_stair_stats}
	if err := failed(C.go_results_stats(results, &stats)); err != nil {
		return nil, err
	}
	result := &Result{
		Hits:      make([]Hit, C.go_results_count(results)),
		LegalMass: float64(stats.legal_mass),
		Stats: Stats{
			Decodes:        int(stats.decodes),
			QuestionTokens: int(stats.question_tokens),
			SearchTokens:   int(stats.search_tokens),
			PrefixTokens:   int(stats.prefix_tokens),
			RestoredTokens: int(stats.restored_tokens),
			Prefill:        milliseconds(stats.prefill_ms),
			Search:         milliseconds(stats.search_ms),
			Total:          milliseconds(stats.total_ms),
		},
	}
	for i := range result.Hits {
		if err := copyHit(results, C.size_t(i), &result.Hits[i]); err != nil {
			return nil, err
		}
	}
	return result, nil
}

func copyHit(results C.go_handle, i C.size_t, hit *Hit) error {
	h := C.stair_hit{struct_size: C.sizeof_stair_hit}
	if err := failed(C.go_results_get(results, i, &h)); err != nil {
		return err
	}
	*hit = Hit{
		Section: int(h.section),
		Number:  goText(h.number, h.number_len),
		Title:   goText(h.title, h.title_len),
		Path:    make([]string, h.path_len),
		Page:    page(h.page),
		Span:    Span{int(h.span_start), int(h.span_end)},
		Text:    goText(h.text, h.text_len),
		Score:   float64(h.score),
		LogProb: float64(h.log_prob),
		Lexical: float64(h.lexical),
	}
	for entry := range hit.Path {
		var text *C.char
		var n C.size_t
		if err := failed(C.go_results_path(results, i, C.size_t(entry), &text, &n)); err != nil {
			return err
		}
		hit.Path[entry] = goText(text, n)
	}
	return nil
}

func milliseconds(ms C.double) time.Duration {
	return time.Duration(float64(ms) * float64(time.Millisecond))
}
