package shardrec

import (
	"errors"
	"strings"

	"shardrec.org/shardrec/internal/capi"
)

// Error is a status that is not OK: find it with errors.As, or ask for one status by errors.Is(err, ErrTimeout). A
// part that the error lacks is nil or "".
type Error struct {
	Status   Status
	Name     string // such as "SHARDREC_TIMEOUT"; also of a status of a later release
	Sentence string // what was wrong, where, what would be accepted

	Rank     *int64 // the rank at fault
	Position *int64 // index into the array at fault
	Value    *int64 // the value that was refused
	Limit    *int64 // what would have been accepted, exclusive
	Sequence *int64 // the sequence number of the operation

	Table     string // name of the table
	Feature   string // name of the feature
	Operation string // the operation that failed, such as "forward"
	Path      string // the file or directory
}

// Error is the status' name and the sentence.
func (e *Error) Error() string { return e.Name + ": " + e.Sentence }

// Is tells errors.Is whether the target is the Err variable of this status.
func (e *Error) Is(target error) bool {
	status, ok := target.(statusError)
	return ok && Status(status) == e.Status
}

// StatusOf returns the status of an error of this package, StatusOk for any other error and for nil.
func StatusOf(err error) Status {
	var e *Error
	if errors.As(err, &e) {
		return e.Status
	}
	return StatusOk
}

// statusError is what errors.Is is asked with.
type statusError Status

func (s statusError) Error() string { return "SHARDREC_" + strings.ToUpper(Status(s).String()) }

// refusal is the error of a call that this package refuses itself.
func refusal(status Status, sentence string) error {
	return &Error{Status: status, Name: statusError(status).Error(), Sentence: sentence}
}

func errorOf(e *capi.Error) error {
	name := e.Name
	if name == "" { // refused before the library was asked
		name = statusError(e.Status).Error()
	}
	return &Error{
		Status: Status(e.Status), Name: name, Sentence: e.Sentence,
		Rank: e.Rank, Position: e.Position, Value: e.Value, Limit: e.Limit, Sequence: e.Sequence,
		Table: e.Table, Feature: e.Feature, Operation: e.Operation, Path: e.Path,
	}
}
