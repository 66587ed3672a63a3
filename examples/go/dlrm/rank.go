package main

import (
	"errors"
	"fmt"

	sr "shardrec.org/shardrec"
)

const (
	dim                = 16      // columns of a table
	batchSize, steps   = 256, 50 // samples of all ranks together; steps of a run
	testFrom, testSize = 1_000_000, 2048
)

// rank is one rank's part of a training.
type rank struct {
	number, ranks, width int // width: columns of the interaction's output
	model                *sr.Model
	plan                 *sr.Plan
	tables               *sr.Collection
	lookup               *sr.Lookup
	bottom, top          *sr.Mlp
	cross                *sr.Interaction
	ddp                  *sr.Ddp
	metrics              *sr.Metrics
	checkpoint           *sr.Checkpoint
	handles              []interface{ Close() error }
	pooled, dense        []float32 // of the last forward
	crossed, logits      []float32
}

// inOrder calls until a call fails.
func inOrder(calls ...func() error) error {
	for _, call := range calls {
		if err := call(); err != nil {
			return err
		}
	}
	return nil
}

// made is a call that makes a handle of the rank.
func made[T interface{ Close() error }](r *rank, to *T, create func() (T, error)) func() error {
	return func() (err error) {
		if *to, err = create(); err == nil {
			r.handles = append(r.handles, *to)
		}
		return err
	}
}

func (r *rank) close() {
	for _, handle := range r.handles {
		handle.Close()
	}
}

func addTables(model *sr.Model) error {
	for f := range features {
		table, err := model.AddTable(fmt.Sprint("table", f), tableRows, dim, nil)
		if err = errors.Join(err, model.AddFeature(table, fmt.Sprint("feature", f), sr.PoolingSum)); err != nil {
			return err
		}
	}
	return model.SetOptimizer(sr.AllTables, new(sr.OptimizerOptions).Optimizer(sr.OptimizerRowwiseAdagrad).LearningRate(0.1))
}

func addLayers(layers *sr.Mlp, outputs int) error {
	return errors.Join(layers.AddLinear(16, sr.ActivationRelu), layers.AddLinear(outputs, sr.ActivationNone))
}

func (r *rank) open(comm *sr.Comm, directory string) error {
	options := func(seed int64) *sr.MlpOptions {
		return new(sr.MlpOptions).Seed(seed).Optimizer(sr.OptimizerAdagrad).LearningRate(0.02)
	}
	return inOrder(
		func() (err error) { r.number, err = comm.Rank(); return err },
		func() (err error) { r.ranks, err = comm.Size(); return err },
		made(r, &r.model, sr.NewModel),
		func() error { return addTables(r.model) },
		made(r, &r.plan, func() (*sr.Plan, error) { return sr.NewCollectivePlan(comm, nil, r.model, nil) }),
		made(r, &r.tables, func() (*sr.Collection, error) {
			return sr.NewCollection(comm, nil, r.model, r.plan, new(sr.CollectionOptions).Seed(7))
		}),
		made(r, &r.lookup, func() (*sr.Lookup, error) { return sr.NewLookup(r.tables, nil) }),
		made(r, &r.cross, func() (*sr.Interaction, error) { return sr.NewInteraction(features, dim, nil) }),
		func() (err error) { r.width, err = r.cross.Outputs(); return err },
		made(r, &r.bottom, func() (*sr.Mlp, error) { return sr.NewMlp(denseColumns, options(1)) }),
		func() error { return addLayers(r.bottom, dim) },
		made(r, &r.top, func() (*sr.Mlp, error) { return sr.NewMlp(r.width, options(2)) }),
		func() error { return addLayers(r.top, 1) },
		made(r, &r.ddp, func() (*sr.Ddp, error) { return sr.NewDdp(comm, nil) }),
		func() error { _, err := r.ddp.AddMlp("bottom", r.bottom); return err },
		func() error { _, err := r.ddp.AddMlp("top", r.top); return err },
		func() error { return r.ddp.Commit() },
		made(r, &r.metrics, func() (*sr.Metrics, error) { return sr.NewMetrics(comm, nil) }),
		made(r, &r.checkpoint, func() (*sr.Checkpoint, error) { return sr.NewCheckpoint(comm, directory, nil) }),
		func() error { return r.checkpoint.AddCollection("tables", r.tables) },
		func() error { return r.checkpoint.AddMlp("bottom", r.bottom) },
		func() error { return r.checkpoint.AddMlp("top", r.top) },
	)
}

// part is this rank's of the samples [first, first + size).
func (r *rank) part(first, size int) (*batch, error) {
	from, to := size*r.number/r.ranks, size*(r.number+1)/r.ranks
	return makeBatch(first+from, to-from)
}

func (r *rank) forward(b *batch) error {
	r.pooled, r.dense = make([]float32, b.size*features*dim), make([]float32, b.size*dim)
	r.crossed, r.logits = make([]float32, b.size*r.width), make([]float32, b.size)
	dense, pooled := sr.Matrix(r.dense, b.size, dim), sr.Matrix(r.pooled, b.size, features*dim)
	crossed := sr.Matrix(r.crossed, b.size, r.width)
	return inOrder(
		func() error {
			return r.lookup.Begin(sr.Batch{Size: b.size, Values: sr.Vector(b.ids), Lengths: sr.Vector(b.lengths)})
		},
		func() error { return r.bottom.Forward(sr.Matrix(b.dense, b.size, denseColumns), dense) },
		func() error { return r.lookup.Forward(0, pooled) },
		func() error { return r.cross.Forward(dense, pooled, crossed) },
		func() error { return r.top.Forward(crossed, sr.Matrix(r.logits, b.size, 1)) },
	)
}

func (r *rank) step(number int) error {
	b, err := r.part(number*batchSize, batchSize)
	if err = errors.Join(err, r.forward(b)); err != nil {
		return err
	}
	gradient := make([]float32, b.size)
	dense, pooled := sr.Matrix(make([]float32, len(r.dense)), b.size, dim), sr.Matrix(make([]float32, len(r.pooled)), b.size, features*dim)
	crossed := sr.Matrix(make([]float32, len(r.crossed)), b.size, r.width)
	if _, err := sr.BceWithLogits(nil, sr.Vector(r.logits), sr.Vector(b.labels), sr.Tensor{}, sr.Vector(gradient)); err != nil {
		return err
	}
	return inOrder(
		func() error { return r.ddp.Begin(true) },
		func() error { return r.top.Backward(sr.Matrix(gradient, b.size, 1), crossed) },
		func() error { return r.cross.Backward(crossed, dense, pooled) },
		func() error { return r.lookup.SetGradient(0, pooled) },
		func() error { return r.lookup.SendGradients(sr.UpdateApply) }, // travel while the bottom layers compute
		func() error { return r.bottom.Backward(dense, sr.Tensor{}) },
		r.ddp.End,
		func() error { return r.lookup.Backward(sr.UpdateApply) },
		r.ddp.Wait, // the mean over the ranks is there
		r.bottom.Step, r.top.Step,
	)
}

// auc is the area under the ROC curve of what all ranks have scored.
func auc(metrics *sr.Metrics, scores, labels []float32) (float64, error) {
	if err := errors.Join(metrics.Reset(), metrics.Update(sr.Vector(scores), sr.Vector(labels)), metrics.Compute()); err != nil {
		return 0, err
	}
	return metrics.Get(sr.MetricAuc)
}

func (r *rank) test() (float64, error) {
	b, err := r.part(testFrom, testSize)
	if err = errors.Join(err, r.forward(b)); err != nil {
		return 0, err
	}
	scores := make([]float32, b.size)
	if _, err := sr.BceWithLogits(nil, sr.Vector(r.logits), sr.Vector(b.labels), sr.Vector(scores), sr.Tensor{}); err != nil {
		return 0, err
	}
	return auc(r.metrics, scores, b.labels)
}
