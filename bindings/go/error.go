package stair

// #include "shim.h"
import "C"

import "io/fs"

// An Error is what libstair says of a call that failed.
type Error struct {
	// Code is the kind of error. It is the same number in every language.
	Code Code
	// Name is the code's name, as in "VOCABULARY_MISMATCH".
	Name string
	// Message says the cause and the remedy in English.
	Message string
}

// Error returns the name and the message.
func (e *Error) Error() string {
	return "stair: " + e.Name + ": " + e.Message
}

// Is reports whether target is the error's [Code], or the error of package io/fs that means the
// same.
func (e *Error) Is(target error) bool {
	switch target {
	case e.Code:
		return true
	case fs.ErrNotExist:
		return e.Code == ErrNotFound
	case fs.ErrPermission:
		return e.Code == ErrPermissionDenied
	case fs.ErrClosed:
		return e.Code == ErrClosed
	}
	return false
}

// A Code is the kind of an error. Each Err constant is one; use them with errors.Is.
type Code int32

// Error returns the code's name, so that a Code can be the target of errors.Is.
func (c Code) Error() string {
	return "stair: " + c.Name()
}

// Name returns the code's name in libstair, as in "INVALID_K", and "UNKNOWN" for a code that the
// library does not know.
func (c Code) Name() string {
	return C.GoString(C.stair_status_name(C.stair_status(c)))
}

// The codes. 1xx: an argument; 2xx: files; 3xx: document or index; 4xx: model; 5xx: while
// answering; 9xx: internal.
const (
	// ErrInvalidArgument: an argument is outside its documented range.
	ErrInvalidArgument Code = C.STAIR_ERR_INVALID_ARGUMENT
	// ErrNullPointer: a model, index or retriever that is needed is nil.
	ErrNullPointer Code = C.STAIR_ERR_NULL_POINTER
	// ErrInvalidUTF8: a text is not UTF-8.
	ErrInvalidUTF8 Code = C.STAIR_ERR_INVALID_UTF8
	// ErrNulInQuestion: a question contains a NUL character.
	ErrNulInQuestion Code = C.STAIR_ERR_NUL_IN_QUESTION
	// ErrEmptyQuestion: a question has no visible character.
	ErrEmptyQuestion Code = C.STAIR_ERR_EMPTY_QUESTION
	// ErrQuestionTooLong: a question has more tokens than the room kept for it.
	ErrQuestionTooLong Code = C.STAIR_ERR_QUESTION_TOO_LONG
	// ErrInvalidK: the number of hits asked for is below 1 or above the number of leaves.
	ErrInvalidK Code = C.STAIR_ERR_INVALID_K
	// ErrStructSize: this package and libstair disagree about a struct. Please report it.
	ErrStructSize Code = C.STAIR_ERR_STRUCT_SIZE
	// ErrInvalidHandle: this package gave libstair a handle that is none. Please report it.
	ErrInvalidHandle Code = C.STAIR_ERR_INVALID_HANDLE

	// ErrIO: a file could not be read or written.
	ErrIO Code = C.STAIR_ERR_IO
	// ErrNotFound: a file does not exist. It is also fs.ErrNotExist.
	ErrNotFound Code = C.STAIR_ERR_NOT_FOUND
	// ErrPermissionDenied: the file system refused access. It is also fs.ErrPermission.
	ErrPermissionDenied Code = C.STAIR_ERR_PERMISSION_DENIED
	// ErrNotAFile: a path names something that is not a regular file.
	ErrNotAFile Code = C.STAIR_ERR_NOT_A_FILE

	// ErrDocument: a document cannot be read as its format.
	ErrDocument Code = C.STAIR_ERR_DOCUMENT
	// ErrNoHeadings: a document has no headings, so there is nothing to retrieve.
	ErrNoHeadings Code = C.STAIR_ERR_NO_HEADINGS
	// ErrTemplate: a prompt template is not usable.
	ErrTemplate Code = C.STAIR_ERR_TEMPLATE
	// ErrTokenizer: a tokenizer.json is not usable.
	ErrTokenizer Code = C.STAIR_ERR_TOKENIZER
	// ErrUnstableBoundary: a title's tokens depend on what stands before it.
	ErrUnstableBoundary Code = C.STAIR_ERR_UNSTABLE_BOUNDARY
	// ErrTooLarge: a document is beyond a limit of the index format.
	ErrTooLarge Code = C.STAIR_ERR_TOO_LARGE
	// ErrNotAnIndex: a file is not a .stair index.
	ErrNotAnIndex Code = C.STAIR_ERR_NOT_AN_INDEX
	// ErrIndexVersion: an index has a version of the format that this library does not read.
	ErrIndexVersion Code = C.STAIR_ERR_INDEX_VERSION
	// ErrIndexCorrupt: an index is truncated or damaged.
	ErrIndexCorrupt Code = C.STAIR_ERR_INDEX_CORRUPT
	// ErrQuestions: a file of questions is not usable.
	ErrQuestions Code = C.STAIR_ERR_QUESTIONS

	// ErrNotAModel: a file is not a GGUF model.
	ErrNotAModel Code = C.STAIR_ERR_NOT_A_MODEL
	// ErrModelCorrupt: a model file is truncated or damaged.
	ErrModelCorrupt Code = C.STAIR_ERR_MODEL_CORRUPT
	// ErrModelArchitecture: this libstair does not know the model's architecture, or the model
	// does not generate text.
	ErrModelArchitecture Code = C.STAIR_ERR_MODEL_ARCHITECTURE
	// ErrModelVocabulary: a model file has no usable vocabulary.
	ErrModelVocabulary Code = C.STAIR_ERR_MODEL_VOCABULARY
	// ErrModelLoad: llama.cpp refused a model for a reason of its own.
	ErrModelLoad Code = C.STAIR_ERR_MODEL_LOAD
	// ErrVocabularyMismatch: an index was built for another vocabulary.
	ErrVocabularyMismatch Code = C.STAIR_ERR_VOCABULARY_MISMATCH
	// ErrBackend: no compute backend could be loaded.
	ErrBackend Code = C.STAIR_ERR_BACKEND
	// ErrAdapter: an adapter is not one, is damaged, or does not belong to the model.
	ErrAdapter Code = C.STAIR_ERR_ADAPTER

	// ErrContextTooSmall: the context is too small for the table of contents, a question and the
	// search.
	ErrContextTooSmall Code = C.STAIR_ERR_CONTEXT_TOO_SMALL
	// ErrCancelled: a call was cancelled. Calls with a context return ctx.Err() in its place.
	ErrCancelled Code = C.STAIR_ERR_CANCELLED
	// ErrTimeout: the deadline passed. Calls with a context return ctx.Err() in its place.
	ErrTimeout Code = C.STAIR_ERR_TIMEOUT
	// ErrOutOfMemory: memory ran out.
	ErrOutOfMemory Code = C.STAIR_ERR_OUT_OF_MEMORY
	// ErrDecode: llama.cpp failed to decode.
	ErrDecode Code = C.STAIR_ERR_DECODE
	// ErrClosed: the value was closed before. It is also fs.ErrClosed.
	ErrClosed Code = C.STAIR_ERR_CLOSED
	// ErrBusy: too many questions wait for the retriever already.
	ErrBusy Code = C.STAIR_ERR_BUSY

	// ErrInternal: the library contradicted itself. Please report it.
	ErrInternal Code = C.STAIR_ERR_INTERNAL
	// ErrPanic: the library panicked, and the panic was caught. Please report it.
	ErrPanic Code = C.STAIR_ERR_PANIC
)
