package stair

/*
#include "shim.h"

extern void stairGoLog(int32_t level, go_const_char *message, size_t len, void *userdata);

static inline void go_log_set(int32_t max_level) {
    stair_log_set(max_level > 0 ? stairGoLog : NULL, NULL, max_level);
}
*/
import "C"

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// A LogLevel is the weight of a log message.
type LogLevel int32

// The levels, from the weightiest.
const (
	LogError LogLevel = C.STAIR_LOG_ERROR
	LogWarn  LogLevel = C.STAIR_LOG_WARN
	LogInfo  LogLevel = C.STAIR_LOG_INFO
	LogDebug LogLevel = C.STAIR_LOG_DEBUG
)

var (
	settingLogger sync.Mutex
	logger        atomic.Pointer[func(LogLevel, string)]
)

// SetLogger makes log receive what libstair and llama.cpp say, for the whole process, up to the
// level upTo. A nil log makes them silent, as they are at first.
//
// log is called on any goroutine or thread, from several at once, in the middle of other calls of
// this package. It must not panic and must not call this package.
func SetLogger(upTo LogLevel, log func(level LogLevel, message string)) {
	if errABI != nil {
		return
	}
	settingLogger.Lock()
	defer settingLogger.Unlock()
	if log == nil {
		C.go_log_set(0)
		logger.Store(nil)
		return
	}
	logger.Store(&log)
	C.go_log_set(C.int32_t(upTo))
}

//export stairGoLog
func stairGoLog(level C.int32_t, message *C.go_const_char, n C.size_t, _ unsafe.Pointer) {
	// A message may be under way while the logger is taken off.
	if log := logger.Load(); log != nil {
		(*log)(LogLevel(level), goText((*C.char)(message), n))
	}
}
