package shardrec_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
			if err := training.tables.ReadRange(table, TablePartWeights, 0, 50, Matrix(rows, 50, width)); err != nil {
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

// blocks is how many objects Go's heap and C's hold: counts, which no other program moves. Those of C are told by a library
// that is preloaded (bindings/checks/live_blocks.c), in a file; without it they are 0.
func blocks(t *testing.T) (ofGo, ofC int) {
	t.Helper()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	if file := os.Getenv("SHARDREC_LIVE_BLOCKS"); file != "" {
		ofC = int(binary.NativeEndian.Uint64(must(os.ReadFile(file))))
	}
	return int(stats.HeapObjects), ofC
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

func TestWhatIsDroppedLeavesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds")
	}
	// In place of the library that counts calls.
	counter := os.Getenv("SHARDREC_BLOCK_COUNTER")
	environment := []string{"LD_PRELOAD=" + counter}
	if counter != "" {
		environment = append(environment, "SHARDREC_LIVE_BLOCKS="+filepath.Join(t.TempDir(), "blocks"))
	}
	output, err := child("drops 10,000 cycles", environment...)
	t.Log(output)
	ok(t, err == nil, err)
}

// Go keeps the threads that calls of C have once needed, how many of them the machine's load decides: so many are there
// before blocks are counted.
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
	var go1000, c1000, ofGo, ofC int
	cycles := 10_000
	if raceEnabled { // where blocks are not counted
		cycles = 1_000
	}
	for cycle := 1; cycle <= cycles; cycle++ {
		createDropAndFail(t)
		if cycle%100 != 0 {
			continue
		}
		eventually(t, "dropped handles live on", func() bool { return must(LiveObjects()) == 0 })
		if ofGo, ofC = blocks(t); cycle == 1000 {
			go1000, c1000 = ofGo, ofC
		}
	}
	const most = 1_000 // a block that each cycle leaves is 9,000
	fmt.Printf("blocks after 1,000 cycles: %d of Go, %d of C; after 10,000: %d and %d", go1000, c1000, ofGo, ofC)
	if t.Failed() || !raceEnabled && (ofGo > go1000+most || ofC > c1000+most) {
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
