// Package stair answers, in the caller's own process, which section of a document answers a
// question. It is the Go binding of libstair.
//
//	model, _ := stair.OpenModel("handbook.gguf") // the errors are left out here
//	defer model.Close()
//	index, _ := stair.OpenIndex("handbook.stair")
//	defer index.Close()
//	retriever, _ := stair.NewRetriever(model, index)
//	defer retriever.Close()
//	result, _ := retriever.Retrieve(ctx, "How long do I have to hand in a receipt?")
//	for _, hit := range result.Hits {
//		fmt.Println(hit.Number, hit.Title, hit.Score)
//	}
//
// A [Model] and an [Index] are loaded once and shared by any number of retrievers. A [Retriever]
// holds the document's table of contents decoded, and answers any number of goroutines at the
// same time. A [Result] is plain Go data that outlives everything it came from.
//
// # Concurrency
//
// Every method of every type may be called from any number of goroutines at the same time, Close
// included.
//
// # Cancellation
//
// A call that takes a [context.Context] ends soon after the context does, whether by
// cancellation or by deadline, and then returns ctx.Err(). libstair looks for it between two
// steps of the model, so a call may go on for the length of one step. Other calls on the same
// retriever are not disturbed.
//
// # Closing
//
// Close may be called more than once. It lets calls in flight finish and does not wait for them:
// the last of them releases what was closed. Every later call returns an error that is [ErrClosed]. A
// retriever keeps what it needs of its model and index, so the three may be closed in any order.
// What is dropped without Close is released some time after the garbage collector finds it;
// models are large, so do not count on that.
//
// # Errors
//
// Errors of libstair are of type [*Error]; compare them with a [Code] by errors.Is:
//
//	if errors.Is(err, stair.ErrVocabularyMismatch) { ... }
//
// # Linking
//
// The package finds libstair by pkg-config (build tag stair_static: in its own folder lib; tag
// stair_env: by CGO_CFLAGS and CGO_LDFLAGS alone). The README says how.
package stair
