package shardrec

import (
	"context"
	"errors"
	"strings"
	"sync"
)

// ErrRankEnded is the failure of a rank whose goroutine ended without returning: by runtime.Goexit, as t.Fatal does.
var ErrRankEnded = errors.New("the rank's goroutine ended before its function returned")

// Run is RunContext without a context.
func Run(n int, body func(comm *Comm) error) error {
	return RunContext(context.Background(), n, func(_ context.Context, comm *Comm) error { return body(comm) })
}

// RunContext calls body on n ranks of one node, each a goroutine with a communicator of its own. The first
// failure aborts the other ranks and is returned; what else failed is joined behind it (errors.Join). The end of
// ctx aborts all ranks; its cause is then the first failure. The context of the ranks ends with the first
// failure. No rank is left running when it returns.
func RunContext(ctx context.Context, n int, body func(ctx context.Context, comm *Comm) error) error {
	group, err := NewLocal(n, n)
	if err != nil {
		return err
	}
	defer group.Close()
	r := ranks{comms: make([]*Comm, n)}
	defer func() {
		for _, comm := range r.comms {
			if comm != nil {
				comm.Close()
			}
		}
	}()
	for rank := range r.comms {
		if r.comms[rank], err = NewLocalComm(group, rank); err != nil {
			return err
		}
	}
	ranks, end := context.WithCancelCause(ctx)
	r.end = end
	stop := context.AfterFunc(ctx, func() { r.fail(context.Cause(ctx)) })
	for _, comm := range r.comms {
		r.running.Add(1)
		go r.run(comm, func(comm *Comm) error { return body(ranks, comm) })
	}
	r.running.Wait()
	stop()
	end(nil)
	r.mutex.Lock() // the end of ctx may just be telling
	defer r.mutex.Unlock()
	if len(r.failures) == 1 {
		return r.failures[0]
	}
	return errors.Join(r.failures...)
}

// ranks are those of one Run.
type ranks struct {
	comms    []*Comm
	running  sync.WaitGroup
	end      context.CancelCauseFunc // of the ranks' context
	mutex    sync.Mutex
	failures []error // the first one first
}

func (r *ranks) run(comm *Comm, body func(comm *Comm) error) {
	defer r.running.Done()
	failure := ErrRankEnded
	defer func() {
		if failure != nil {
			r.fail(failure)
		}
	}()
	failure = body(comm)
}

func (r *ranks) fail(failure error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if len(r.failures) != 0 && StatusOf(failure) == StatusAborted {
		return // what the abort itself has ended says nothing new
	}
	r.failures = append(r.failures, failure)
	if len(r.failures) != 1 {
		return
	}
	r.end(failure)
	reason := "another rank failed: " + strings.ReplaceAll(failure.Error(), "\x00", " ")
	for _, peer := range r.comms {
		// A rank that has ended needs no abort.
		_ = peer.Abort(reason)
	}
}
