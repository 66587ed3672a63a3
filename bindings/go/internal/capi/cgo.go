// Package capi is the raw layer: SWIG's wrappers of the C API (capi.go, capi_wrap.c, generated) and what
// they need by hand. Only package shardrec uses it.
//
// Pointers given to it must be to variables that stand alone: cgo looks for Go pointers in the whole object
// behind a pointer.
package capi

// Generated code casts handles; the C compiler must not draw conclusions from their types.

// #cgo pkg-config: shardrec
// #cgo CFLAGS: -std=c99 -fno-strict-aliasing
import "C"
