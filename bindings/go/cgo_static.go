//go:build stair_static

package stair

// With the tag stair_static, libstair.a and stair.h lie in lib/<os>_<arch> beside this file.

// #cgo CFLAGS: -DSTAIR_STATIC
// #cgo linux,amd64 CFLAGS: -I${SRCDIR}/lib/linux_amd64
// #cgo linux,amd64 LDFLAGS: ${SRCDIR}/lib/linux_amd64/libstair.a
// #cgo linux,arm64 CFLAGS: -I${SRCDIR}/lib/linux_arm64
// #cgo linux,arm64 LDFLAGS: ${SRCDIR}/lib/linux_arm64/libstair.a
// #cgo linux LDFLAGS: -lstdc++ -lm -ldl -lpthread
import "C"
