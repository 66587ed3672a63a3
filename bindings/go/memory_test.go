package shardrec_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	. "shardrec.org/shardrec"
)

func TestMemoryOfTheCPU(t *testing.T) {
	memory := must(NewMemory(DeviceTypeCpu, 0, 64))
	tensor := must(memory.Tensor(16, DtypeFloat32, 2, 3))
	got := []float32{9, 9, 9, 9, 9, 9}
	err := TensorCopy(Matrix(got, 2, 3), tensor, 0)
	ok(t, err == nil && slices.Equal(got, make([]float32, 6)), err, got)
	apart := make([]float32, 8)
	err = errors.Join(TensorCopy(tensor, Matrix([]float32{1, 2, 3, 4, 5, 6}, 2, 3), 0), TensorCopy(MatrixRows(apart, 2, 3, 4), tensor, 0),
		TensorCopy(Matrix(got, 2, 3).First(1), tensor.First(1), 0))
	ok(t, err == nil && slices.Equal(apart, []float32{1, 2, 3, 0, 4, 5, 6, 0}) && slices.Equal(got, []float32{1, 2, 3, 0, 0, 0}), err, apart, got)
	must(memory.Tensor(60, DtypeFloat32)) // one element

	_, err = memory.Tensor(0, DtypeFloat32, 17)
	refusedWith(t, StatusInvalidArgument, "does not end within the memory's 64 bytes", err)
	_, err = memory.Tensor(0, DtypeFloat32, 1, 1, 1, 1, 1, 1, 1, 1, 1)
	refusedWith(t, StatusInvalidArgument, "ndim is 9", err)
	_, err = NewMemory(DeviceTypeCpu, 0, -1)
	refusedWith(t, StatusInvalidArgument, "bytes is -1", err)
	refusedWith(t, StatusInvalidArgument, "dtype int32", TensorCopy(tensor, Matrix([]int32{1, 2, 3, 4, 5, 6}, 2, 3), 0))
	panics(t, "the first 3 rows of a tensor of 2", func() { tensor.First(3) })
	mlp := must(NewMlp(3, nil))
	defer mlp.Close()
	err = mlp.AddLinear(1, ActivationNone)
	ok(t, err == nil, err)
	refusedWith(t, StatusInvalidArgument, "a tensor of a Memory", mlp.Forward(tensor, Matrix(make([]float32, 2), 2, 1)))
	memory.Close()
	refusedWith(t, StatusInvalidHandle, "this Memory is closed", TensorCopy(Matrix(got, 2, 3), tensor, 0))
	_, err = memory.Tensor(0, DtypeFloat32, 1)
	refusedWith(t, StatusInvalidHandle, "this Memory is closed", err)
}

// Which of the three, the plug-in decides.
func TestNoDeviceIsProbed(t *testing.T) {
	_, err := ProbeJSON(context.Background(), "cuda:-1", 0, false)
	ok(t, slices.Contains([]Status{StatusInvalidArgument, StatusUnsupported, StatusDeviceError}, StatusOf(err)), err)
}

// A tensor keeps what it is of, and nothing else does.
func TestTensorsHoldTheirMemory(t *testing.T) {
	before := must(LiveObjects())
	tensor := func() Tensor { return must(must(NewMemory(DeviceTypeCpu, 0, 64)).Tensor(0, DtypeFloat32, 16)) }()
	for range 3 {
		runtime.GC()
	}
	got := make([]float32, 16)
	err := errors.Join(TensorCopy(tensor, Vector(slices.Repeat([]float32{7}, 16)), 0), TensorCopy(Vector(got), tensor, 0))
	ok(t, err == nil && got[15] == 7, err, got)
	runtime.KeepAlive(tensor)
	for range 1000 {
		if must(LiveObjects()) == before {
			return
		}
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	t.Error("memory that nobody holds was not given back")
}

// there is a tensor of a Memory on the device.
func there(t *testing.T, here Tensor, dtype Dtype, bytes int, shape ...int) Tensor {
	memory := must(NewMemory(DeviceTypeCuda, 0, bytes))
	t.Cleanup(func() { memory.Close() })
	tensor := must(memory.Tensor(0, dtype, shape...))
	must(0, TensorCopy(tensor, here, 0))
	return tensor
}

type left struct{ output, ofWeights, rows []float32 }

func stepOf(t *testing.T, onDevice bool) left {
	const rows, dim, bags = 20, 4, 3
	l := left{make([]float32, bags*dim), make([]float32, 5), make([]float32, rows*dim)}
	must(0, Run(1, func(comm *Comm) error {
		model := must(NewModel())
		defer model.Close()
		err := errors.Join(model.SetOptimizer(AllTables, new(OptimizerOptions).Optimizer(OptimizerRowwiseAdagrad).LearningRate(0.5)),
			model.AddFeature(must(model.AddTable("t", rows, dim, nil)), "f", PoolingSum))
		plan := must(NewCollectivePlan(comm, nil, model, nil))
		defer plan.Close()
		var options *CollectionOptions
		if onDevice {
			options = new(CollectionOptions).Device(0)
		}
		tables := must(NewCollection(comm, nil, model, plan, options))
		defer tables.Close()
		lookup := must(NewLookup(tables, new(LookupOptions).WeightGradient(true)))
		defer lookup.Close()
		ids, lengths, weights := Vector([]int64{3, 7, 3, 19, 0}), Vector([]int64{2, 0, 3}), Vector([]float32{1, 0.5, -2, 3, 0.25})
		output, gradient := Matrix(l.output, bags, dim), Matrix([]float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 0.1, 0.2, 0.3}, bags, dim)
		ofWeights := Vector(l.ofWeights)
		if onDevice {
			ids, lengths, weights = there(t, ids, DtypeInt64, 40, 5), there(t, lengths, DtypeInt64, 24, 3), there(t, weights, DtypeFloat32, 20, 5)
			output, gradient = there(t, output, DtypeFloat32, 48, bags, dim), there(t, gradient, DtypeFloat32, 48, bags, dim)
			ofWeights = there(t, ofWeights, DtypeFloat32, 20, 5)
		}
		for range 2 {
			err = errors.Join(err, lookup.Begin(Batch{Size: bags, Values: ids, Lengths: lengths, Weights: weights}), lookup.Forward(0, output), lookup.SetGradient(0, gradient),
				lookup.Backward(UpdateApply), lookup.WeightGradient(ofWeights))
		}
		if onDevice {
			refusedWith(t, StatusUnsupported, "on a CUDA device", comm.AllReduce(output, ReductionSum))
			err = errors.Join(err, TensorCopy(Matrix(l.output, bags, dim), output, 0), TensorCopy(Vector(l.ofWeights), ofWeights, 0))
		}
		return errors.Join(err, tables.ReadRange(0, TablePartWeights, 0, rows, Matrix(l.rows, rows, dim)))
	}))
	return l
}

// Where CUDA, or what stands in for it on the CPU, is there (bindings/run sets SHARDREC_TEST_DEVICE).
func TestAStepWithTensorsOnADevice(t *testing.T) {
	memory, err := NewMemory(DeviceTypeCuda, 0, 64)
	if os.Getenv("SHARDREC_TEST_DEVICE") == "" && (errors.Is(err, ErrUnsupported) || errors.Is(err, ErrDeviceError)) {
		t.Skip("no device: ", err)
	}
	tensor := must(must(memory, err).Tensor(0, DtypeFloat32, 16))
	memory.Close()
	refusedWith(t, StatusInvalidHandle, "this Memory is closed", TensorCopy(tensor, Vector(make([]float32, 16)), 0))
	_, err = NewMemory(DeviceTypeCuda, 99, 64)
	refusedWith(t, StatusInvalidArgument, "device 99 does not exist", err)
	cpu, device := stepOf(t, false), stepOf(t, true)
	ok(t, cpu.output[0] != 0 && cpu.ofWeights[4] != 0, cpu)
	ok(t, slices.Equal(cpu.output, device.output), cpu.output, device.output)
	ok(t, slices.Equal(cpu.ofWeights, device.ofWeights), cpu.ofWeights, device.ofWeights)
	ok(t, slices.Equal(cpu.rows, device.rows), cpu.rows, device.rows)
}

func TestAStackOnADevice(t *testing.T) {
	if memory, err := NewMemory(DeviceTypeCuda, 0, 64); err != nil {
		ok(t, os.Getenv("SHARDREC_TEST_DEVICE") == "", err)
		t.Skip("no device: ", err)
	} else {
		memory.Close()
	}
	const batch, inputs = 5, 3
	train := func(device int64) (output, weights []float32) {
		mlp := must(NewMlp(inputs, new(MlpOptions).Optimizer(OptimizerAdam).Seed(3).Device(device)))
		defer mlp.Close()
		must(0, errors.Join(mlp.AddLinear(4, ActivationRelu), mlp.AddCross(2), mlp.AddLinear(1, ActivationNone)))
		bias, _, err := mlp.Parameter(1)
		must(0, errors.Join(err, bias.Set([]float32{0.5, -0.25, 0.125, 1})))
		x, y := make([]float32, batch*inputs), make([]float32, batch)
		for i := range x {
			x[i] = float32(i%7) - 3
		}
		for range 3 {
			must(0, errors.Join(mlp.Forward(Matrix(x, batch, inputs), Matrix(y, batch, 1)), mlp.Backward(Matrix(y, batch, 1), Tensor{}), mlp.Step()))
		}
		weight, _, err := mlp.Parameter(0)
		must(0, err)
		return y, must(weight.Values())
	}
	output, weights := train(-1)
	deviceOutput, deviceWeights := train(0)
	for i, value := range append(output, weights...) {
		there := append(deviceOutput, deviceWeights...)[i]
		ok(t, value-there < 1e-4 && there-value < 1e-4, i, value, there)
	}
	_, err := NewMlp(inputs, new(MlpOptions).Device(99))
	refusedWith(t, StatusInvalidArgument, "device 99 does not exist", err)
}

// Layers of two ranks there, in a set: gradients are exchanged on the device, and close to those of the CPU. Parameters of
// the program's own are the host's here.
func TestASetWithAStackOnADevice(t *testing.T) {
	memory, err := NewMemory(DeviceTypeCuda, 0, 64)
	if err != nil {
		ok(t, os.Getenv("SHARDREC_TEST_DEVICE") == "", err)
		t.Skip("no device: ", err)
	}
	defer memory.Close()
	const batch = 3
	train := func(device int64) [2][]float32 {
		var all [2][]float32
		must(0, Run(2, func(comm *Comm) error {
			rank := must(comm.Rank())
			own := float32(rank)
			// Ranks begin apart: Commit copies the values of rank 0.
			mlp := must(NewMlp(2, new(MlpOptions).Optimizer(OptimizerAdam).Seed(int64(3+rank)).Device(device)))
			defer mlp.Close()
			ddp := must(NewDdp(comm, new(DdpOptions).Stream(0)))
			defer ddp.Close()
			_, refused := ddp.AddParameter("there", must(memory.Tensor(0, DtypeFloat32, 2)), Tensor{})
			refusedWith(t, StatusInvalidArgument, "a tensor of a Memory", refused)
			must(0, errors.Join(mlp.AddLinear(4, ActivationRelu), mlp.AddLinear(1, ActivationNone)))
			must(ddp.AddMlp("stack", mlp))
			err := ddp.Commit()
			x, y, dy := []float32{1, own, -0.5, 2, own + 1, 0.25}, make([]float32, batch), []float32{own + 0.5, -1, 0.25}
			for range 2 {
				err = errors.Join(err, ddp.Begin(true), mlp.Forward(Matrix(x, batch, 2), Matrix(y, batch, 1)), mlp.Backward(Matrix(dy, batch, 1), Tensor{}),
					ddp.End(), ddp.Wait())
				must(ddp.ClipGradients(ClipL2, 1))
				err = errors.Join(err, mlp.Step())
			}
			weight, _, failure := mlp.Parameter(0)
			must(0, errors.Join(err, failure, ddp.CheckEqual()))
			all[rank] = must(weight.Values())
			return nil
		}))
		return all
	}
	cpu, device := train(-1), train(0)
	ok(t, slices.Equal(device[0], device[1]) && device[0][0] != 0, device)
	for i, value := range cpu[0] {
		ok(t, value-device[0][i] < 1e-4 && device[0][i]-value < 1e-4, i, cpu, device)
	}
}

// The loss where a stack is, and metrics, with tensors there and here: the bits of the CPU.
func TestLossAndMetricsOnADevice(t *testing.T) {
	memory, err := NewMemory(DeviceTypeCuda, 0, 1024)
	if err != nil {
		ok(t, os.Getenv("SHARDREC_TEST_DEVICE") == "", err)
		t.Skip("no device: ", err)
	}
	defer memory.Close()
	logits, labels := []float32{0.5, -2, 3, 0, -1}, []float32{1, 0, 1, 0, 1}
	p, g := make([]float32, 5), make([]float32, 5)
	loss := must(BceWithLogits(nil, Vector(logits), Vector(labels), Vector(p), Vector(g)))
	cpu := must(NewMetrics(nil, nil))
	defer cpu.Close()
	must(0, errors.Join(cpu.Update(Vector(p), Vector(labels)), cpu.Compute()))

	stack := must(NewMlp(1, new(MlpOptions).Device(0)))
	defer stack.Close()
	metrics := must(NewMetrics(nil, new(MetricsOptions).Device(0)))
	defer metrics.Close()
	at := func(i int) Tensor { return must(memory.Tensor(256*i, DtypeFloat32, 5)) }
	must(0, TensorCopy(at(0), Vector(logits), 0))
	deviceLoss := must(BceWithLogits(stack, at(0), Vector(labels), at(1), Tensor{}))
	ok(t, deviceLoss == loss, deviceLoss, loss)
	must(0, errors.Join(EnqueueBceWithLogits(stack, at(0), Vector(labels), Tensor{}, at(2)), metrics.Update(at(1), Vector(labels)), metrics.Compute()))
	found := make([]float32, 5)
	must(0, TensorCopy(Vector(found), at(1), 0))
	ok(t, slices.Equal(found, p), found, p)
	must(0, TensorCopy(Vector(found), at(2), 0))
	ok(t, slices.Equal(found, g), found, g)
	for _, metric := range []Metric{MetricAuc, MetricLoss, MetricSamples} {
		ok(t, must(metrics.Get(metric)) == must(cpu.Get(metric)), metric)
	}

	// A wrong label is told by the next call that has the loss; a wrong sample by Compute.
	wrong := Vector([]float32{1, 0, 2, 0, 1})
	must(0, EnqueueBceWithLogits(stack, at(0), wrong, at(1), Tensor{}))
	_, err = BceWithLogits(stack, at(0), Vector(labels), Tensor{}, Tensor{})
	refusedWith(t, StatusInvalidArgument, "the label at position 2", err)
	must(0, metrics.Update(at(1), wrong))
	refusedWith(t, StatusInvalidArgument, "the label at position 7", metrics.Compute())
	_, err = BceWithLogits(nil, at(0), Vector(labels), Tensor{}, Tensor{})
	refusedWith(t, StatusUnsupported, "on a CUDA device", err)
	_, err = NewMetrics(nil, new(MetricsOptions).Device(99))
	refusedWith(t, StatusInvalidArgument, "device 99 does not exist", err)
}
