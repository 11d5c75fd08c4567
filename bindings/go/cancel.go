package stair

// #cgo noescape stair_cancel_trigger
// #cgo nocallback stair_cancel_trigger
// #include "shim.h"
import "C"

import (
	"context"
	"errors"
)

// cancellable makes one C call with a token that is triggered when ctx is done; the token is nil
// if it never will be. A call that was cancelled gives ctx.Err().
func cancellable(ctx context.Context, call func(token *C.stair_cancel) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if ctx.Done() == nil {
		return call(nil)
	}
	token := C.stair_cancel_new()
	if token == nil {
		return &Error{Code: ErrOutOfMemory, Name: ErrOutOfMemory.Name(), Message: "no memory for a token"}
	}
	defer C.stair_cancel_free(token)

	triggered := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		C.stair_cancel_trigger(token)
		close(triggered)
	})
	err := call(token)
	if !stop() {
		<-triggered // before the token is freed
	}
	if errors.Is(err, ErrCancelled) && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
