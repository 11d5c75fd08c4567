//go:build !stair_static && !stair_env

package stair

// #cgo pkg-config: stair
import "C"
