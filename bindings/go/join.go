package shardrec

import (
	"context"
	"slices"
	"strings"
	"time"
	"weak"
)

// JoinContext is NewComm under a context. While ranks are still to come, its end makes the call return with its cause;
// afterwards it aborts the communicator, on all ranks, until that is closed.
//
// The library cannot leave a group that is not complete yet: a join that is given up goes on in the background, at most
// until COMM_SETUP_SECONDS or a second after the context's deadline, and aborts the group if that still comes about.
func JoinContext(ctx context.Context, engine Engine, rank, size int, token string, options *CommOptions) (*Comm, error) {
	return joined(ctx, options, func(options *CommOptions) (*Comm, error) { return NewComm(engine, rank, size, token, options) })
}

// JoinFromEnvContext is NewCommFromEnv under a context, as JoinContext.
func JoinFromEnvContext(ctx context.Context, options *CommOptions) (*Comm, error) {
	return joined(ctx, options, NewCommFromEnv)
}

func joined(ctx context.Context, options *CommOptions, join func(options *CommOptions) (*Comm, error)) (*Comm, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if ctx.Done() == nil {
		return join(options)
	}
	options, err := endingWith(ctx, options)
	if err != nil {
		return nil, err
	}
	type result struct {
		comm *Comm
		err  error
	}
	came := make(chan result, 1)
	go func() {
		comm, err := join(options)
		came <- result{comm, err}
	}()
	select {
	case r := <-came:
		if r.err == nil {
			abortWith(ctx, r.comm)
		}
		return r.comm, r.err
	case <-ctx.Done():
		go func() {
			if r := <-came; r.err == nil {
				_ = r.comm.Abort(reasonOf(ctx))
				r.comm.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// endingWith are the options with a deadline for joining that is not long after the context's.
func endingWith(ctx context.Context, options *CommOptions) (*CommOptions, error) {
	deadline, has := ctx.Deadline()
	if !has {
		return options, nil
	}
	own := new(CommOptions)
	if options != nil {
		own.list = slices.Clone(options.list)
	}
	seconds, err := own.Float(OptionCommSetupSeconds)
	if left := time.Until(deadline).Seconds() + 1; err == nil && left < seconds {
		own.SetupSeconds(left)
	}
	return own, err
}

// abortWith aborts the communicator when ctx ends before it, without keeping it alive.
func abortWith(ctx context.Context, comm *Comm) {
	reference := weak.Make(comm)
	stop := context.AfterFunc(ctx, func() {
		if comm := reference.Value(); comm != nil {
			_ = comm.Abort(reasonOf(ctx)) // one that is closed needs none
		}
	})
	comm.raw().AtEnd(func() { stop() })
}

func reasonOf(ctx context.Context) string {
	return "the context of a rank ended: " + strings.ReplaceAll(context.Cause(ctx).Error(), "\x00", " ")
}
