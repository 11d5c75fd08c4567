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
// Without them they are skipped, and with STAIR_REQUIRE_MODEL=1 they fail.

// The index of the file is asked little, for it may be large and the machine slow; most tests take
// this book.
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

// must fails the test if there is an error.
func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// openModel opens the model, and closes it after the test.
func openModel(t *testing.T, options ...ModelOption) *Model {
	t.Helper()
	path, _ := files(t)
	model := must[*Model](t)(OpenModel(path, options...))
	t.Cleanup(func() { model.Close() })
	return model
}

// openIndex opens the index of the file, and closes it after the test.
func openIndex(t *testing.T) *Index {
	t.Helper()
	_, path := files(t)
	index := must[*Index](t)(OpenIndex(path))
	t.Cleanup(func() { index.Close() })
	return index
}

// buildBook makes the index of the book, and closes it after the test.
func buildBook(t *testing.T, model *Model) *Index {
	t.Helper()
	index := must[*Index](t)(BuildIndex(model, []byte(book)))
	t.Cleanup(func() { index.Close() })
	return index
}

// newRetriever makes a retriever for the book, and closes it after the test.
func newRetriever(t *testing.T, options ...RetrieverOption) *Retriever {
	t.Helper()
	model := openModel(t)
	retriever := must[*Retriever](t)(NewRetriever(model, buildBook(t, model), options...))
	t.Cleanup(func() { retriever.Close() })
	return retriever
}

func TestModelInfo(t *testing.T) {
	model, index := openFiles(t)
	m, err := model.Info()
	if err != nil {
		t.Fatal(err)
	}
	x, err := index.Info()
	if err != nil {
		t.Fatal(err)
	}
	if m.Architecture == "" || m.VocabSize == 0 || m.ContextLength == 0 || m.Parameters == 0 || m.Bytes == 0 {
		t.Errorf("%+v", m)
	}
	if m.VocabSize != x.VocabSize || m.Fingerprint != x.Fingerprint {
		t.Errorf("model %+v, index %+v", m, x)
	}
}

func TestIndexIsTheSameHoweverItIsOpened(t *testing.T) {
	_, index := openFiles(t)
	want, err := index.Info()
	if err != nil {
		t.Fatal(err)
	}
	if want.Sections < want.Leaves || want.Leaves < 1 || want.Title == "" {
		t.Errorf("%+v", want)
	}
	_, path := files(t)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	saved := filepath.Join(t.TempDir(), "saved.stair")
	for name, open := range map[string]func() (*Index, error){
		"copy": func() (*Index, error) { return OpenIndexCopy(path) },
		"buffer": func() (*Index, error) {
			data := bytes.Clone(data)
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
	_, index := openFiles(t)
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
		if s.ID != id || s.Title == "" || s.Span.Start > s.Span.End {
			t.Errorf("%+v", s)
		}
		if s.Parent != nil {
			parent, err := index.Section(*s.Parent)
			if err != nil || *s.Parent >= id || parent.Leaf || parent.Depth >= s.Depth {
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

func TestSaveWhereItCannot(t *testing.T) {
	_, index := openFiles(t)
	var e *Error
	for _, path := range []string{filepath.Join(t.TempDir(), "none", "x.stair"), ""} {
		if err := index.Save(path); !errors.As(err, &e) {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestBuildIndex(t *testing.T) {
	path, _ := files(t)
	model, err := OpenModel(path, WithVocabularyOnly())
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()

	index, err := BuildIndex(model, []byte(book))
	if err != nil {
		t.Fatal(err)
	}
	defer index.Close()
	info, err := index.Info()
	if err != nil || info.Title != "A small book" || info.Leaves != 2 || !info.HasText {
		t.Errorf("%+v, %v", info, err)
	}
	var found bool
	for id := range info.Sections {
		s, err := index.Section(id)
		if err != nil {
			t.Fatal(err)
		}
		if s.Number == "1.1" {
			found = true
			if s.Title != "Holidays" || !s.Leaf || !strings.Contains(s.Text, "thirty") ||
				!strings.Contains(book[s.Span.Start:s.Span.End], "thirty") {
				t.Errorf("%+v", s)
			}
		}
	}
	if !found {
		t.Error("there is no section 1.1")
	}

	other, err := BuildIndex(model, []byte(book), WithTitle("Änderung"), WithoutText(), WithFrontMatter())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if info, err := other.Info(); err != nil || info.Title != "Änderung" || info.HasText {
		t.Errorf("%+v, %v", info, err)
	}
	if s, err := other.Section(0); err != nil || s.Text != "" {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestDocumentsThatMakeNoIndex(t *testing.T) {
	path, _ := files(t)
	model, err := OpenModel(path, WithVocabularyOnly())
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()

	_, err = BuildIndex(model, nil)
	check(t, err, ErrNoHeadings)
	_, err = BuildIndex(model, []byte("no headings"))
	check(t, err, ErrNoHeadings)
	_, err = BuildIndex(model, []byte("# A\xff"))
	check(t, err, ErrInvalidUTF8)
	_, err = BuildIndex(model, []byte("{}"), WithFormat(FormatTOCJSON))
	check(t, err, ErrDocument)
	_, err = BuildIndex(model, []byte(book), WithFormat(99))
	check(t, err, ErrInvalidArgument)
}

func TestRetrieve(t *testing.T) {
	model, index := openFiles(t)
	retriever, err := NewRetriever(model, index)
	if err != nil {
		t.Fatal(err)
	}
	defer retriever.Close()
	for _, question := range questions {
		result, err := retriever.Retrieve(context.Background(), question)
		if err != nil {
			t.Fatal(err)
		}
		if len(result.Hits) != 3 || !(result.LegalMass > 0 && result.LegalMass <= 1) {
			t.Errorf("%+v", result)
		}
		if s := result.Stats; s.Decodes < 1 || s.QuestionTokens < 1 || s.Total <= 0 || s.Total > time.Hour {
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
			if end := hit.Path[len(hit.Path)-1]; end != strings.TrimSpace(hit.Number+" "+hit.Title) {
				t.Errorf("the path of %q is %q", hit.Title, hit.Path)
			}
			if len(hit.Path) != section.Depth+1 {
				t.Errorf("the path of %q at depth %d is %q", hit.Title, section.Depth, hit.Path)
			}
			if hit.LogProb > last {
				t.Errorf("log-probability %g after %g", hit.LogProb, last)
			}
			last = hit.LogProb
		}
	}
}

func TestRetrieveOptions(t *testing.T) {
	retriever := warmRetriever(t)
	ctx := context.Background()
	one, err := retriever.Retrieve(ctx, questions[0], WithK(1))
	if err != nil || len(one.Hits) != 1 {
		t.Fatal(one, err)
	}
	if one.Stats.PrefixTokens != 0 {
		t.Errorf("a warm retriever decoded %d tokens of the table of contents", one.Stats.PrefixTokens)
	}
	three, err := retriever.Retrieve(ctx, questions[0])
	if err != nil || three.Hits[0].Section != one.Hits[0].Section {
		t.Errorf("first of three %+v, only one %+v, %v", three, one, err)
	}
	local, err := retriever.Retrieve(ctx, questions[0], WithK(2), WithScoring(ScoringLocal))
	if err != nil || len(local.Hits) != 2 {
		t.Error(local, err)
	}
	_, err = retriever.Retrieve(ctx, questions[0], WithScoring(99))
	check(t, err, ErrInvalidArgument)
}

func TestKMustBeFromOneToTheLeaves(t *testing.T) {
	model, index := openFiles(t)
	info, err := index.Info()
	if err != nil {
		t.Fatal(err)
	}
	retriever, err := NewRetriever(model, index)
	if err != nil {
		t.Fatal(err)
	}
	defer retriever.Close()
	for _, k := range []int{0, -1, info.Leaves + 1, math.MaxInt} {
		_, err := retriever.Retrieve(context.Background(), questions[0], WithK(k))
		check(t, err, ErrInvalidK)
	}
}

func TestQuestionsThatAreNone(t *testing.T) {
	retriever := newRetriever(t)
	for question, code := range map[string]Code{
		"":       ErrEmptyQuestion,
		"a\x00b": ErrNulInQuestion,
		"\xff":   ErrInvalidUTF8,
		strings.Repeat("how long is too long? ", 10_000): ErrQuestionTooLong,
	} {
		_, err := retriever.Retrieve(context.Background(), question)
		check(t, err, code)
	}
}

func TestVocabularyAloneDoesNotAnswer(t *testing.T) {
	modelPath, indexPath := files(t)
	model, err := OpenModel(modelPath, WithVocabularyOnly())
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	index, err := OpenIndex(indexPath)
	if err != nil {
		t.Fatal(err)
	}
	defer index.Close()
	var e *Error
	if _, err := NewRetriever(model, index); !errors.As(err, &e) {
		t.Errorf("a retriever of a vocabulary: %v", err)
	}
}

func TestCancelledBefore(t *testing.T) {
	retriever := newRetriever(t)
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

// interrupt makes calls that end after shorter and shorter times until one ends with want. Any
// other error fails the test.
func interrupt(t *testing.T, want error, call func(after time.Duration) error) {
	t.Helper()
	for after := 64 * time.Millisecond; after > 0; after /= 2 {
		start := time.Now()
		err := call(after)
		late := time.Since(start) - after
		if errors.Is(err, want) {
			t.Logf("ended %v after it should", late)
			if late > 20*time.Second {
				t.Error("that is too long")
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Errorf("no call ended with: %v", want)
}

func TestCancelledDuring(t *testing.T) {
	for name, make := range map[string]func(*testing.T) *Retriever{"cold": newRetriever, "warm": warmRetriever} {
		t.Run(name, func(t *testing.T) {
			retriever := make(t)
			interrupt(t, context.Canceled, func(after time.Duration) error {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				time.AfterFunc(after, cancel)
				_, err := retriever.Retrieve(ctx, questions[0])
				return err
			})
			if _, err := retriever.Retrieve(context.Background(), questions[0]); err != nil {
				t.Errorf("the next call: %v", err)
			}
		})
	}
}

func TestDeadline(t *testing.T) {
	retriever := newRetriever(t)
	interrupt(t, context.DeadlineExceeded, func(after time.Duration) error {
		ctx, cancel := context.WithTimeout(context.Background(), after)
		defer cancel()
		_, err := retriever.Retrieve(ctx, questions[0])
		return err
	})
	if err := retriever.Warm(context.Background()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	if _, err := retriever.Retrieve(ctx, questions[0]); err != nil {
		t.Errorf("a deadline far away: %v", err)
	}
}

func TestWarmIsCancelled(t *testing.T) {
	// A retriever of its own for each try: it is cold once only.
	model, index := openFiles(t)
	interrupt(t, context.Canceled, func(after time.Duration) error {
		retriever, err := NewRetriever(model, index)
		if err != nil {
			return err
		}
		defer retriever.Close()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		time.AfterFunc(after/8, cancel)
		return retriever.Warm(ctx)
	})
}

// same says whether two answers name the same sections with the same probabilities, to the bit.
func same(a, b *Result) bool {
	return slices.EqualFunc(a.Hits, b.Hits, func(a, b Hit) bool {
		return a.Section == b.Section && a.LogProb == b.LogProb
	})
}

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
	retriever := newRetriever(t)
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
	retriever := newRetriever(t)
	want := ask(t, retriever)
	typical := want[0].Stats.Total

	var answered, cancelled atomic.Int32
	var callers sync.WaitGroup
	end := time.Now().Add(4 * time.Second)
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
				case err == nil && same(got, want[i]):
					answered.Add(1)
				case err == nil:
					t.Errorf("%s\ngot  %+v\nwant %+v", questions[i], got.Hits, want[i].Hits)
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
		if !same(got, want[i]) {
			t.Errorf("afterwards, %s\ngot  %+v\nwant %+v", questions[i], got.Hits, want[i].Hits)
		}
	}
}

func TestCloseWhileRetrieving(t *testing.T) {
	model, index := openFiles(t)
	for round := range 4 {
		retriever, err := NewRetriever(model, index)
		if err != nil {
			t.Fatal(err)
		}
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
	model, index := openFiles(t)
	retriever, err := NewRetriever(model, index)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := errors.Join(retriever.Close(), index.Close(), model.Close()); err != nil {
			t.Error(err)
		}
	}
	ctx := context.Background()
	_, err = retriever.Retrieve(ctx, questions[0])
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
	model, index := openFiles(t)
	retriever, err := NewRetriever(model, index)
	if err != nil {
		t.Fatal(err)
	}
	defer retriever.Close()
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
			default:
				runtime.GC()
			}
		}
	}()
	// The retriever is reachable by its own call only, and nothing is closed.
	modelPath, indexPath := files(t)
	for range 3 {
		model, err := OpenModel(modelPath)
		if err != nil {
			t.Fatal(err)
		}
		index, err := OpenIndex(indexPath)
		if err != nil {
			t.Fatal(err)
		}
		retriever, err := NewRetriever(model, index)
		if err != nil {
			t.Fatal(err)
		}
		question := string(bytes.Clone([]byte(questions[0])))
		if result, err := retriever.Retrieve(context.Background(), question); err != nil || len(result.Hits) != 3 {
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
		messages.Add(1)
		runtime.GC() // what C has lent must survive it
	})
	defer SetLogger(LogDebug, nil)
	model, err := OpenModel(path)
	if err != nil {
		t.Fatal(err)
	}
	model.Close()
	if messages.Load() == 0 {
		t.Error("not a word")
	}
}
