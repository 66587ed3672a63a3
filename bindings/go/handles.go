package shardrec

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"shardrec.org/shardrec/internal/capi"
)

// handle is embedded in the type of every native object.
type handle struct{ native capi.Handle }

func (h *handle) raw() *capi.Handle { return &h.native }

// Close destroys the handle: more than once, in any order with others, on any goroutine, during a call. A handle
// that is dropped without it is destroyed when it is collected; the first of each type is reported (slog).
func (h *handle) Close() error {
	h.native.Close()
	return nil
}

// opened makes a T around the ticket that create writes; nil for ticket 0. Its parents are not collected before it.
func opened[T any, P interface {
	*T
	raw() *capi.Handle
}](destroy func(*uintptr), create func(out *uintptr) error, parents ...*capi.Handle) (P, error) {
	var ticket uintptr
	if err := create(&ticket); err != nil || ticket == 0 {
		return nil, err
	}
	p := P(new(T))
	p.raw().Open(strings.TrimPrefix(fmt.Sprintf("%T", p), "*shardrec."), ticket, destroy, parents...)
	return p, nil
}

// rawOf is nil, C's NULL, for nil.
func rawOf[T any, P interface {
	*T
	raw() *capi.Handle
}](p P) *capi.Handle {
	if p == nil {
		return nil
	}
	return p.raw()
}

// controlled calls with a native control that the end of ctx cancels: with the one of WithControl, or one of its own.
func controlled(ctx context.Context, call func(control *capi.Handle) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	control, given := ctx.Value(controlKey{}).(*Control)
	if !given && ctx.Done() == nil {
		return call(nil)
	}
	if !given {
		var err error
		if control, err = NewControl(); err != nil {
			return err
		}
		defer control.Close()
	}
	stop := context.AfterFunc(ctx, func() { _ = control.Cancel() })
	defer stop()
	err := call(control.raw())
	if errors.Is(err, ErrCancelled) && ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	return err
}

type controlKey struct{}

// WithControl gives a long call a control, whose Progress other goroutines may ask for meanwhile. Of
// [Checkpoint.CommitBegin] it goes on to count and cancel after the call has returned, which the end of a context does not.
func WithControl(ctx context.Context, control *Control) context.Context {
	return context.WithValue(ctx, controlKey{}, control)
}
