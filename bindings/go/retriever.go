package stair

// #include "shim.h"
import "C"

import "context"

// A Retriever answers questions about one document by one model. Questions that come at the same
// time share the model's steps.
type Retriever struct {
	handle *handle
}

// A KVType is the number format of the model's keys and values, which hold the table of contents.
type KVType uint32

// The number formats, from the default.
const (
	KVF16 KVType = C.STAIR_KV_F16
	KVQ8  KVType = C.STAIR_KV_Q8_0
	KVF32 KVType = C.STAIR_KV_F32
)

// A RetrieverOption changes what [NewRetriever] makes.
type RetrieverOption func(*retrieverOptions)

type retrieverOptions struct {
	native   C.stair_retriever_options
	cacheDir string
}

// WithThreads says how many threads compute. Without it, as many as the process may use.
func WithThreads(n int) RetrieverOption {
	return func(o *retrieverOptions) { o.native.threads = count(n) }
}

// WithContextTokens says how many tokens the table of contents, the questions in flight and their
// searches may take together. Without it, as many as they need.
func WithContextTokens(n int) RetrieverOption {
	return func(o *retrieverOptions) { o.native.context_tokens = count(n) }
}

// WithMaxQuestionTokens says how long a question may be. Without it, 512 tokens.
func WithMaxQuestionTokens(n int) RetrieverOption {
	return func(o *retrieverOptions) { o.native.max_question_tokens = count(n) }
}

// WithMaxParallel says how many questions may share the model's steps; more of them wait. Without
// it, 8.
func WithMaxParallel(n int) RetrieverOption {
	return func(o *retrieverOptions) { o.native.max_parallel = count(n) }
}

// WithMaxWaiting says how many questions may wait for their turn; who comes when so many do gets
// [ErrBusy] at once. Without it, 4096.
func WithMaxWaiting(n int) RetrieverOption {
	return func(o *retrieverOptions) { o.native.max_waiting = count(n) }
}

// WithKVType says the number format of keys and values. Without it, [KVF16]. [KVQ8] takes half the
// memory and changes the scores a little.
func WithKVType(kv KVType) RetrieverOption {
	return func(o *retrieverOptions) { o.native.kv_type = C.uint32_t(kv) }
}

// WithDeterministic takes one question at a time, so that its answer is the same to the last bit
// whatever else is asked. Otherwise the last digits may differ with what shares a step.
func WithDeterministic() RetrieverOption {
	return func(o *retrieverOptions) { o.native.deterministic = 1 }
}

// WithCacheDir names a folder for the warm file: what the model remembers of the table of contents,
// written after the first answer and read by every later retriever with the same model, index and
// options, which then need not decode it. A file or a folder that cannot be used is as none, and the
// log says why. Whoever may write to the folder can change what is answered. Without it, no file.
func WithCacheDir(folder string) RetrieverOption {
	return func(o *retrieverOptions) { o.cacheDir = folder }
}

// NewRetriever makes a retriever. The index must have been built for the model's vocabulary. The
// table of contents is decoded, or read from the warm file, for the first question, or before by
// [Retriever.Warm].
func NewRetriever(model *Model, index *Index, options ...RetrieverOption) (*Retriever, error) {
	m, err := model.acquire()
	if err != nil {
		return nil, err
	}
	defer model.handle.release()
	var o retrieverOptions
	C.stair_retriever_options_init(&o.native, C.sizeof_stair_retriever_options)
	for _, option := range options {
		option(&o)
	}
	// Apart from the folder: cgo passes no pointer into what holds a Go pointer.
	native := o.native
	return newRetriever(C.go_handle(m), index, &native, o.cacheDir)
}

// NewLexicalRetriever makes a retriever that needs no model: it ranks sections by the words that
// they and their known questions have in common with the question. It finds as many sections as it is asked for; those
// that share no word with the question score 0 and stand in document order. The sections' words are
// read for the first question, or before by [Retriever.Warm].
func NewLexicalRetriever(index *Index) (*Retriever, error) {
	return newRetriever(0, index, nil, "")
}

func newRetriever(model C.go_handle, index *Index, options *C.stair_retriever_options, cacheDir string) (*Retriever, error) {
	x, err := index.acquire()
	if err != nil {
		return nil, err
	}
	defer index.handle.release()
	folder, n := cText(cacheDir)
	native, err := made(C.go_retriever_new(model, C.go_handle(x), options, folder, n))
	if err != nil {
		return nil, err
	}
	h := &handle{kind: "retriever", native: native, free: func(native uintptr) {
		C.go_retriever_free(C.go_handle(native))
	}}
	return guard(&Retriever{h}, h), nil
}

// Warm decodes the table of contents if it is not yet, so that the first question is answered as
// fast as any other.
func (r *Retriever) Warm(ctx context.Context) error {
	native, err := r.acquire()
	if err != nil {
		return err
	}
	defer r.handle.releaseFor(ctx)
	return cancellable(ctx, func(token *C.stair_cancel) error {
		return failed(C.go_retriever_warm(C.go_handle(native), token))
	})
}

// A Scoring says how a title's tokens are weighed.
type Scoring uint32

// The ways of scoring.
const (
	// ScoringExact takes each token's probability among all tokens: the model's own ranking.
	ScoringExact Scoring = C.STAIR_SCORING_EXACT
	// ScoringLocal takes it among the tokens that go on a title: cheaper, and ranks worse.
	ScoringLocal Scoring = C.STAIR_SCORING_LOCAL
)

// A RetrieveOption changes how [Retriever.Retrieve] answers one question.
type RetrieveOption func(*retrieveOptions)

type retrieveOptions = C.stair_retrieve_options

// WithK asks for the k best sections, from 1 to the number of leaves. Without it, they are
// 3, or the number of leaves if that is less.
func WithK(k int) RetrieveOption {
	return func(o *retrieveOptions) { o.k = count(k) }
}

// WithScoring says how titles are scored. Without it, by [ScoringExact].
func WithScoring(scoring Scoring) RetrieveOption {
	return func(o *retrieveOptions) { o.scoring = C.uint32_t(scoring) }
}

// WithLexicalWeight makes a section's words count beside what the model says: a hit is ranked by
// LogProb and weight times Lexical. 0, the default, leaves the words out; other weights must be
// finite and above 0. Without a model only the words count, whatever it is.
func WithLexicalWeight(weight float32) RetrieveOption {
	return func(o *retrieveOptions) { o.lexical_weight = C.float(weight) }
}

// Retrieve finds the sections that answer a question, the best first. It blocks; when ctx is done
// before the answer is there, it soon returns ctx.Err().
func (r *Retriever) Retrieve(ctx context.Context, question string, options ...RetrieveOption) (*Result, error) {
	native, err := r.acquire()
	if err != nil {
		return nil, err
	}
	defer r.handle.releaseFor(ctx)

	var o *retrieveOptions // nil: libstair's defaults fit any index
	if len(options) > 0 {
		o = new(retrieveOptions)
		C.stair_retrieve_options_init(o, C.sizeof_stair_retrieve_options)
		for _, option := range options {
			option(o)
		}
	}
	text, n := cText(question)
	var results uintptr
	err = cancellable(ctx, func(token *C.stair_cancel) (err error) {
		results, err = made(C.go_retrieve(C.go_handle(native), text, n, o, token))
		return err
	})
	if err != nil {
		return nil, err
	}
	defer C.go_results_free(C.go_handle(results))
	return copyResult(C.go_handle(results))
}

// Close releases the retriever. Questions in flight are still answered. If there are none, it waits
// for the end of the model's current step, and of writing a warm file. It always returns nil.
func (r *Retriever) Close() error {
	if r != nil {
		r.handle.close()
	}
	return nil
}

// acquire is for a retriever that may be nil.
func (r *Retriever) acquire() (uintptr, error) {
	if r == nil {
		return 0, nilError("retriever")
	}
	return r.handle.acquire()
}
