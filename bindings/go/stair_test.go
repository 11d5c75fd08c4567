package stair

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The tests of this file need no model.

var allCodes = []Code{
	ErrInvalidArgument, ErrNullPointer, ErrInvalidUTF8, ErrNulInQuestion, ErrEmptyQuestion,
	ErrQuestionTooLong, ErrInvalidK, ErrStructSize, ErrInvalidHandle,
	ErrIO, ErrNotFound, ErrPermissionDenied, ErrNotAFile,
	ErrDocument, ErrNoHeadings, ErrTemplate, ErrTokenizer, ErrUnstableBoundary, ErrTooLarge,
	ErrNotAnIndex, ErrIndexVersion, ErrIndexCorrupt, ErrQuestions,
	ErrNotAModel, ErrModelCorrupt, ErrModelArchitecture, ErrModelVocabulary, ErrModelLoad,
	ErrVocabularyMismatch, ErrBackend, ErrAdapter,
	ErrContextTooSmall, ErrCancelled, ErrTimeout, ErrOutOfMemory, ErrDecode, ErrClosed,
	ErrBusy,
	ErrInternal, ErrPanic,
}

func TestVersionIsThatOfTheLibrary(t *testing.T) {
	if Version() == "" || BuildInfo() == "" {
		t.Errorf("Version() = %q, BuildInfo() = %q", Version(), BuildInfo())
	}
	if errABI != nil {
		t.Error(errABI)
	}
}

func TestAnotherABIIsAnError(t *testing.T) {
	err := checkABI(7, 1)
	if err == nil || !strings.Contains(err.Error(), "7") || !strings.Contains(err.Error(), "1") {
		t.Errorf("checkABI(7, 1) = %v", err)
	}
}

func TestAnotherABIIsReportedByTheFirstCall(t *testing.T) {
	before := errABI
	defer func() { errABI = before }()
	errABI = checkABI(7, 1)

	_, model := OpenModel("m")
	_, index := OpenIndex("i")
	_, buffer := OpenIndexBuffer(nil)
	_, peek := PeekIndex("i")
	for _, err := range []error{model, index, buffer, peek} {
		if err != errABI {
			t.Errorf("got %v", err)
		}
	}
	SetLogger(LogDebug, func(LogLevel, string) {})
	if logger.Load() != nil {
		t.Error("the logger was set all the same")
	}
}

func TestCodesHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]Code{}
	for _, code := range allCodes {
		name := code.Name()
		if other, ok := seen[name]; ok || name == "UNKNOWN" || name == "OK" {
			t.Errorf("%d is called %s, as is %d", code, name, other)
		}
		seen[name] = code
	}
	if name := Code(12345).Name(); name != "UNKNOWN" {
		t.Errorf("12345 is called %s", name)
	}
}

func TestErrorIsItsCode(t *testing.T) {
	err := error(&Error{Code: ErrInvalidK, Name: "INVALID_K", Message: "k is 0"})
	if !errors.Is(err, ErrInvalidK) || errors.Is(err, ErrIO) || errors.Is(err, fs.ErrNotExist) {
		t.Error("errors.Is is wrong about ErrInvalidK")
	}
	if got := err.Error(); got != "stair: INVALID_K: k is 0" {
		t.Errorf("Error() = %q", got)
	}
	if got := ErrInvalidK.Error(); got != "stair: INVALID_K" {
		t.Errorf("Error() of the code = %q", got)
	}
	for code, target := range map[Code]error{
		ErrNotFound:         fs.ErrNotExist,
		ErrPermissionDenied: fs.ErrPermission,
		ErrClosed:           fs.ErrClosed,
	} {
		if !errors.Is(&Error{Code: code}, target) {
			t.Errorf("%v is not %v", code, target)
		}
	}
}

// check fails the test unless err is an *Error of the code, and says something.
func check(t *testing.T, err error, code Code) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Errorf("got %v, want %v", err, code)
	} else if !errors.Is(err, code) || e.Name != code.Name() || e.Message == "" {
		t.Errorf("got %#v, want %v", e, code)
	}
}

func TestFilesThatAreNoModel(t *testing.T) {
	folder := t.TempDir()
	_, err := OpenModel(filepath.Join(folder, "none.gguf"))
	check(t, err, ErrNotFound)
	_, err = OpenModel(folder)
	check(t, err, ErrNotAFile)
	_, err = OpenModel(write(t, "this is not a model"))
	check(t, err, ErrNotAModel)
	_, err = OpenModel(write(t, ""))
	var e *Error
	if !errors.As(err, &e) {
		t.Errorf("an empty file: %v", err)
	}
	if _, err = OpenModel(""); !errors.As(err, &e) {
		t.Errorf("an empty path: %v", err)
	}
	if _, err = OpenModel("a\x00b"); !errors.As(err, &e) {
		t.Errorf("a path with NUL: %v", err)
	}
	if _, err = OpenModel("\xff\xfe"); !errors.As(err, &e) {
		t.Errorf("a path that is not UTF-8: %v", err)
	}
}

func TestFilesThatAreNoIndex(t *testing.T) {
	folder := t.TempDir()
	for name, open := range map[string]func(string) (*Index, error){
		"OpenIndex":     OpenIndex,
		"OpenIndexCopy": OpenIndexCopy,
		"PeekIndex": func(path string) (*Index, error) {
			_, err := PeekIndex(path)
			return nil, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := open(filepath.Join(folder, "none.stair"))
			check(t, err, ErrNotFound)
			_, err = open(folder)
			check(t, err, ErrNotAFile)
			_, err = open(write(t, "this is not an index"))
			check(t, err, ErrNotAnIndex)
			var e *Error
			if _, err = open(write(t, "")); !errors.As(err, &e) {
				t.Errorf("an empty file: %v", err)
			}
			if _, err = open(""); !errors.As(err, &e) {
				t.Errorf("an empty path: %v", err)
			}
		})
	}
}

func TestBuffersThatAreNoIndex(t *testing.T) {
	var e *Error
	for _, data := range [][]byte{nil, {}, {0}, []byte("this is not an index")} {
		if _, err := OpenIndexBuffer(data); !errors.As(err, &e) || errors.Is(err, ErrNullPointer) {
			t.Errorf("%q: %v", data, err)
		}
	}
}

func TestOpenModelLooksAtItsContextFirst(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := OpenModelContext(ctx, "none.gguf"); err != context.Canceled {
		t.Errorf("got %v", err)
	}
}

func TestNilModelAndIndex(t *testing.T) {
	_, err := NewRetriever(nil, nil)
	check(t, err, ErrNullPointer)
	_, err = NewLexicalRetriever(nil)
	check(t, err, ErrNullPointer)
	_, err = BuildIndex(nil, []byte("# A"))
	check(t, err, ErrNullPointer)
}

// refuses checks that every operation fails with the error that such values have.
func refuses(t *testing.T, model *Model, index *Index, retriever *Retriever, want Code) {
	t.Helper()
	ctx := context.Background()
	_, err := model.Info()
	check(t, err, want)
	_, err = index.Info()
	check(t, err, want)
	_, err = index.Section(0)
	check(t, err, want)
	check(t, index.Save("x"), want)
	check(t, retriever.Warm(ctx), want)
	_, err = retriever.Retrieve(ctx, "a question")
	check(t, err, want)
}

func TestMethodsOfNil(t *testing.T) {
	var model *Model
	var index *Index
	var retriever *Retriever

	refuses(t, model, index, retriever, ErrNullPointer)
	if model.Close() != nil || index.Close() != nil || retriever.Close() != nil {
		t.Error("Close fails")
	}
}

func TestZeroValuesAreClosed(t *testing.T) {
	var model Model
	var index Index
	var retriever Retriever

	refuses(t, &model, &index, &retriever, ErrClosed)
	_, err := NewRetriever(&model, &index)
	check(t, err, ErrClosed)
	_, err = BuildIndex(&model, nil)
	check(t, err, ErrClosed)
	for range 2 {
		if model.Close() != nil || index.Close() != nil || retriever.Close() != nil {
			t.Error("Close fails")
		}
	}
}

func TestHandleIsFreedOnceByItsLastUser(t *testing.T) {
	var freed atomic.Int32
	h := &handle{kind: "thing", native: 42, free: func(native uintptr) {
		if native != 42 {
			t.Errorf("freed %d", native)
		}
		freed.Add(1)
	}}
	for range 2 {
		if native, err := h.acquire(); native != 42 || err != nil {
			t.Fatal(native, err)
		}
	}
	h.close()
	h.close()
	_, err := h.acquire()
	check(t, err, ErrClosed)
	h.release()
	if freed.Load() != 0 {
		t.Error("freed while in use")
	}
	h.release()
	h.close()
	if freed.Load() != 1 {
		t.Errorf("freed %d times", freed.Load())
	}
}

func TestCallThatIsDoneDoesNotWaitForTheEnd(t *testing.T) {
	freeing, end := make(chan struct{}), make(chan struct{})
	h := &handle{kind: "thing", free: func(uintptr) {
		close(freeing)
		<-end
	}}
	if _, err := h.acquire(); err != nil {
		t.Fatal(err)
	}
	h.close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	// It returns although freeing does not.
	h.releaseFor(ctx)
	<-freeing
	close(end)
}

func TestHandleUnderConcurrentUseAndClose(t *testing.T) {
	for range 200 {
		var alive atomic.Bool
		var freed atomic.Int32
		alive.Store(true)
		h := &handle{kind: "thing", free: func(uintptr) {
			alive.Store(false)
			freed.Add(1)
		}}
		var all sync.WaitGroup
		for i := range 8 {
			all.Add(1)
			go func() {
				defer all.Done()
				if i >= 6 {
					h.close()
					return
				}
				for {
					if _, err := h.acquire(); err != nil {
						return
					}
					if !alive.Load() {
						t.Error("used after it was freed")
					}
					h.release()
				}
			}()
		}
		all.Wait()
		if freed.Load() != 1 {
			t.Fatalf("freed %d times", freed.Load())
		}
	}
}

func TestCollectedOwnerClosesItsHandle(t *testing.T) {
	freed := make(chan struct{})
	h := &handle{kind: "thing", free: func(uintptr) { close(freed) }}
	owner := guard(&Model{h}, h)
	runtime.KeepAlive(owner)
	for range 100 {
		runtime.GC()
		select {
		case <-freed:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Error("the handle was not closed")
}

func TestEmptyTextsAreNotNull(t *testing.T) {
	if p, n := cText(""); p == nil || n != 0 {
		t.Error(p, n)
	}
	if p, n := cBytes(nil); p == nil || n != 0 {
		t.Error(p, n)
	}
	if s := goText(nil, 0); s != "" {
		t.Error(s)
	}
}

func TestCountsThatDoNotFitAreTheLargest(t *testing.T) {
	for n, want := range map[int]uint32{0: 0, 5: 5, -1: 1<<32 - 1, 1<<32 - 1: 1<<32 - 1, 1 << 32: 1<<32 - 1} {
		if got := uint32(count(n)); got != want {
			t.Errorf("count(%d) = %d", n, got)
		}
	}
}

func TestLoggerMayBeSetAndTakenOffAtAnyTime(t *testing.T) {
	defer SetLogger(LogDebug, nil)
	var all sync.WaitGroup
	for i := range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 100 {
				SetLogger(LogDebug, func(LogLevel, string) {})
				OpenModel("none.gguf")
				if i%2 == 0 {
					SetLogger(LogDebug, nil)
				}
			}
		}()
	}
	all.Wait()
}

// write makes a file of its own for the test.
func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
