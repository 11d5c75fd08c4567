// Command ask prints the sections of a document that answer each question.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	stair "libstair/bindings/go"
)

const usage = "usage: ask MODEL.gguf INDEX.stair [--callers N] QUESTION..."

func main() {
	arguments, callers, ok := parse(os.Args[1:])
	if !ok {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	if err := run(arguments[0], arguments[1], arguments[2:], callers); err != nil {
		var failure *stair.Error
		if errors.As(err, &failure) {
			fmt.Fprintf(os.Stderr, "error: %s: %s\n", failure.Name, failure.Message)
		} else if err != errDiffer {
			fmt.Fprintf(os.Stderr, "error: %v\n", err)
		}
		os.Exit(1)
	}
}

// parse takes the option out of the arguments and checks that there are enough.
func parse(arguments []string) (_ []string, callers int, ok bool) {
	if len(arguments) > 2 && arguments[2] == "--callers" {
		if len(arguments) < 5 {
			return nil, 0, false
		}
		n, err := strconv.ParseUint(arguments[3], 10, 31)
		if err != nil || n == 0 {
			return nil, 0, false
		}
		callers, arguments = int(n), slices.Delete(arguments, 2, 4)
	}
	return arguments, callers, len(arguments) > 2
}

var errDiffer = errors.New("answers differ")

// run asks the questions one after the other, and then, if there are callers, all at once.
func run(modelPath, indexPath string, questions []string, callers int) error {
	model, err := stair.OpenModel(modelPath)
	if err != nil {
		return err
	}
	defer model.Close()
	index, err := stair.OpenIndex(indexPath)
	if err != nil {
		return err
	}
	defer index.Close()
	retriever, err := stair.NewRetriever(model, index, stair.WithDeterministic())
	if err != nil {
		return err
	}
	defer retriever.Close()

	answers := make([]*stair.Result, len(questions))
	for i, question := range questions {
		if answers[i], err = retriever.Retrieve(context.Background(), question); err != nil {
			return err
		}
		show(question, answers[i])
	}
	if callers == 0 {
		return nil
	}
	return compare(retriever, questions, answers, callers)
}

func show(question string, answer *stair.Result) {
	fmt.Println(question)
	for i, hit := range answer.Hits {
		identifier := strings.TrimPrefix(hit.Number+" "+hit.Title, " ")
		path := strings.Join(hit.Path, " > ")
		fmt.Printf("  %d. %s  (%s)  %.3f\n", i+1, identifier, path, hit.Score)
	}
	fmt.Println()
}

// compare asks every question from several goroutines at the same time.
func compare(retriever *stair.Retriever, questions []string, answers []*stair.Result, callers int) error {
	// The first error cancels what the others are doing.
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	differing := make([]int, callers)
	var all sync.WaitGroup
	for caller := range callers {
		all.Add(1)
		go func() {
			defer all.Done()
			for i, question := range questions {
				answer, err := retriever.Retrieve(ctx, question)
				if err != nil {
					cancel(err)
					return
				}
				if !slices.EqualFunc(answer.Hits, answers[i].Hits, same) {
					differing[caller]++
				}
			}
		}()
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}

	differ := 0
	for _, n := range differing {
		differ += n
	}
	if differ > 0 {
		fmt.Printf("%d callers, %d answers each: %d differ\n", callers, len(questions), differ)
		return errDiffer
	}
	fmt.Printf("%d callers, %d answers each: all the same\n", callers, len(questions))
	return nil
}

// same compares to the last bit.
func same(a, b stair.Hit) bool {
	return a.Section == b.Section && a.LogProb == b.LogProb
}
