// Package capi is the raw layer: SWIG's wrappers of the C API (capi.go, capi_wrap.c, generated) and what
// they need by hand. Only package shardrec uses it.
//
// Pointers given to it must be to variables that stand alone: cgo looks for Go pointers in the whole object
// behind a pointer.
package capi

import (
	"fmt"
	"strings"
)

// Of the C API's shardrec_status.
const (
	invalidArgument = 1
	invalidHandle   = 2
	unsupported     = 8
)

// Convert makes the error that callers see.
var Convert = func(e *Error) error { return e }

// refuse is the error of a call that this package refuses itself.
func refuse(status int32, sentence string) error {
	return Convert(&Error{Status: status, Sentence: sentence})
}

// checkText refuses what C would see half of.
func checkText(text string) error {
	if at := strings.IndexByte(text, 0); at >= 0 {
		return refuse(invalidArgument, fmt.Sprintf("the text %q holds NUL at byte %d; no name or path may hold it", text, at))
	}
	return nil
}

// Error is a status that is not OK, copied in the frame of the failing call. A part that the error lacks is
// nil or "".
type Error struct {
	Status   int32  // of the C API's shardrec_status
	Name     string // such as SHARDREC_TIMEOUT; "": to be found by the status
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
