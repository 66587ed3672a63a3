package shardrec_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	. "shardrec.org/shardrec"
)

const patience = 2 * time.Second // until all ranks have ended; their deadline is 600 s

func refusedWith(t *testing.T, status Status, words string, err error) {
	t.Helper()
	if StatusOf(err) != status || !strings.Contains(err.Error(), words) {
		t.Errorf("not status %d with %q, but %v", status, words, err)
	}
}

func TestClosedHandlesAreRefused(t *testing.T) {
	model, group := must(NewModel()), must(NewLocal(1, 1))
	comm := must(NewLocalComm(group, 0))
	plan := must(NewCollectivePlan(comm, nil, model, nil))
	if err := errors.Join(group.Close(), group.Close(), plan.Close()); err != nil {
		t.Error(err)
	}
	_, err := NewLocalComm(group, 0)
	refusedWith(t, StatusInvalidHandle, "this Local is closed", err)
	_, err = NewCollection(comm, nil, model, plan, nil)
	refusedWith(t, StatusInvalidHandle, "this Plan is closed", err)
	_, err = NewLocalComm(new(Local), 0)
	refusedWith(t, StatusInvalidHandle, "closed", err)
	_, err = NewCollectivePlan(nil, nil, model, nil)
	refusedWith(t, StatusInvalidHandle, "", err)
	comm.Close()
	model.Close()
	_, err = model.ToJSON()
	refusedWith(t, StatusInvalidHandle, "this Model is closed", err)
	refusedWith(t, StatusInvalidArgument, "", Run(-1, func(*Comm) error { return nil }))
}

func TestErrorsAreFoundByTheirStatus(t *testing.T) {
	_, err := NewLocal(0, 1)
	var e *Error
	if !errors.Is(err, ErrInvalidArgument) || errors.Is(err, ErrTimeout) || !errors.As(err, &e) || e.Status != StatusInvalidArgument {
		t.Error(err)
	}
	for _, own := range []error{new(Model).SetOptimizer(AllTables, nil), Run(2, func(*Comm) error { return e })} {
		if wrapped := fmt.Errorf("here: %w", own); errors.Is(wrapped, ErrInvalidHandle) == errors.Is(wrapped, ErrInvalidArgument) {
			t.Error(own)
		}
	}
	if ErrTimeout.Error() != "SHARDREC_TIMEOUT" {
		t.Error(ErrTimeout)
	}
}

func TestOptionsAreCheckedWhereTheyAreUsed(t *testing.T) {
	table := new(TableOptions).Dtype(DtypeFloat16).InitMax(1).MinColumns(2).AllowedSharding("row_wise, grid")
	for key, want := range map[Option]string{OptionDtype: "float16", OptionInitMax: "1", OptionAllowedSharding: "row_wise, grid"} {
		if text := must(table.Text(key)); text != want {
			t.Errorf("%v is %q, not %q", key, text, want)
		}
	}
	if text := must(new(CollectionOptions).Deduplicate(true).Text(OptionDeduplicate)); text != "1" {
		t.Error(text)
	}
	_, err := new(RendezvousOptions).Port(-1).Text(OptionPort)
	refusedWith(t, StatusInvalidArgument, "PORT", err)
	_, err = new(PlanOptions).Text(OptionPort)
	refusedWith(t, StatusInvalidArgument, "PLAN", err)
	model := must(NewModel())
	defer model.Close()
	_, err = model.AddTable("a", 3, 4, new(TableOptions).MinColumns(0))
	refusedWith(t, StatusInvalidArgument, "MIN_COLUMNS", err)
	if must(model.AddTable("a", 3, 4, table)) != 0 || must(model.AddTable("b", 3, 4, table)) != 1 || !strings.Contains(must(model.ToJSON()), "float16") {
		t.Error(must(model.ToJSON()))
	}
}

func TestRanksThatDisagreeGoOn(t *testing.T) {
	err := Run(2, func(comm *Comm) error {
		model, err := NewModel()
		if err != nil {
			return err
		}
		defer model.Close()
		rank, err := comm.Rank()
		if err != nil {
			return err
		}
		if _, err := model.AddTable("t", 10+rank, 4, nil); err != nil {
			return err
		}
		if _, err := NewCollectivePlan(comm, nil, model, nil); !errors.Is(err, ErrDisagreement) || !strings.Contains(err.Error(), "rows of table") {
			t.Errorf("not a disagreement, but %v", err)
		}
		return comm.Barrier()
	})
	if err != nil {
		t.Error(err)
	}
}

// messages is what was logged.
type messages struct {
	mutex sync.Mutex
	text  strings.Builder
}

func (m *messages) Write(bytes []byte) (int, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.text.Write(bytes)
}

func (m *messages) count(words string) int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return strings.Count(m.text.String(), words)
}

func eventually(t *testing.T, otherwise string, holds func() bool) {
	t.Helper()
	for start := time.Now(); time.Since(start) < 10*time.Second; time.Sleep(time.Millisecond) {
		if holds() {
			return
		}
		runtime.GC()
	}
	t.Error(otherwise)
}

var modelsReported bool // once in a process, however often the tests run in it

func TestDroppedHandlesAreClosedAndReportedOnce(t *testing.T) {
	var logged messages
	before := slog.Default()
	defer slog.SetDefault(before)
	slog.SetDefault(slog.New(slog.NewTextHandler(&logged, nil)))
	live := must(LiveObjects())
	for range 20_000 {
		must(NewModel())
	}
	eventually(t, "dropped models live on", func() bool { return must(LiveObjects()) == live })
	want := 1
	if modelsReported {
		want = 0
	}
	modelsReported = true
	eventually(t, "nobody was told", func() bool { return logged.count("a Model was not closed") == want })
	must(NewModel()).Close()
	if logged.count("not closed") != want {
		t.Error(logged.text.String())
	}
}

func TestTheLogGoesToTheHostsLogger(t *testing.T) {
	var logged messages
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- ForwardLog(ctx, slog.New(slog.NewTextHandler(&logged, nil))) }()
	err := Run(2, func(comm *Comm) error {
		if must(comm.Rank()) == 1 {
			time.Sleep(400 * time.Millisecond)
		}
		return errors.Join(comm.Set(CommPropertyWarnSeconds, 0.05), comm.Barrier())
	})
	eventually(t, "nobody was told", func() bool { return logged.count("rank 1") > 0 })
	cancel()
	if err = errors.Join(err, <-ended); err != nil {
		t.Error(err)
	}
}

// A communicator's end would end the training on it.
func TestParentsLiveAsLongAsTheirChildren(t *testing.T) {
	live := must(LiveObjects())
	lookup := func() *Lookup {
		model := must(NewModel())
		err := model.AddFeature(must(model.AddTable("a", 3, dim, nil)), "id", PoolingSum)
		comm := must(NewLocalComm(must(NewLocal(1, 1)), 0))
		lookup, failure := NewLookup(must(NewCollection(comm, nil, model, must(NewCollectivePlan(comm, nil, model, nil)), nil)), nil)
		if err = errors.Join(err, failure); err != nil {
			t.Fatal(err)
		}
		return lookup
	}()
	out := make([]float32, dim)
	for range 20 {
		runtime.GC()
		err := errors.Join(lookup.Begin(Batch{Size: 1, Values: Vector([]int64{2}), Lengths: Vector([]int64{1})}), lookup.Forward(0, Matrix(out, 1, dim)),
			lookup.SetGradient(0, Matrix(out, 1, dim)), lookup.Backward(UpdateApply))
		if err != nil {
			t.Fatal(err)
		}
	}
	lookup.Close()
	eventually(t, "dropped parents live on", func() bool { return must(LiveObjects()) == live })
}

func TestTheEndOfAContextEndsAllRanks(t *testing.T) {
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	start := time.Now()
	err := RunContext(ctx, 3, func(ranks context.Context, comm *Comm) error {
		if must(comm.Rank()) == 2 {
			cancel(cause)
			<-ranks.Done()
			return nil
		}
		return comm.Barrier()
	})
	if passed := time.Since(start); err != cause || passed > patience {
		t.Errorf("%v after %v", err, passed)
	}
	err = RunContext(ctx, 2, func(context.Context, *Comm) error { return nil })
	if err != nil && err != cause {
		t.Error(err)
	}
	// A rank's failure ends the context of the others.
	err = RunContext(context.Background(), 2, func(ranks context.Context, comm *Comm) error {
		if must(comm.Rank()) == 1 {
			return cause
		}
		<-ranks.Done()
		return context.Cause(ranks)
	})
	if !errors.Is(err, cause) {
		t.Error(err)
	}
}

func TestRanksEndWithTheFirstThatFails(t *testing.T) {
	broken, second := errors.New("broken at \x00"), errors.New("second")
	for name, rank := range map[string]func() error{
		"error":  func() error { return broken },
		"Goexit": func() error { runtime.Goexit(); return nil },
	} {
		start := time.Now()
		err := Run(3, func(comm *Comm) error {
			if must(comm.Rank()) == 1 {
				return rank()
			}
			if err := comm.Barrier(); must(comm.Rank()) == 0 {
				return err
			}
			return second
		})
		if passed := time.Since(start); passed > patience {
			t.Errorf("%s: ended after %v", name, passed)
		}
		if want := map[string]error{"error": broken, "Goexit": ErrRankEnded}[name]; !errors.Is(err, want) || !errors.Is(err, second) ||
			!strings.HasPrefix(err.Error(), want.Error()) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

//go:noinline
func forwardOfALocal(t *testing.T, mlp *Mlp) {
	input, output := []float32{1, 2, 3, 4}, make([]float32, 1)
	if err := mlp.Forward(Matrix(input, 1, 4), Matrix(output, 1, 1)); err != nil {
		t.Error(err)
	}
}

// Backward reads the input of the last forward that succeeded, whoever else has dropped it.
func TestInputsLiveUntilBackward(t *testing.T) {
	mlp := must(NewMlp(4, nil))
	defer mlp.Close()
	if err := mlp.AddLinear(1, ActivationNone); err != nil {
		t.Fatal(err)
	}
	forwardOfALocal(t, mlp)
	refusedWith(t, StatusInvalidArgument, "", mlp.Forward(Matrix(make([]float32, 3), 1, 3), Matrix(make([]float32, 1), 1, 1)))
	var garbage [][]float32
	for range 4 {
		runtime.GC()
		for range 10_000 {
			garbage = append(garbage, []float32{9, 9, 9, 9})
		}
	}
	if err := mlp.Backward(Matrix([]float32{1}, 1, 1), Tensor{}); err != nil {
		t.Fatal(err)
	}
	runtime.KeepAlive(garbage)
	_, gradient, err := mlp.Parameter(0)
	if got := must(gradient.Values()); err != nil || got[0] != 1 || got[3] != 4 {
		t.Error(err, got)
	}
}
