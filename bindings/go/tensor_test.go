package shardrec_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	. "shardrec.org/shardrec"
)

// nearest is the Float16 nearest to a value, of two the even one, by search.
func nearest(value float64) Float16 {
	best := Float16(0)
	for bits := range Float16(0x7c00) {
		off, least := math.Abs(float64(bits.Float32())-value), math.Abs(float64(best.Float32())-value)
		if off < least || off == least && bits&1 == 0 {
			best = bits
		}
	}
	return best
}

func TestNumbersOf16BitsAreRoundedToNearest(t *testing.T) {
	for bits := range 1 << 16 {
		half, brain := Float16(bits), BFloat16(bits)
		if back := Float16Of(half.Float32()); back != half && !(half.Float32() != half.Float32() && back.Float32() != back.Float32()) {
			t.Fatalf("%#x became %#x", bits, back)
		}
		if back := BFloat16Of(brain.Float32()); back != brain && !(brain.Float32() != brain.Float32() && back.Float32() != back.Float32()) {
			t.Fatalf("%#x became %#x", bits, back)
		}
	}
	for _, value := range []float32{0x1p-25, 0x1.8p-25, 0x1.8p-24, 0x1.ffcp-15, 0x1.ffep-15, 1.00048828125, 1.00146484375, 0.1, 65519, 1e-7} {
		if got, want := Float16Of(value), nearest(float64(value)); got != want {
			t.Errorf("%v is %#x, not %#x", value, got, want)
		}
	}
	inf := float32(math.Inf(-1))
	ok(t, Float16Of(65520) == 0x7c00 && Float16Of(inf) == 0xfc00 && BFloat16Of(inf) == 0xff80 && Float16Of(-2) == 0xc000)
	ok(t, BFloat16Of(0x1.01p0) == 0x3f80 && BFloat16Of(0x1.03p0) == 0x3f82 && BFloat16Of(0x1.010002p0) == 0x3f81)
}

func panics(t *testing.T, words string, call func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if text, isText := recover().(string); !isText || !strings.Contains(text, words) {
			t.Errorf("no panic with %q, but %q", words, text)
		}
	}()
	call()
}

func TestTensorsLieWithinTheirSlices(t *testing.T) {
	six := make([]int64, 6)
	for _, call := range []func(){
		func() { Matrix(six, 2, 4) }, func() { Matrix(six, -1, 2) }, func() { Matrix(six, math.MaxInt, 2) },
		func() { MatrixRows(six, 2, 3, 4) }, func() { MatrixRows(six, 2, 3, 2) }, func() { MatrixRows(six, 1, 7, 7) },
	} {
		panics(t, "in a slice of 6", call)
	}
	for _, call := range []func(){
		func() { Shaped(six, 1, 2, 4) }, func() { Shaped(six, 7) }, func() { Shaped(six[:0]) }, func() { Shaped(six, 3, -2, -1) },
		func() { Shaped(six, 1, 1, 1, 1, 1, 1, 1, 1, 1) }, func() { Strided(six, []int{2, 2, 2}, []int{1, 2, 4}) },
		func() { Strided(six, []int{3}, []int{0}) }, func() { Strided(six, []int{3}, []int{-1}) }, func() { Strided(six, []int{2}, nil) },
		func() { Shaped(six, math.MaxInt, 2, 2) }, func() { Strided(six, []int{2, 2, 2}, []int{math.MaxInt, 1, math.MaxInt}) },
	} {
		panics(t, "slice of", call)
	}
	panics(t, "the first 3 rows of a tensor of 2", func() { Shaped(six, 2, 3, 1).First(3) })
	panics(t, "the first 0 rows", func() { Tensor{}.First(0) })
	Shaped(six, 0, math.MaxInt)
	Strided(six, []int{2, 3, 1}, []int{1, 2, 0})
}

// Rank 1's elements go to rank 0, in tensors of every form; those between stay.
func TestTensorsOfEveryFormCross(t *testing.T) {
	onRanks(t, func(comm *Comm) error {
		mine := int64(must(comm.Rank()))
		wide, cube, pairs, scalar := make([]int64, 6), make([]int64, 12), make([]int64, 6), []float32{float32(mine)}
		for i := range cube {
			wide[i/2], pairs[i/2], cube[i] = mine, mine, mine
		}
		err := errors.Join(comm.Broadcast(MatrixRows(wide, 2, 2, 3), 1), comm.Broadcast(Strided(pairs, []int{3}, []int{2}), 1),
			comm.Broadcast(Strided(cube, []int{3, 2, 1}, []int{4, 1, 1}).First(2), 1), comm.Broadcast(Shaped(scalar), 1),
			comm.Broadcast(Vector(pairs[4:]).First(1), 1))
		for name, got := range map[string]string{
			"[1 1 x 1 1 x]": fmt.Sprint(wide), "[1 x 1 x 1 x]": fmt.Sprint(pairs), "[1 1 x x 1 1 x x x x x x]": fmt.Sprint(cube), "[1]": fmt.Sprint(scalar),
		} {
			ok(t, strings.ReplaceAll(name, "x", fmt.Sprint(mine)) == got, got)
		}
		// What the library does not take, it says: here that elements of a row are compact.
		refusedWith(t, StatusInvalidArgument, "stride", comm.Broadcast(Strided(cube, []int{2, 2, 2}, []int{1, 2, 4}), 1))
		return err
	})
}

// Tensors of every dtype, of up to eight dimensions, in a checkpoint.
func TestTensorsOfEveryDtypeAreKept(t *testing.T) {
	root := filepath.Join(t.TempDir(), "run")
	onRanks(t, func(comm *Comm) error {
		checkpoint := must(NewCheckpoint(comm, root, nil))
		defer checkpoint.Close()
		return errors.Join(keeps[uint8](t, checkpoint, 1), keeps[int32](t, checkpoint, 2), keeps[int64](t, checkpoint, 3),
			keeps[Float16](t, checkpoint, 4), keeps[BFloat16](t, checkpoint, 5), keeps[float32](t, checkpoint, 6),
			keeps[float64](t, checkpoint, 7))
	})
}

func keeps[T Number](t *testing.T, checkpoint *Checkpoint, step int) error {
	shape := []int{2, 1, 3, 1, 1, 2, 1, 1}[:step+1]
	kept, back := make([]T, 12), make([]T, 12)
	for i := range kept {
		kept[i] = T(i + 1)
	}
	count := 1
	for _, size := range shape {
		count *= size
	}
	err := errors.Join(checkpoint.SetTensor("x", Shaped(kept, shape...)), checkpoint.Commit(context.Background(), step),
		checkpoint.Open(step), checkpoint.GetTensor("x", 1, Shaped(back, shape...)))
	info, failure := checkpoint.TensorInfo("x", 0)
	ok(t, len(info.Shape) == len(shape) && info.Shape[0] == 2 && strings.EqualFold(info.Dtype.String(), strings.TrimPrefix(fmt.Sprintf("%T", *new(T)), "shardrec.")), info)
	ok(t, back[count-1] == kept[count-1] && (count == 12 || back[count] == 0), back)
	return errors.Join(err, failure)
}

// A batch whose outputs and gradients are of 16 bits, in columns of a wider matrix.
func outputsOf16Bits[T Float16 | BFloat16](t *testing.T, dtype Dtype, of func(float32) T) {
	onRanks(t, func(comm *Comm) error {
		model := must(NewModel())
		defer model.Close()
		must(0, errors.Join(model.SetOptimizer(AllTables, new(OptimizerOptions).LearningRate(2)),
			model.AddFeature(must(model.AddTable("a", 4, 2, new(TableOptions).Init(InitZeros))), "id", PoolingSum)))
		plan := must(NewCollectivePlan(comm, nil, model, nil))
		defer plan.Close()
		tables := must(NewCollection(comm, nil, model, plan, new(CollectionOptions).OutputDtype(dtype)))
		defer tables.Close()
		lookup := must(NewLookup(tables, nil))
		defer lookup.Close()
		out, ids, lengths := []T{of(9), of(9), of(9), of(9), of(9)}, Vector([]int32{1, 3}), Vector([]int32{1, 1})
		view := MatrixRows(out[:5], 2, 2, 3)
		err := errors.Join(lookup.Begin(Batch{Size: 2, Values: ids, Lengths: lengths}), lookup.Forward(0, view))
		for i := range out {
			ok(t, out[i] == of([]float32{0, 0, 9, 0, 0}[i]), out)
			out[i] = of(-0.5)
		}
		return errors.Join(err, lookup.SetGradient(0, view), lookup.Backward(UpdateApply), lookup.Begin(Batch{Size: 2, Values: ids, Lengths: lengths}),
			lookup.Forward(0, view), lookup.Backward(UpdateSkip), func() error {
				ok(t, out[0] == of(1) && out[2] == of(-0.5) && out[4] == of(1), out)
				return nil
			}())
	})
}

func TestOutputsOf16Bits(t *testing.T) {
	outputsOf16Bits(t, DtypeFloat16, Float16Of)
	outputsOf16Bits(t, DtypeBfloat16, BFloat16Of)
}

// Parameters of 16 bits and of more than two dimensions; views of their gradients have their type and shape.
func TestParametersOfEveryDtype(t *testing.T) {
	onRanks(t, func(comm *Comm) error {
		ddp, half, brain, wide := must(NewDdp(comm, nil)), make([]Float16, 8), make([]BFloat16, 2), make([]float64, 2)
		defer ddp.Close()
		must(ddp.AddParameter("half", Shaped(half, 2, 2, 2), Tensor{}))
		must(ddp.AddParameter("brain", Vector(brain), Tensor{}))
		must(ddp.AddParameter("wide", Vector(wide), Tensor{}))
		err := ddp.Commit()
		view, given := must(ddp.Gradient(0)), make([]Float16, 8)
		for i := range given {
			given[i] = Float16Of(float32(i * (1 + must(comm.Rank()))))
		}
		shape := view.Shape()
		ok(t, view.Dtype() == DtypeFloat16 && len(shape) == 3 && shape[2] == 2, shape)
		err = errors.Join(err, WriteView(view, given), WriteView(must(ddp.Gradient(1)), []BFloat16{BFloat16Of(1), BFloat16Of(2)}),
			WriteView(must(ddp.Gradient(2)), []float64{0.1, 0.2}), ddp.AllReduce(), ReadView(view, given))
		ok(t, given[7].Float32() == 10.5, given)
		_, wrong := view.Values()
		refusedWith(t, StatusInvalidArgument, "this view is of float16, not float32", wrong)
		refusedWith(t, StatusInvalidArgument, "9 elements for a view of shape [2 2 2]", WriteView(view, make([]Float16, 9)))
		return err
	})
}

func TestSlicesCanBeginAtALineOfTheCache(t *testing.T) {
	for length := range 100 {
		bytes, halves, reals := Aligned[uint8](length), Aligned[BFloat16](length), Aligned[float64](length)
		ok(t, len(bytes) == length && cap(halves) == length && len(reals) == length)
		for _, at := range []uintptr{uintptr(unsafe.Pointer(unsafe.SliceData(bytes))), uintptr(unsafe.Pointer(unsafe.SliceData(halves))),
			uintptr(unsafe.Pointer(unsafe.SliceData(reals)))} {
			ok(t, length == 0 || at%Alignment == 0, length, at)
		}
	}
}

//go:noinline
func waitingComms(group *Local, rank int, ended chan error) {
	comm := must(NewLocalComm(group, rank))
	go func() { ended <- comm.Barrier() }()
}

// A handle that only a running call refers to is not collected, for that would end the call.
func TestHandlesLiveDuringCalls(t *testing.T) {
	group, ended := must(NewLocal(2, 2)), make(chan error)
	defer group.Close()
	waitingComms(group, 1, ended)
	for range 20 {
		runtime.GC()
		time.Sleep(5 * time.Millisecond)
	}
	comm := must(NewLocalComm(group, 0))
	defer comm.Close()
	if err := errors.Join(comm.Barrier(), <-ended); err != nil {
		t.Error(err)
	}
}

// A tensor whose layout is in C memory, and that only a running call refers to.
func TestLayoutsLiveDuringCalls(t *testing.T) {
	values := make([]float32, 8)
	onRanks(t, func(comm *Comm) error {
		if must(comm.Rank()) == 1 {
			values := make([]float32, 8)
			for range 300 {
				if err := comm.AllReduce(Shaped(values, 2, 2, 2), ReductionSum); err != nil {
					return err
				}
			}
			return nil
		}
		for range 300 {
			runtime.GC()
			if err := comm.AllReduce(Shaped(values, 2, 2, 2), ReductionSum); err != nil {
				return err
			}
		}
		return nil
	})
}
