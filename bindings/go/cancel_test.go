package shardrec_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	. "shardrec.org/shardrec"
)

// inTime runs a function for each rank on goroutines of their own, and fails when they have not returned in time.
func inTime(t *testing.T, ranks int, body func(rank int)) {
	t.Helper()
	var running sync.WaitGroup
	for rank := range ranks {
		running.Add(1)
		go func() {
			defer running.Done()
			body(rank)
		}()
	}
	done := make(chan struct{})
	go func() { running.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("ranks wait")
	}
}

// Two ranks whose contexts have an end commit, load and verify until then; their deadlines are 600 s and more.
func TestTheEndOfAContextEndsLongCalls(t *testing.T) {
	for _, call := range []struct {
		name string
		long func(ctx context.Context, checkpoint *Checkpoint, number int) error
	}{
		{"commit", func(ctx context.Context, checkpoint *Checkpoint, number int) error {
			return checkpoint.Commit(ctx, number)
		}},
		{"verify", func(ctx context.Context, checkpoint *Checkpoint, _ int) error {
			return checkpoint.Verify(ctx)
		}},
		{"load", func(ctx context.Context, checkpoint *Checkpoint, _ int) error {
			return checkpoint.Load(ctx)
		}},
	} {
		root := t.TempDir()
		var ended time.Time
		ctx, cancel := context.WithCancel(context.Background())
		err := RunContext(ctx, 2, func(ranks context.Context, comm *Comm) error {
			model := must(NewModel())
			defer model.Close()
			must(model.AddTable("big", 100_000, 32, nil))
			must(0, model.AddFeature(0, "big", PoolingSum))
			plan := must(NewCollectivePlan(comm, nil, model, new(PlanOptions).Sharding(ShardingRowWise)))
			defer plan.Close()
			tables := must(NewCollection(comm, nil, model, plan, nil))
			defer tables.Close()
			checkpoint := must(NewCheckpoint(comm, root, new(CheckpointOptions).KeepLast(1_000)))
			defer checkpoint.Close()
			err := errors.Join(checkpoint.AddCollection("tables", tables), checkpoint.Commit(ranks, 0), checkpoint.Open(0))
			if must(comm.Rank()) == 0 {
				time.AfterFunc(60*time.Millisecond, func() { ended = time.Now(); cancel() })
			}
			for number := 1; err == nil; number++ {
				err = call.long(ranks, checkpoint, number)
			}
			return err
		})
		if passed := time.Since(ended); !errors.Is(err, context.Canceled) || passed > patience {
			t.Errorf("%s: %v after %v", call.name, err, passed)
		}
		cancel()
	}
}

// A control that one rank cancels ends the call of all of them, and leaves the communicator.
func TestACancelledControlEndsTheCallOnAllRanks(t *testing.T) {
	root := filepath.Join(t.TempDir(), "run")
	onRanks(t, func(comm *Comm) error {
		checkpoint, ctx, weight := must(NewCheckpoint(comm, root, nil)), context.Background(), []float32{1}
		defer checkpoint.Close()
		err := errors.Join(checkpoint.SetTensor("weight", Vector(weight)), checkpoint.Commit(ctx, 1))
		if must(comm.Rank()) == 1 {
			control := must(NewControl())
			defer control.Close()
			ctx = WithControl(ctx, control)
			err = errors.Join(err, control.Cancel())
		}
		start := time.Now()
		cancelled := checkpoint.Commit(ctx, 2)
		ok(t, errors.Is(cancelled, ErrCancelled) && time.Since(start) < patience, cancelled, time.Since(start))
		return errors.Join(err, checkpoint.Commit(context.Background(), 3))
	})
}

func TestTheEndOfAContextEndsAJoin(t *testing.T) {
	live, cause := must(LiveObjects()), errors.New("enough")
	rendezvous, other := must(NewRendezvous(nil)), must(NewRendezvous(nil))
	token, options := must(rendezvous.Token()), new(CommOptions).SetupSeconds(1)
	ctx, cancel := context.WithCancelCause(context.Background())
	time.AfterFunc(200*time.Millisecond, func() { cancel(cause) })
	start := time.Now()
	inTime(t, 2, func(rank int) {
		_, err := JoinContext(ctx, EngineGloo, rank, 3, token, options)
		ok(t, err == cause && time.Since(start) < patience, err, time.Since(start))
	})
	_, err := JoinFromEnvContext(ctx, nil)
	ok(t, err == cause, err)
	// The context's deadline also ends the join that goes on in the background, which else has half an hour.
	limited, stop := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer stop()
	_, err = JoinContext(limited, EngineGloo, 0, 3, must(other.Token()), nil)
	ok(t, errors.Is(err, context.DeadlineExceeded), err)
	time.Sleep(1500 * time.Millisecond)
	ok(t, errors.Join(rendezvous.Close(), other.Close()) == nil)
	eventually(t, "a join goes on", func() bool { return must(LiveObjects()) == live })
}

func TestTheEndOfAContextAbortsWhatHasJoined(t *testing.T) {
	rendezvous, ctx := must(NewRendezvous(nil)), context.Background()
	defer rendezvous.Close()
	token := must(rendezvous.Token())
	own, cancel := context.WithCancel(ctx)
	inTime(t, 2, func(rank int) {
		comm, err := JoinContext([]context.Context{ctx, own}[rank], EngineGloo, rank, 2, token, new(CommOptions).SetupSeconds(60))
		if err != nil {
			t.Error(err)
			return
		}
		defer comm.Close()
		start := time.Now()
		if rank == 1 {
			time.Sleep(100 * time.Millisecond)
			cancel()
			<-own.Done()
			time.Sleep(10 * time.Millisecond)
		}
		err = comm.Barrier()
		ok(t, errors.Is(err, ErrAborted) && time.Since(start) < patience, rank, err, time.Since(start))
	})
}

// What ends with its communicator: neither is kept by a context that goes on.
func TestAContextKeepsNoCommunicator(t *testing.T) {
	live := must(LiveObjects())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	rendezvous := must(NewRendezvous(nil))
	for _, close := range []bool{true, false} {
		comm := must(JoinContext(ctx, EngineGloo, 0, 1, must(rendezvous.Token()), new(CommOptions).SetupSeconds(60)))
		if close {
			comm.Close()
			rendezvous.Close()
			rendezvous = must(NewRendezvous(nil))
		}
	}
	rendezvous.Close()
	eventually(t, "a dropped communicator lives on", func() bool { return must(LiveObjects()) == live })
}
