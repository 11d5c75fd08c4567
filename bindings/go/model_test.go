package stair

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The tests of this file need a model and an index built for it:
//
//	STAIR_TEST_MODEL=….gguf STAIR_TEST_INDEX=….stair go test
//
// Without them they are skipped, and with STAIR_REQUIRE_MODEL=1 they fail. That index is asked
// little, for it may be large and the machine slow: most tests take this book.

const book = `# A small book

Words before the first section.

## 1 Time

### 1.1 Holidays

There are thirty.

### 1.2 Hours

There are eight.

## 2 Money

### 2.1 Salary

Comes on the last day of the month.

### 2.2 Expenses – Spesen

Hand in every receipt.
`

var questions = []string{
	"How long do I have to hand in a receipt?",
	"Wie viele Tage Urlaub habe ich? – ¿y después?",
}

// files gives the paths of the model and the index.
func files(t *testing.T) (model, index string) {
	t.Helper()
	model, index = os.Getenv("STAIR_TEST_MODEL"), os.Getenv("STAIR_TEST_INDEX")
	if model == "" || index == "" {
		const missing = "set STAIR_TEST_MODEL to a .gguf file and STAIR_TEST_INDEX to a .stair file made for it"
		if os.Getenv("STAIR_REQUIRE_MODEL") == "1" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	return model, index
}

// fileModel opens the model, and closes it after the test.
func fileModel(t *testing.T, options ...ModelOption) *Model {
	t.Helper()
	path, _ := files(t)
	model, err := OpenModel(path, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { model.Close() })
	return model
}

// fileIndex opens the index of the file, and closes it after the test.
func fileIndex(t *testing.T) *Index {
	t.Helper()
	_, path := files(t)
	index, err := OpenIndex(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { index.Close() })
	return index
}

// bookIndex makes the index of the book, and closes it after the test.
func bookIndex(t *testing.T, model *Model) *Index {
	t.Helper()
	index, err := BuildIndex(model, []byte(book))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { index.Close() })
	return index
}

// makeRetriever makes a retriever, and closes it after the test. It computes on one thread, unless
// the options say otherwise: several wait for each other at every step, which takes long on a busy
// machine.
func makeRetriever(t *testing.T, model *Model, index *Index, options ...RetrieverOption) *Retriever {
	t.Helper()
	retriever, err := NewRetriever(model, index, append([]RetrieverOption{WithThreads(1)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { retriever.Close() })
	return retriever
}

// bookRetriever makes a retriever for the book, and closes it after the test.
func bookRetriever(t *testing.T, options ...RetrieverOption) *Retriever {
	t.Helper()
	model := fileModel(t)
	return makeRetriever(t, model, bookIndex(t, model), options...)
}

func TestModelInfo(t *testing.T) {
	m, err := fileModel(t).Info()
	if err != nil {
		t.Fatal(err)
	}
	x, err := fileIndex(t).Info()
	if err != nil {
		t.Fatal(err)
	}
	if m.Architecture == "" || m.VocabSize == 0 || m.ContextLength == 0 || m.Parameters == 0 || m.Bytes == 0 {
		t.Errorf("%+v", m)
	}
	if m.VocabSize != x.VocabSize || m.Fingerprint != x.Fingerprint {
		t.Errorf("model %+v, index %+v", m, x)
	}
	v, err := fileModel(t, WithVocabularyOnly(), WithoutMmap(), WithGPULayers(-1), WithContextMemory(1<<30)).Info()
	if err != nil || v.VocabSize != m.VocabSize || v.Fingerprint != m.Fingerprint || v.Parameters != 0 {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestModelOptionsOutOfRange(t *testing.T) {
	path, _ := files(t)
	_, err := OpenModel(path, WithGPULayers(math.MinInt))
	check(t, err, ErrInvalidArgument)
}

func TestIndexIsTheSameHoweverItIsOpened(t *testing.T) {
	index := fileIndex(t)
	want, err := index.Info()
	if err != nil {
		t.Fatal(err)
	}
	if want.Sections < want.Leaves || want.Leaves < 1 || want.Title == "" {
		t.Errorf("%+v", want)
	}
	_, path := files(t)
	saved := filepath.Join(t.TempDir(), "saved.stair")
	for name, open := range map[string]func() (*Index, error){
		"copy": func() (*Index, error) { return OpenIndexCopy(path) },
		"buffer": func() (*Index, error) {
			data, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			defer clear(data) // the index is a copy
			return OpenIndexBuffer(data)
		},
		"saved": func() (*Index, error) {
			if err := index.Save(saved); err != nil {
				return nil, err
			}
			return OpenIndex(saved)
		},
	} {
		t.Run(name, func(t *testing.T) {
			other, err := open()
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			if got, err := other.Info(); err != nil || got != want {
				t.Errorf("got %+v, %v, want %+v", got, err, want)
			}
			for id := range want.Sections {
				a, err := index.Section(id)
				if err != nil {
					t.Fatal(err)
				}
				b, err := other.Section(id)
				if err != nil || !reflect.DeepEqual(a, b) {
					t.Errorf("got %+v, %v, want %+v", b, err, a)
				}
			}
		})
	}
	peeked, err := PeekIndex(path)
	want.Title = ""
	if err != nil || peeked != want {
		t.Errorf("peeked %+v, %v, want %+v", peeked, err, want)
	}
}

func TestSectionsOfAnIndex(t *testing.T) {
	index := fileIndex(t)
	info, err := index.Info()
	if err != nil {
		t.Fatal(err)
	}
	leaves := 0
	for id := range info.Sections {
		s, err := index.Section(id)
		if err != nil {
			t.Fatal(err)
		}
		if s.ID != id || s.Title == "" || s.Span.Start > s.Span.End || (s.Parent == nil) != (s.Depth == 0) {
			t.Errorf("%+v", s)
		}
		if s.Parent != nil {
			parent, err := index.Section(*s.Parent)
			if err != nil || *s.Parent >= id || parent.Leaf || parent.Depth != s.Depth-1 {
				t.Errorf("%+v is part of %+v, %v", s, parent, err)
			}
		}
		if s.Leaf {
			leaves++
		}
	}
	if leaves != info.Leaves {
		t.Errorf("%d leaves, and Info says %d", leaves, info.Leaves)
	}
	for _, id := range []int{-1, info.Sections, math.MaxInt} {
		_, err := index.Section(id)
		check(t, err, ErrInvalidArgument)
	}
}

func TestDamagedIndex(t *testing.T) {
	_, path := files(t)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = OpenIndexBuffer(data[:len(data)-1])
	check(t, err, ErrIndexCorrupt)
	data[len(data)/2] ^= 1
	_, err = OpenIndexBuffer(data)
	check(t, err, ErrIndexCorrupt)
}

func TestSaveWhereItCannot(t *testing.T) {
	index := fileIndex(t)
	check(t, index.Save(filepath.Join(t.TempDir(), "none", "x.stair")), ErrNotFound)
	check(t, index.Save(""), ErrInvalidArgument)
}

func TestBuildIndex(t *testing.T) {
	model := fileModel(t, WithVocabularyOnly())
	index := bookIndex(t, model)
	info, err := index.Info()
	if err != nil || info.Title != "A small book" || info.Leaves != 4 || !info.HasText {
		t.Errorf("%+v, %v", info, err)
	}
	var found []string
	for id := range info.Sections {
		s, err := index.Section(id)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, s.Number+" "+s.Title)
		if !strings.Contains(book[s.Span.Start:s.Span.End], s.Title) || !strings.Contains(book, s.Text) {
			t.Errorf("%+v", s)
		}
	}
	want := []string{"1 Time", "1.1 Holidays", "1.2 Hours", "2 Money", "2.1 Salary", "2.2 Expenses – Spesen"}
	if !slices.Equal(found, want) {
		t.Errorf("sections %q, want %q", found, want)
	}

	other, err := BuildIndex(model, []byte(book), WithTitle("Änderung"), WithoutText(), WithFrontMatter())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if info, err := other.Info(); err != nil || info.Title != "Änderung" || info.HasText {
		t.Errorf("%+v, %v", info, err)
	}
	if s, err := other.Section(1); err != nil || s.Text != "" {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestDocumentsThatMakeNoIndex(t *testing.T) {
	model := fileModel(t, WithVocabularyOnly())
	_, err := BuildIndex(model, nil)
	check(t, err, ErrNoHeadings)
	_, err = BuildIndex(model, []byte("no headings"))
	check(t, err, ErrNoHeadings)
	_, err = BuildIndex(model, []byte("# A\xff"))
	check(t, err, ErrInvalidUTF8)
	_, err = BuildIndex(model, []byte(book), WithTitle("\xff"))
	check(t, err, ErrInvalidUTF8)
	_, err = BuildIndex(model, []byte("{}"), WithFormat(FormatTOCJSON))
	check(t, err, ErrDocument)
	_, err = BuildIndex(model, []byte(book), WithFormat(99))
	check(t, err, ErrInvalidArgument)
}

func TestLexicalWeight(t *testing.T) {
	retriever := bookRetriever(t)
	ctx := context.Background()
	ask := func(options ...RetrieveOption) []Hit {
		result, err := retriever.Retrieve(ctx, "salaries each month", append(options, WithK(4))...)
		if err != nil {
			t.Fatal(err)
		}
		return result.Hits
	}
	for _, hit := range ask() {
		if hit.Score != hit.LogProb || !math.IsNaN(hit.Lexical) {
			t.Errorf("without a weight %+v", hit)
		}
	}
	last := math.Inf(1)
	for _, hit := range ask(WithLexicalWeight(0.5)) {
		if math.Abs(hit.Score-(hit.LogProb+0.5*hit.Lexical)) > 1e-5 || hit.Score > last ||
			(hit.Title == "Salary") != (hit.Lexical > 0) {
			t.Errorf("%+v after %v", hit, last)
		}
		last = hit.Score
	}
	for _, weight := range []float32{-1, float32(math.NaN()), float32(math.Inf(1))} {
		_, err := retriever.Retrieve(ctx, "why?", WithLexicalWeight(weight))
		check(t, err, ErrInvalidArgument)
	}
}

func TestKnownQuestions(t *testing.T) {
	model := fileModel(t, WithVocabularyOnly())
	known := []byte(`{"id": 1, "query": "Wann ist Zahltag?", "section": "2.1 Salary", "split": "train"}
{"id": 2, "query": "Zahltag?", "section": "1.2 Hours", "split": "test"}
`)
	index, err := BuildIndex(model, []byte(book), WithQuestions(known, "train"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { index.Close() })
	for _, test := range []struct {
		index *Index
		score bool
	}{{index, true}, {bookIndex(t, model), false}} {
		retriever, err := NewLexicalRetriever(test.index)
		if err != nil {
			t.Fatal(err)
		}
		defer retriever.Close()
		result, err := retriever.Retrieve(context.Background(), "Zahltag?")
		if err != nil {
			t.Fatal(err)
		}
		if best := result.Hits[0]; (best.Title == "Salary") != test.score || (best.Score > 0) != test.score {
			t.Errorf("%+v", best)
		}
	}
	for _, test := range []struct {
		questions, split string
		want             Code
	}{
		{"", "train", ErrQuestions},
		{"{", "train", ErrQuestions},
		{strings.Replace(string(known), "2.1 Salary", "2 Money", 1), "train", ErrQuestions},
		{string(known), "dev", ErrInvalidArgument},
		{string(known), "\xff", ErrInvalidUTF8},
	} {
		_, err := BuildIndex(model, []byte(book), WithQuestions([]byte(test.questions), test.split))
		check(t, err, test.want)
	}
}

func TestLexicalRetriever(t *testing.T) {
	retriever, err := NewLexicalRetriever(bookIndex(t, fileModel(t, WithVocabularyOnly())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { retriever.Close() })
	ctx := context.Background()
	if err := retriever.Warm(ctx); err != nil {
		t.Error(err)
	}
	result, err := retriever.Retrieve(ctx, "Spesen?")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, hit := range result.Hits {
		found = append(found, hit.Title)
		if hit.Score != hit.Lexical || !math.IsNaN(hit.LogProb) || (hit.Score > 0) != (len(found) == 1) {
			t.Errorf("%+v", hit)
		}
	}
	// Behind it, what has no word of the question, in document order.
	if want := []string{"Expenses – Spesen", "Holidays", "Hours"}; !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
	if !math.IsNaN(result.LegalMass) || result.Stats.Decodes != 0 {
		t.Errorf("%+v", result)
	}
	_, err = retriever.Retrieve(ctx, " ")
	check(t, err, ErrEmptyQuestion)
	_, err = retriever.Retrieve(ctx, "why?", WithK(5))
	check(t, err, ErrInvalidK)
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err = retriever.Retrieve(cancelled, "why?"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestRetrieve(t *testing.T) {
	index := fileIndex(t)
	retriever := makeRetriever(t, fileModel(t), index)
	result, err := retriever.Retrieve(context.Background(), questions[0])
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Hits) != 3 || !(result.LegalMass > 0 && result.LegalMass <= 1) {
		t.Errorf("%+v", result)
	}
	if s := result.Stats; s.Decodes < 1 || s.QuestionTokens < 1 || s.PrefixTokens < 1 ||
		s.Search <= 0 || s.Total < s.Search || s.Total > time.Hour {
		t.Errorf("%+v", s)
	}
	last := 0.0
	for _, hit := range result.Hits {
		section, err := index.Section(hit.Section)
		if err != nil {
			t.Fatal(err)
		}
		if !section.Leaf || hit.Number != section.Number || hit.Title != section.Title ||
			hit.Text != section.Text || hit.Span != section.Span ||
			!reflect.DeepEqual(hit.Page, section.Page) {
			t.Errorf("hit %+v, section %+v", hit, section)
		}
		var path []string
		for up := &section; up != nil; {
			path = append(path, strings.TrimSpace(up.Number+" "+up.Title))
			if up.Parent == nil {
				break
			}
			parent, err := index.Section(*up.Parent)
			if err != nil {
				t.Fatal(err)
			}
			up = &parent
		}
		slices.Reverse(path)
		if !slices.Equal(hit.Path, path) {
			t.Errorf("path %q, want %q", hit.Path, path)
		}
		if !(hit.LogProb <= last) {
			t.Errorf("log-probability %g after %g", hit.LogProb, last)
		}
		last = hit.LogProb
	}
}

func TestRetrieveOptions(t *testing.T) {
	retriever := bookRetriever(t)
	ctx := context.Background()
	if err := retriever.Warm(ctx); err != nil {
		t.Fatal(err)
	}
	one, err := retriever.Retrieve(ctx, questions[0], WithK(1))
	if err != nil || len(one.Hits) != 1 {
		t.Fatal(one, err)
	}
	if one.Stats.PrefixTokens != 0 {
		t.Errorf("a warm retriever decoded %d tokens of the table of contents", one.Stats.PrefixTokens)
	}
	all, err := retriever.Retrieve(ctx, questions[0], WithK(4))
	if err != nil || len(all.Hits) != 4 || all.Hits[0].Section != one.Hits[0].Section {
		t.Errorf("all %+v, the first %+v, %v", all, one, err)
	}
	local, err := retriever.Retrieve(ctx, questions[0], WithK(2), WithScoring(ScoringLocal))
	if err != nil || len(local.Hits) != 2 {
		t.Error(local, err)
	}
	for _, k := range []int{0, -1, 5, math.MaxInt} {
		_, err := retriever.Retrieve(ctx, questions[0], WithK(k))
		check(t, err, ErrInvalidK)
	}
	_, err = retriever.Retrieve(ctx, questions[0], WithScoring(99))
	check(t, err, ErrInvalidArgument)
}

func TestWarmFile(t *testing.T) {
	model := fileModel(t)
	index := bookIndex(t, model)
	folder := WithCacheDir(filepath.Join(t.TempDir(), "wärme"))
	var results []*Result
	for range 2 {
		retriever := makeRetriever(t, model, index, folder, WithDeterministic())
		result, err := retriever.Retrieve(context.Background(), questions[0])
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, result)
		retriever.Close()
	}
	cold, warm := results[0], results[1]
	if cold.Stats.RestoredTokens != 0 || warm.Stats.PrefixTokens != 0 ||
		warm.Stats.RestoredTokens != cold.Stats.PrefixTokens {
		t.Errorf("first %+v, then %+v", cold.Stats, warm.Stats)
	}
	for i := range cold.Hits {
		if cold.Hits[i].Section != warm.Hits[i].Section || cold.Hits[i].LogProb != warm.Hits[i].LogProb {
			t.Errorf("hit %d: %+v and %+v", i, cold.Hits[i], warm.Hits[i])
		}
	}
}

func TestRetrieverOptions(t *testing.T) {
	model := fileModel(t)
	index := bookIndex(t, model)
	for name, options := range map[string][]RetrieverOption{
		"few":   {WithThreads(2), WithMaxParallel(1), WithMaxWaiting(1), WithMaxQuestionTokens(64), WithDeterministic()},
		"other": {WithKVType(KVF32), WithContextTokens(8000)},
	} {
		t.Run(name, func(t *testing.T) {
			retriever := makeRetriever(t, model, index, options...)
			if result, err := retriever.Retrieve(context.Background(), questions[0]); err != nil || len(result.Hits) != 3 {
				t.Error(result, err)
			}
		})
	}
	_, err := NewRetriever(model, index, WithKVType(99))
	check(t, err, ErrInvalidArgument)
	_, err = NewRetriever(model, index, WithCacheDir("a\x00b"))
	check(t, err, ErrInvalidArgument)
	_, err = NewRetriever(model, index, WithMaxParallel(-1))
	check(t, err, ErrInvalidArgument)
	_, err = NewRetriever(model, index, WithContextTokens(1))
	check(t, err, ErrContextTooSmall)
}

func TestVocabularyAloneDoesNotAnswer(t *testing.T) {
	model := fileModel(t, WithVocabularyOnly())
	_, err := NewRetriever(model, bookIndex(t, model))
	check(t, err, ErrInvalidArgument)
}

func TestQuestionsThatAreNone(t *testing.T) {
	retriever := bookRetriever(t)
	for question, code := range map[string]Code{
		"":       ErrEmptyQuestion,
		" \n":    ErrEmptyQuestion,
		"a\x00b": ErrNulInQuestion,
		"\xff":   ErrInvalidUTF8,
		strings.Repeat("how long is too long? ", 200):     ErrQuestionTooLong,
		strings.Repeat("how long is too long? ", 200_000): ErrQuestionTooLong,
	} {
		_, err := retriever.Retrieve(context.Background(), question)
		check(t, err, code)
	}
}

func TestCancelledBefore(t *testing.T) {
	retriever := bookRetriever(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := retriever.Retrieve(ctx, questions[0]); err != context.Canceled {
		t.Errorf("got %v", err)
	}
	if err := retriever.Warm(ctx); err != context.Canceled {
		t.Errorf("got %v", err)
	}
	path, _ := files(t)
	if _, err := OpenModelContext(ctx, path); err != context.Canceled {
		t.Errorf("got %v", err)
	}
}

// interrupt makes calls that are to end after shorter and shorter times, until one ends with want.
// Any other error fails the test.
func interrupt(t *testing.T, want error, call func(after time.Duration) error) {
	t.Helper()
	for after := 64 * time.Millisecond; after > 0; after /= 4 {
		start := time.Now()
		err := call(after)
		if err == want {
			t.Logf("ended %v after it should", time.Since(start)-after)
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Errorf("no call ended with: %v", want)
}

func TestCancelledDuring(t *testing.T) {
	retriever := bookRetriever(t)
	for _, state := range []string{"cold", "warm"} {
		t.Run(state, func(t *testing.T) {
			interrupt(t, context.Canceled, func(after time.Duration) error {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				time.AfterFunc(after, cancel)
				_, err := retriever.Retrieve(ctx, questions[0])
				return err
			})
			// The next call is not disturbed, and leaves the retriever warm.
			if _, err := retriever.Retrieve(context.Background(), questions[0]); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDeadline(t *testing.T) {
	retriever := bookRetriever(t)
	interrupt(t, context.DeadlineExceeded, func(after time.Duration) error {
		ctx, cancel := context.WithTimeout(context.Background(), after)
		defer cancel()
		_, err := retriever.Retrieve(ctx, questions[0])
		return err
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	if _, err := retriever.Retrieve(ctx, questions[0]); err != nil {
		t.Errorf("a deadline far away: %v", err)
	}
}

func TestWarmIsCancelled(t *testing.T) {
	retriever := makeRetriever(t, fileModel(t), fileIndex(t))
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := retriever.Warm(ctx); err != context.DeadlineExceeded {
		t.Errorf("got %v", err)
	}
	t.Logf("ended after %v", time.Since(start))
	start = time.Now()
	retriever.Close()
	t.Logf("closed after %v", time.Since(start))
}

// same says whether two answers name the same sections with the same probabilities, to the bit.
func same(a, b *Result) bool {
	return slices.EqualFunc(a.Hits, b.Hits, func(a, b Hit) bool {
		return a.Section == b.Section && a.LogProb == b.LogProb
	})
}

// ask asks every question after the other.
func ask(t *testing.T, retriever *Retriever) []*Result {
	t.Helper()
	results := make([]*Result, len(questions))
	for i, question := range questions {
		var err error
		if results[i], err = retriever.Retrieve(context.Background(), question); err != nil {
			t.Fatal(err)
		}
	}
	return results
}

func TestConcurrentCallersGetTheSameAnswers(t *testing.T) {
	retriever := bookRetriever(t, WithDeterministic())
	want := ask(t, retriever)
	var callers sync.WaitGroup
	for range 8 {
		callers.Add(1)
		go func() {
			defer callers.Done()
			for i, question := range questions {
				got, err := retriever.Retrieve(context.Background(), question)
				if err != nil {
					t.Error(err)
				} else if !same(got, want[i]) {
					t.Errorf("%s\ngot  %+v\nwant %+v", question, got.Hits, want[i].Hits)
				}
			}
		}()
	}
	callers.Wait()
}

func TestRandomCancelsDisturbNobody(t *testing.T) {
	for name, options := range map[string][]RetrieverOption{
		"one at a time": {WithDeterministic()},
		"shared steps":  {WithMaxParallel(4)},
	} {
		t.Run(name, func(t *testing.T) { randomCancels(t, bookRetriever(t, options...)) })
	}
}

func randomCancels(t *testing.T, retriever *Retriever) {
	want := ask(t, retriever)
	typical := want[1].Stats.Total
	// Answers that share steps may differ in the last digits, and so need not be compared here.
	comparable := strings.HasSuffix(t.Name(), "one_at_a_time")

	var answered, cancelled atomic.Int32
	var callers sync.WaitGroup
	end := time.Now().Add(3 * time.Second)
	for caller := range 16 {
		callers.Add(1)
		go func() {
			defer callers.Done()
			random := rand.New(rand.NewPCG(1, uint64(caller)))
			for time.Now().Before(end) {
				i := random.IntN(len(questions))
				ctx, cancel := context.WithCancel(context.Background())
				if caller != 0 {
					time.AfterFunc(time.Duration(random.Int64N(int64(8*typical))), cancel)
				}
				got, err := retriever.Retrieve(ctx, questions[i])
				switch {
				case err == nil && comparable && !same(got, want[i]):
					t.Errorf("%s\ngot  %+v\nwant %+v", questions[i], got.Hits, want[i].Hits)
				case err == nil:
					answered.Add(1)
				case err == context.Canceled && ctx.Err() != nil:
					cancelled.Add(1)
				default:
					t.Error(err)
				}
				cancel()
			}
		}()
	}
	callers.Wait()
	t.Logf("%d answered, %d cancelled", answered.Load(), cancelled.Load())
	if answered.Load() == 0 || cancelled.Load() == 0 {
		t.Error("there must be some of each")
	}
	for i, got := range ask(t, retriever) {
		if comparable && !same(got, want[i]) {
			t.Errorf("afterwards, %s\ngot  %+v\nwant %+v", questions[i], got.Hits, want[i].Hits)
		}
	}
}

func TestCloseWhileRetrieving(t *testing.T) {
	model := fileModel(t)
	index := bookIndex(t, model)
	for round := range 4 {
		retriever := makeRetriever(t, model, index)
		var callers sync.WaitGroup
		for range 4 {
			callers.Add(1)
			go func() {
				defer callers.Done()
				for {
					result, err := retriever.Retrieve(context.Background(), questions[0])
					if errors.Is(err, ErrClosed) {
						return
					}
					if err != nil || len(result.Hits) != 3 {
						t.Error(result, err)
						return
					}
				}
			}()
		}
		time.Sleep(time.Duration(round) * 20 * time.Millisecond)
		start := time.Now()
		var closers sync.WaitGroup
		for range 2 {
			closers.Add(1)
			go func() {
				defer closers.Done()
				if err := retriever.Close(); err != nil {
					t.Error(err)
				}
			}()
		}
		closers.Wait()
		t.Logf("Close took %v", time.Since(start))
		callers.Wait()
	}
}

func TestUseAfterClose(t *testing.T) {
	model := fileModel(t)
	index := bookIndex(t, model)
	retriever := makeRetriever(t, model, index)
	for range 2 {
		if err := errors.Join(retriever.Close(), index.Close(), model.Close()); err != nil {
			t.Error(err)
		}
	}
	ctx := context.Background()
	_, err := retriever.Retrieve(ctx, questions[0])
	check(t, err, ErrClosed)
	check(t, retriever.Warm(ctx), ErrClosed)
	_, err = index.Info()
	check(t, err, ErrClosed)
	_, err = index.Section(0)
	check(t, err, ErrClosed)
	check(t, index.Save(filepath.Join(t.TempDir(), "x")), ErrClosed)
	_, err = model.Info()
	check(t, err, ErrClosed)
	_, err = NewRetriever(model, index)
	check(t, err, ErrClosed)
	_, err = BuildIndex(model, []byte(book))
	check(t, err, ErrClosed)
}

func TestRetrieverOutlivesModelAndIndex(t *testing.T) {
	model := fileModel(t)
	index := bookIndex(t, model)
	retriever := makeRetriever(t, model, index)
	model.Close()
	index.Close()
	result, err := retriever.Retrieve(context.Background(), questions[0])
	if err != nil || result.Hits[0].Title == "" {
		t.Error(result, err)
	}
}

func TestNothingIsCollectedTooEarly(t *testing.T) {
	stop := make(chan struct{})
	var collector sync.WaitGroup
	collector.Add(1)
	go func() {
		defer collector.Done()
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				runtime.GC()
			}
		}
	}()
	// Nothing is closed, and each value is last mentioned in a call that uses it.
	path, _ := files(t)
	for range 2 {
		model, err := OpenModel(path)
		if err != nil {
			t.Fatal(err)
		}
		index, err := BuildIndex(model, bytes.Clone([]byte(book)))
		if err != nil {
			t.Fatal(err)
		}
		retriever, err := NewRetriever(model, index, WithThreads(1))
		if err != nil {
			t.Fatal(err)
		}
		result, err := retriever.Retrieve(context.Background(), strings.Clone(questions[0]))
		if err != nil || len(result.Hits) != 3 {
			t.Error(result, err)
		}
	}
	close(stop)
	collector.Wait()
}

func TestLoggerHearsOfAModel(t *testing.T) {
	path, _ := files(t)
	var messages atomic.Int32
	SetLogger(LogDebug, func(level LogLevel, message string) {
		if level < LogError || level > LogDebug || message == "" {
			t.Errorf("level %d: %q", level, message)
		}
		if messages.Add(1)%50 == 1 {
			runtime.GC() // what C has lent must survive it
		}
	})
	defer SetLogger(LogDebug, nil)
	model, err := OpenModel(path, WithVocabularyOnly())
	if err != nil {
		t.Fatal(err)
	}
	model.Close()
	if messages.Load() == 0 {
		t.Error("not a word")
	}
}
