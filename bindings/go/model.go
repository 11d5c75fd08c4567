package stair

// #include "shim.h"
import "C"

import (
	"context"
	"math"
)

// A Model is a language model in memory. It is immutable and shared by any number of retrievers.
type Model struct {
	handle *handle
}

// A ModelInfo describes a model.
type ModelInfo struct {
	// Architecture is llama.cpp's name of the kind of model, as in "llama".
	Architecture string
	// VocabSize is the number of tokens in the vocabulary.
	VocabSize int
	// ContextLength is the number of tokens of the longest text the model was trained on.
	ContextLength int
	// Parameters is the number of weights, 0 for a vocabulary alone.
	Parameters uint64
	// Bytes is the size of the weights, 0 for a vocabulary alone.
	Bytes uint64
	// Fingerprint identifies the vocabulary; an index goes with it when its own is equal.
	Fingerprint uint64
}

// A ModelOption changes how [OpenModel] loads a model.
type ModelOption func(*modelOptions)

type modelOptions = C.stair_model_options

// WithGPULayers puts n layers of the model on the GPU; 0, the default, all of them when there is
// one; -1 none.
func WithGPULayers(n int) ModelOption {
	return func(o *modelOptions) {
		o.gpu_layers = C.int32_t(max(math.MinInt32, min(n, math.MaxInt32)))
	}
}

// WithoutMmap reads the weights into memory in place of mapping the file.
func WithoutMmap() ModelOption {
	return func(o *modelOptions) { o.disable_mmap = 1 }
}

// WithVocabularyOnly loads the vocabulary and no weights: enough to build an index, not to
// answer.
func WithVocabularyOnly() ModelOption {
	return func(o *modelOptions) { o.vocabulary_only = 1 }
}

// WithContextMemory says how many bytes the contexts of all retrievers with the model may take
// together. With less than they need, the one that was asked longest ago gives way to the one that is
// asked, and is made again at its next question: fast with [WithCacheDir], else at the price of
// decoding the table of contents again. Without it, and with 0, as much as they need.
func WithContextMemory(bytes uint64) ModelOption {
	return func(o *modelOptions) { o.context_memory = C.uint64_t(bytes) }
}

// OpenModel loads a GGUF model file.
func OpenModel(path string, options ...ModelOption) (*Model, error) {
	return OpenModelContext(context.Background(), path, options...)
}

// OpenModelContext is [OpenModel], given up when ctx is done.
func OpenModelContext(ctx context.Context, path string, options ...ModelOption) (*Model, error) {
	if errABI != nil {
		return nil, errABI
	}
	var o modelOptions
	C.stair_model_options_init(&o, C.sizeof_stair_model_options)
	for _, option := range options {
		option(&o)
	}
	text, n := cText(path)
	var native uintptr
	err := cancellable(ctx, func(token *C.stair_cancel) (err error) {
		native, err = made(C.go_model_open(text, n, &o, token))
		return err
	})
	if err != nil {
		return nil, err
	}
	h := &handle{kind: "model", native: native, free: func(native uintptr) {
		C.go_model_free(C.go_handle(native))
	}}
	return guard(&Model{h}, h), nil
}

// Info describes the model.
func (m *Model) Info() (ModelInfo, error) {
	native, err := m.acquire()
	if err != nil {
		return ModelInfo{}, err
	}
	defer m.handle.release()
	info := C.stair_model_info{struct_size: C.sizeof_stair_model_info}
	if err := failed(C.go_model_get_info(C.go_handle(native), &info)); err != nil {
		return ModelInfo{}, err
	}
	return ModelInfo{
		Architecture:  goText(info.architecture, info.architecture_len),
		VocabSize:     int(info.vocab_size),
		ContextLength: int(info.context_length),
		Parameters:    uint64(info.parameters),
		Bytes:         uint64(info.bytes),
		Fingerprint:   uint64(info.fingerprint),
	}, nil
}

// Close releases the model. Retrievers made of it are not disturbed. It always returns nil.
func (m *Model) Close() error {
	if m != nil {
		m.handle.close()
	}
	return nil
}

// acquire is for a model that may be nil.
func (m *Model) acquire() (uintptr, error) {
	if m == nil {
		return 0, nilError("model")
	}
	return m.handle.acquire()
}
