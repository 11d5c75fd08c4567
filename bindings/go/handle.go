package stair

import (
	"context"
	"runtime"
	"sync"
)

// A handle owns one native object and frees it exactly once: when it has been closed and no call
// uses it any more.
type handle struct {
	kind   string // for messages: "model"
	native uintptr
	free   func(uintptr)

	mu     sync.Mutex
	users  int
	closed bool
}

// guard makes a collected owner close its handle. The owner must not be reachable from the handle.
func guard[T any](owner *T, h *handle) *T {
	// Freeing a retriever waits for its thread: not on the goroutine of all clean-ups.
	runtime.AddCleanup(owner, func(h *handle) { go h.close() }, h)
	return owner
}

// acquire gives the native object, which stays alive until release. It fails after close, and for
// a value that no constructor made.
func (h *handle) acquire() (uintptr, error) {
	if h == nil {
		return 0, closedError("value")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return 0, closedError(h.kind)
	}
	h.users++
	return h.native, nil
}

func (h *handle) release() {
	h.mu.Lock()
	h.users--
	last := h.closed && h.users == 0
	h.mu.Unlock()
	if last {
		h.free(h.native)
	}
}

// releaseFor ends a call that had ctx. One that is done does not wait for the end of the native object,
// which for a retriever is that of its thread.
func (h *handle) releaseFor(ctx context.Context) {
	if ctx.Err() != nil {
		go h.release()
		return
	}
	h.release()
}

func (h *handle) close() {
	if h == nil {
		return
	}
	h.mu.Lock()
	idle := !h.closed && h.users == 0
	h.closed = true
	h.mu.Unlock()
	if idle {
		h.free(h.native)
	}
}

func nilError(kind string) error {
	return &Error{Code: ErrNullPointer, Name: ErrNullPointer.Name(), Message: "the " + kind + " is nil"}
}

func closedError(kind string) error {
	return &Error{Code: ErrClosed, Name: ErrClosed.Name(), Message: "the " + kind + " is closed"}
}
