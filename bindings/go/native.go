package stair

// #include "shim.h"
import "C"

import (
	"fmt"
	"math"
	"strings"
	"unsafe"
)

// Version returns the version of the libstair that is loaded, as in "0.1.0".
func Version() string {
	return C.GoString(C.stair_version())
}

// BuildInfo says how the libstair that is loaded was built: features, llama.cpp, target.
func BuildInfo() string {
	return C.GoString(C.stair_build_info())
}

// errABI is set when the library that was loaded is not the one this program was compiled for.
// Every function that makes a first handle returns it, so that no call goes wrong.
var errABI = checkABI(uint32(C.stair_abi_version()), C.STAIR_ABI_VERSION)

func checkABI(loaded, compiled uint32) error {
	if loaded == compiled {
		return nil
	}
	return fmt.Errorf("stair: the libstair that was loaded has ABI version %d, but this program was "+
		"compiled for %d: compile it against the stair.h of that library, or load the right one",
		loaded, compiled)
}

// made gives the handle of a call that makes one.
func made(reply C.go_reply) (uintptr, error) {
	if err := failed(reply); err != nil {
		return 0, err
	}
	return uintptr(reply.handle), nil
}

// failed gives the error of a call, and nil if it succeeded.
func failed(reply C.go_reply) error {
	if reply.status == C.STAIR_OK {
		return nil
	}
	code := Code(reply.status)
	err := &Error{Code: code, Name: code.Name()}
	if reply.error != 0 {
		var n C.size_t
		text := C.go_error_message(reply.error, &n)
		err.Message = goText(text, n)
		C.go_error_free(reply.error)
	}
	return err
}

var noBytes [1]byte

// cText lends a string to one C call. The pointer is never NULL, which would mean "none".
func cText(s string) (*C.char, C.size_t) {
	if s == "" {
		return (*C.char)(unsafe.Pointer(&noBytes)), 0
	}
	return (*C.char)(unsafe.Pointer(unsafe.StringData(s))), C.size_t(len(s))
}

// cBytes lends bytes to one C call. The pointer is never NULL.
func cBytes(b []byte) (unsafe.Pointer, C.size_t) {
	if len(b) == 0 {
		return unsafe.Pointer(&noBytes), 0
	}
	return unsafe.Pointer(unsafe.SliceData(b)), C.size_t(len(b))
}

// goText copies a text that C has lent.
func goText(text *C.char, n C.size_t) string {
	return strings.Clone(unsafe.String((*byte)(unsafe.Pointer(text)), int(n)))
}

// count makes a C count of n. What does not fit becomes the largest count, for libstair to refuse.
func count(n int) C.uint32_t {
	if n < 0 || uint64(n) > math.MaxUint32 {
		return math.MaxUint32
	}
	return C.uint32_t(n)
}

// flag makes a C truth value.
func flag(on bool) C.uint32_t {
	if on {
		return 1
	}
	return 0
}

// page makes *int of a C page.
func page(n C.uint32_t) *int {
	if n == C.STAIR_NONE {
		return nil
	}
	page := int(n)
	return &page
}
