//go:build cgo && linux

package capi

// Generated code casts handles; the C compiler must not draw conclusions from their types.

// #cgo pkg-config: shardrec
// #cgo CFLAGS: -std=c99 -fno-strict-aliasing
// #include <stdlib.h>
// #include "shardrec/shardrec.h"
import "C"

import (
	"runtime"
	"strconv"
	"strings"
	"unsafe"
)

// Linked tells whether the library is linked at all.
const Linked = true

// What Go's part knows of C without asking.
const (
	_ = uint(C.SHARDREC_MAX_DIMENSIONS-MaxDimensions) + uint(MaxDimensions-C.SHARDREC_MAX_DIMENSIONS)
	_ = uint(C.SHARDREC_DEVICE_CPU-deviceCPU) + uint(deviceCPU-C.SHARDREC_DEVICE_CPU)
	_ = uint(C.SHARDREC_INVALID_ARGUMENT-invalidArgument) + uint(invalidArgument-C.SHARDREC_INVALID_ARGUMENT)
	_ = uint(C.SHARDREC_INVALID_HANDLE-invalidHandle) + uint(invalidHandle-C.SHARDREC_INVALID_HANDLE)
)

// The same memory to Go and to C.
var _ [C.sizeof_shardrec_tensor]byte = [unsafe.Sizeof(View{})]byte{}

// newLayout is a copy of the view in C memory that is freed with the layout.
func newLayout(view View, owner *Handle) (*layout, int) {
	copied := (*View)(C.calloc(1, C.sizeof_shardrec_tensor))
	*copied = view
	l := &layout{int(view.ndim), owner}
	runtime.AddCleanup(l, func(copied *View) { C.free(unsafe.Pointer(copied)) }, copied)
	return l, int(uintptr(unsafe.Pointer(copied)))
}

// makeError takes what the typemap of shardrec_status made: "" for OK, else a block of shardrec_pack_error,
// or a length without a block when there was no memory for it.
func makeError(block string) error {
	if len(block) == 0 {
		return nil
	}
	data := unsafe.StringData(block)
	if data == nil {
		return refuse(int32(len(block)), "no memory for the sentence")
	}
	fields := strings.Split(strings.Clone(block), "\x00")
	C.free(unsafe.Pointer(data))
	status, _ := strconv.ParseInt(fields[0], 10, 32)
	e := &Error{Status: int32(status), Name: fields[1], Sentence: fields[2]}
	for i, part := range []**int64{&e.Rank, &e.Position, &e.Value, &e.Limit, &e.Sequence} {
		if number, err := strconv.ParseInt(fields[3+i], 10, 64); err == nil {
			*part = &number
		}
	}
	e.Table, e.Feature, e.Operation, e.Path = fields[8], fields[9], fields[10], fields[11]
	return Convert(e)
}

// takeText copies a text of the library and frees it; "" for NULL.
func takeText(text unsafe.Pointer) string {
	defer C.shardrec_text_free((*C.char)(text))
	return C.GoString((*C.char)(text))
}
