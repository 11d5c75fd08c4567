package stair_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"log/slog"
	"os"
	"time"

	stair "libstair/bindings/go"
)

func Example() {
	model, err := stair.OpenModel("handbook.gguf")
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()
	index, err := stair.OpenIndex("handbook.stair")
	if err != nil {
		log.Fatal(err)
	}
	defer index.Close()
	retriever, err := stair.NewRetriever(model, index)
	if err != nil {
		log.Fatal(err)
	}
	defer retriever.Close()

	result, err := retriever.Retrieve(context.Background(), "How long do I have to hand in a receipt?")
	if err != nil {
		log.Fatal(err)
	}
	for _, hit := range result.Hits {
		fmt.Println(hit.Number, hit.Title, hit.Score)
	}
}

// A deadline ends the call, and so would the end of an HTTP request whose context it is.
func ExampleRetriever_Retrieve_deadline() {
	answer := func(ctx context.Context, retriever *stair.Retriever, question string) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		result, err := retriever.Retrieve(ctx, question, stair.WithK(1))
		if errors.Is(err, context.DeadlineExceeded) {
			return "", fmt.Errorf("no answer to %q in time", question)
		}
		if err != nil {
			return "", err
		}
		return result.Hits[0].Text, nil
	}
	_ = answer
}

// An index is built once, for the vocabulary of a model, and saved.
func ExampleBuildIndex() {
	document, err := os.ReadFile("handbook.md")
	if err != nil {
		log.Fatal(err)
	}
	model, err := stair.OpenModel("handbook.gguf", stair.WithVocabularyOnly())
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()
	index, err := stair.BuildIndex(model, document, stair.WithTitle("Handbook"))
	if err != nil {
		log.Fatal(err)
	}
	defer index.Close()
	if err := index.Save("handbook.stair"); err != nil {
		log.Fatal(err)
	}
}

func ExampleError() {
	_, err := stair.OpenModel("no/such/model.gguf")
	var e *stair.Error
	fmt.Println(errors.As(err, &e), e.Code == stair.ErrNotFound, e.Name)
	fmt.Println(errors.Is(err, stair.ErrNotFound), errors.Is(err, fs.ErrNotExist))
	// Output:
	// true true NOT_FOUND
	// true true
}

func ExampleModel_Close() {
	var model stair.Model // never opened, as good as closed
	fmt.Println(model.Close(), model.Close())
	_, err := model.Info()
	fmt.Println(errors.Is(err, stair.ErrClosed))
	// Output:
	// <nil> <nil>
	// true
}

func ExampleSetLogger() {
	stair.SetLogger(stair.LogWarn, func(level stair.LogLevel, message string) {
		if level == stair.LogError {
			slog.Error(message)
		} else {
			slog.Warn(message)
		}
	})
	defer stair.SetLogger(stair.LogWarn, nil)
}
