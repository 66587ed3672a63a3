package shardrec_test

import (
	"errors"
	"fmt"
	"testing"

	. "shardrec.org/shardrec"
)

// trainer is a small DLRM of one rank: two tables, two stacks of layers, DDP, metrics.
type trainer struct {
	handles     []interface{ Close() error }
	tables      *Collection
	lookup      *Lookup
	bottom, top *Mlp
	cross       *Interaction
	ddp         *Ddp
	metrics     *Metrics

	ids, lengths                                             []int64
	dense, labels, hidden, pooled, joined, logits, predicted []float32
	logitsGradient, joinedGradient, hiddenGradient           []float32
	loss                                                     float64
}

const mostSamples, features, width = 16, 2, 4

func newTrainer(comm *Comm) *trainer {
	model, adam := must(NewModel()), new(OptimizerOptions).Optimizer(OptimizerAdam).LearningRate(0.1)
	for _, name := range []string{"a", "b"} {
		must(0, model.AddFeature(must(model.AddTable(name, 50, width, nil)), name, PoolingSum))
	}
	plan := must(NewCollectivePlan(comm, nil, model, nil))
	t := &trainer{tables: must(NewCollection(comm, nil, model, plan, nil)), bottom: must(NewMlp(3, nil)), top: must(NewMlp(width+3, nil)),
		cross: must(NewInteraction(features, width, nil)), ddp: must(NewDdp(comm, nil)), metrics: must(NewMetrics(comm, nil))}
	t.lookup = must(NewLookup(t.tables, nil))
	must(0, errors.Join(t.bottom.AddLinear(width, ActivationRelu), t.top.AddLinear(1, ActivationNone), t.ddp.SetOptimizer(adam)))
	must(t.ddp.AddMlp("bottom", t.bottom))
	must(t.ddp.AddMlp("top", t.top))
	must(0, t.ddp.Commit())
	t.handles = []interface{ Close() error }{model, plan, t.lookup, t.tables, t.ddp, t.bottom, t.top, t.cross, t.metrics}
	t.renew()
	return t
}

// renew makes all slices anew; what a step writes before it reads it does not depend on what was in them.
func (t *trainer) renew() {
	t.ids, t.lengths = make([]int64, 2*features*mostSamples), make([]int64, features*mostSamples)
	for _, each := range []struct {
		values *[]float32
		width  int
	}{{&t.dense, 3}, {&t.labels, 1}, {&t.hidden, width}, {&t.pooled, features * width}, {&t.joined, width + 3}, {&t.logits, 1}, {&t.predicted, 1},
		{&t.logitsGradient, 1}, {&t.joinedGradient, width + 3}, {&t.hiddenGradient, width}} {
		*each.values = Aligned[float32](mostSamples * each.width)
	}
}

func (t *trainer) close() error {
	var err error
	for _, handle := range t.handles {
		err = errors.Join(err, handle.Close())
	}
	return err
}

// fill makes a batch whose data and size depend on its number only, and tells its samples and ids.
func (t *trainer) fill(number int) (samples, count int) {
	samples = number % (mostSamples + 1)
	for i := range features * samples {
		t.lengths[i] = int64((i + number) % 3)
		for range t.lengths[i] {
			t.ids[count] = int64((7*count + 3*number) % 50)
			count++
		}
	}
	for i := range samples {
		t.labels[i] = float32((number + i) % 2)
		for j := range 3 {
			t.dense[3*i+j] = float32((number+i*j)%5) / 5
		}
	}
	return samples, count
}

// forward scores the batch that was made last.
func (t *trainer) forward(samples, count int) error {
	hidden, pooled := Matrix(t.hidden, samples, width), Matrix(t.pooled, samples, features*width)
	joined, logits := Matrix(t.joined, samples, width+3), Matrix(t.logits, samples, 1)
	err := t.lookup.Begin(Batch{Size: samples, Values: Vector(t.ids[:count]), Lengths: Vector(t.lengths[:features*samples])})
	for _, call := range [...]func() error{
		func() error { return t.bottom.Forward(Matrix(t.dense, samples, 3), hidden) },
		func() error { return t.lookup.Forward(0, pooled) },
		t.look,
		func() error { return t.cross.Forward(hidden, pooled, joined) },
		func() error { return t.top.Forward(joined, logits) },
		func() (err error) {
			t.loss, err = BceWithLogits(nil, logits, Vector(t.labels[:samples]), Vector(t.predicted[:samples]), Matrix(t.logitsGradient, samples, 1))
			return err
		},
	} {
		if err == nil {
			err = call()
		}
	}
	return err
}

// step trains a batch.
func (t *trainer) step(number int) error {
	samples, count := t.fill(number)
	pooled, joinedGradient := Matrix(t.pooled, samples, features*width), Matrix(t.joinedGradient, samples, width+3)
	hiddenGradient := Matrix(t.hiddenGradient, samples, width)
	err := t.forward(samples, count)
	for _, call := range [...]func() error{
		func() error { return t.ddp.Begin(true) },
		func() error { return t.top.Backward(Matrix(t.logitsGradient, samples, 1), joinedGradient) },
		func() error { return t.cross.Backward(joinedGradient, hiddenGradient, pooled) },
		func() error { return t.lookup.SetGradient(0, pooled) },
		func() error { return t.lookup.SendGradients(UpdateApply) },
		func() error { return t.bottom.Backward(hiddenGradient, Tensor{}) },
		t.ddp.End, t.ddp.Wait, t.ddp.Step, func() error { return t.lookup.Backward(UpdateApply) },
		func() error { return t.metrics.Update(Vector(t.predicted[:samples]), Vector(t.labels[:samples])) },
	} {
		if err == nil {
			err = call()
		}
	}
	return err
}

// look asks for what a training loop asks for after a forward.
func (t *trainer) look() error {
	done, err := t.lookup.AllDone()
	shape, failure := t.lookup.OutputShape(0)
	if err = errors.Join(err, failure); err == nil && (done || shape.Columns != features*width) {
		return fmt.Errorf("no batch, or one of %+v", shape)
	}
	return err
}

// report asks for what a training loop asks for now and then.
func (t *trainer) report() error {
	_, step := t.tables.Step()
	_, stat := t.tables.Stat(StatSteps, AllTables)
	_, norm := t.ddp.ClipGradients(ClipL2, 1)
	err := errors.Join(step, stat, norm, t.metrics.Compute())
	_, samples := t.metrics.Get(MetricSamples)
	return errors.Join(err, samples, t.metrics.Reset())
}

// Batches change their length from step to step.
func TestASteadyStepAllocatesNothing(t *testing.T) {
	onOne := func(comm *Comm) error {
		training, number := newTrainer(comm), 0
		cube := Shaped(make([]float32, 24), 6, 2, 2)
		var err error
		allocations := testing.AllocsPerRun(200, func() {
			if err == nil {
				err = training.step(number)
			}
			if err == nil {
				err = training.report()
			}
			if err == nil {
				err = comm.AllReduce(cube.First(number%7), ReductionSum)
			}
			number++
		})
		ok(t, allocations == 0, allocations)
		return errors.Join(err, training.close())
	}
	if err := Run(1, onOne); err != nil {
		t.Error(err)
	}
}
