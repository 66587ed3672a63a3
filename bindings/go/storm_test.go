package shardrec_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "shardrec.org/shardrec"
)

// TestMain is the tests, or the program of a test that needs one of its own.
func TestMain(m *testing.M) {
	if child, known := children[os.Getenv("SHARDREC_TEST_CHILD")]; known {
		child()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var children = map[string]func(){"exits while ranks wait": exitWhileRanksWait, "drops 10,000 cycles": dropCycles}

// However goroutines move between threads.
func TestErrorsOf64GoroutinesAreTheirOwn(t *testing.T) {
	var goroutines sync.WaitGroup
	for own := 1; own <= 64; own++ {
		goroutines.Add(1)
		go func() {
			defer goroutines.Done()
			model, name := must(NewModel()), fmt.Sprintf("table %d", own)
			defer model.Close()
			must(model.AddTable(name, 4, 4, nil))
			for range 100 {
				_, err := model.AddTable("a", -own, 4, nil)
				refusedWith(t, StatusInvalidArgument, fmt.Sprint(-own), err)
				_, err = model.AddTable(name, 4, 4, nil)
				refusedWith(t, StatusInvalidArgument, fmt.Sprintf("%q", name), err)
				runtime.Gosched()
				_, err = CheckpointListJSON(fmt.Sprintf("/no such folder/%d", own))
				var e *Error
				if !errors.As(err, &e) || !strings.HasSuffix(e.Path, fmt.Sprintf("/%d", own)) {
					t.Errorf("goroutine %d: %v", own, err)
				}
			}
		}()
	}
	goroutines.Wait()
}

// trained is what 30 steps of two ranks leave: the tables' and the layers' bits. Every step has new slices.
func trained(t *testing.T) []float32 {
	bits := make([][]float32, 2)
	onRanks(t, func(comm *Comm) error {
		rank, training := must(comm.Rank()), newTrainer(comm)
		for number := range 30 {
			training.renew()
			if err := training.step(2*number + rank); err != nil {
				return err
			}
		}
		for table := range 2 {
			rows := make([]float32, 50*width)
			if err := training.tables.Read(table, TablePartWeights, 0, 50, Matrix(rows, 50, width)); err != nil {
				return err
			}
			bits[rank] = append(bits[rank], rows...)
		}
		for index := range 2 {
			values, _, err := training.top.Parameter(index)
			if err != nil {
				return err
			}
			bits[rank] = append(bits[rank], must(values.Values())...)
		}
		return training.close()
	})
	ok(t, len(bits[0]) == 2*50*width+width+3+1 && slices.Equal(bits[0], bits[1]), "ranks differ", len(bits[0]))
	return bits[0]
}

// A collector that never rests: what the library keeps between calls is not collected, and nothing is read late.
func TestCollectionsDuringTrainingChangeNothing(t *testing.T) {
	calm := trained(t)
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	ended, storm := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(storm)
		var garbage [][]float32
		for {
			select {
			case <-ended:
				return
			default:
			}
			runtime.GC()
			garbage = garbage[:0]
			for size := range 2_000 { // takes the place of what was collected
				garbage = append(garbage, []float32{-9, -9, -9, float32(size)})
			}
		}
	}()
	stormy := trained(t)
	close(ended)
	<-storm
	ok(t, slices.Equal(calm, stormy), "other bits")
}

func residentBytes(t *testing.T) int {
	t.Helper()
	runtime.GC()
	debug.FreeOSMemory()
	var size, resident int
	if _, err := fmt.Sscan(string(must(os.ReadFile("/proc/self/statm"))), &size, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * os.Getpagesize()
}

//go:noinline
func createDropAndFail(t *testing.T) {
	model, mlp, group := must(NewModel()), must(NewMlp(4, new(MlpOptions).Seed(1))), must(NewLocal(1, 1))
	_, err := model.AddTable("a", -1, 4, nil)
	comm, values := must(NewLocalComm(group, 0)), make([]float32, 8)
	for range 50 { // layouts in C memory
		Shaped(values, 2, 2, 2)
	}
	_, taken := NewLocalComm(group, 0)
	err = errors.Join(err, taken, mlp.Backward(Shaped(values, 2, 2, 2), Tensor{}), comm.Broadcast(Vector([]int32{1}), 9))
	if strings.Count(err.Error(), "SHARDREC_INVALID") != 4 {
		t.Error(err)
	}
}

// Memory that glibc keeps for threads of its own choice is not what is looked for here: the program has one arena. Nor is that of
// a library which counts calls.
func TestWhatIsDroppedLeavesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds")
	}
	output, err := child("drops 10,000 cycles", "MALLOC_ARENA_MAX=1", "LD_PRELOAD=")
	t.Log(output)
	ok(t, err == nil, err)
}

// Go keeps the threads that calls of C have once needed, how many of them the machine's load decides: so many are there
// before memory is looked at.
func startThreads() {
	var started, ended sync.WaitGroup
	for range 16 {
		started.Add(1)
		ended.Add(1)
		go func() {
			defer ended.Done()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			_ = must(LiveObjects())
			started.Done()
			started.Wait()
		}()
	}
	ended.Wait()
}

func dropCycles() {
	t := new(testing.T)
	startThreads()
	var after1000, after int
	cycles := 10_000
	if raceEnabled { // where memory is not looked at
		cycles = 1_000
	}
	for cycle := 1; cycle <= cycles; cycle++ {
		createDropAndFail(t)
		if cycle%100 != 0 {
			continue
		}
		eventually(t, "dropped handles live on", func() bool { return must(LiveObjects()) == 0 })
		if after = residentBytes(t); cycle == 1000 {
			after1000 = after
		}
	}
	fmt.Printf("resident: %.1f MiB after 1,000 cycles, %.1f after 10,000", float64(after1000)/(1<<20), float64(after)/(1<<20))
	if t.Failed() || !raceEnabled && after > after1000+4<<20 {
		os.Exit(1)
	}
}

// Without a call of the collector: a program that drops handles does not fill its memory with native objects.
func TestDroppedHandlesAreNotLeftForLong(t *testing.T) {
	live, most := must(LiveObjects()), 0
	for range 3_000 {
		createDropAndFail(t) // four handles
		most = max(most, must(LiveObjects())-live)
	}
	ok(t, most < 4_000, most)
}

// child runs this program as one of children.
func child(name string, environment ...string) (output string, err error) {
	command := exec.Command(must(os.Executable()))
	command.Env = append(append(os.Environ(), "SHARDREC_TEST_CHILD="+name), environment...)
	bytes, err := command.CombinedOutput()
	return string(bytes), err
}

func exitWhileRanksWait() {
	group := must(NewLocal(3, 3))
	for rank := range 2 {
		comm := must(NewLocalComm(group, rank))
		go func() { fmt.Println("a rank did not wait:", comm.Barrier()) }()
	}
	time.Sleep(200 * time.Millisecond)
	os.Exit(7)
}

func TestAProgramMayExitWhileRanksWait(t *testing.T) {
	for range 5 {
		start := time.Now()
		output, err := child("exits while ranks wait")
		var ended *exec.ExitError
		if passed := time.Since(start); !errors.As(err, &ended) || ended.ExitCode() != 7 || output != "" || passed > 5*time.Second {
			t.Errorf("%v after %v: %s", err, passed, output)
		}
	}
}
