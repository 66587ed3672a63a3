package capi

// #include <stdlib.h>
// #include "shardrec/shardrec.h"
import "C"

import (
	"strconv"
	"strings"
	"unsafe"
)

// Convert makes the error that callers see.
var Convert = func(e *Error) error { return e }

// refuse is the error of a call that this package refuses itself.
func refuse(status int32, sentence string) error {
	return Convert(&Error{Status: status, Name: Status_name(status), Sentence: sentence})
}

// Error is a status that is not OK, copied in the frame of the failing call. A part that the error lacks is
// nil or "".
type Error struct {
	Status   int32  // of the C API's shardrec_status
	Name     string // such as SHARDREC_TIMEOUT
	Sentence string // what was wrong, where, what would be accepted

	Rank     *int64 // the rank at fault
	Position *int64 // index into the array at fault
	Value    *int64 // the value that was refused
	Limit    *int64 // what would have been accepted, exclusive
	Sequence *int64 // the sequence number of the operation

	Table     string
	Feature   string
	Operation string // such as "forward"
	Path      string // the file or directory
}

func (e *Error) Error() string { return e.Name + ": " + e.Sentence }

// makeError takes what the typemap of shardrec_status made: "" for OK, else a block of shardrec_pack_error,
// or a length without a block when there was no memory for it.
func makeError(block string) error {
	if len(block) == 0 {
		return nil
	}
	data := unsafe.StringData(block)
	if data == nil {
		status := int32(len(block))
		return refuse(status, "no memory for the sentence")
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
