package shardrec_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"shardrec.org/shardrec"
)

// Two ranks, each a goroutine, train a table that is cut into rows between them.
func Example() {
	err := shardrec.Run(2, func(comm *shardrec.Comm) error {
		model, err := shardrec.NewModel()
		if err != nil {
			return err
		}
		defer model.Close()
		table, err := model.AddTable("user", 943, 64, new(shardrec.TableOptions).Init(shardrec.InitZeros))
		if err != nil {
			return err
		}
		sgd := new(shardrec.OptimizerOptions).LearningRate(0.5)
		if err := errors.Join(model.SetOptimizer(shardrec.AllTables, sgd), model.AddFeature(table, "user_id", shardrec.PoolingSum)); err != nil {
			return err
		}
		plan, err := shardrec.NewCollectivePlan(comm, nil, model, new(shardrec.PlanOptions).Sharding(shardrec.ShardingRowWise))
		if err != nil {
			return err
		}
		defer plan.Close()
		tables, err := shardrec.NewCollection(comm, nil, model, plan, nil)
		if err != nil {
			return err
		}
		defer tables.Close()
		lookup, err := shardrec.NewLookup(tables, nil)
		if err != nil {
			return err
		}
		defer lookup.Close()

		// Two samples: the first has the ids 3 and 14, the second 15.
		ids, lengths := []int64{3, 14, 15}, []int64{2, 1}
		out := shardrec.Aligned[float32](2 * 64)
		if err := lookup.Begin(shardrec.Batch{Size: 2, Values: shardrec.Vector(ids), Lengths: shardrec.Vector(lengths)}); err != nil {
			return err
		}
		if err := lookup.Forward(0, shardrec.Matrix(out, 2, 64)); err != nil {
			return err
		}
		for i := range out {
			out[i] -= 1 // the gradient of (out - 1)^2 / 2
		}
		if err := lookup.SetGradient(0, shardrec.Matrix(out, 2, 64)); err != nil {
			return err
		}
		if err := lookup.Backward(shardrec.UpdateApply); err != nil {
			return err
		}

		row := make([]float32, 64)
		err = tables.ReadRange(0, shardrec.TablePartWeights, 15, 1, shardrec.Matrix(row, 1, 64)) // every rank reads
		if rank, _ := comm.Rank(); rank == 0 {
			fmt.Println("the row of id 15 begins with", row[0])
		}
		return errors.Join(err, comm.Shutdown())
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: the row of id 15 begins with 0.5
}

// The end of the context aborts the ranks: none of them waits for its deadline.
func ExampleRunContext() {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	err := shardrec.RunContext(ctx, 2, func(_ context.Context, comm *shardrec.Comm) error {
		if rank, err := comm.Rank(); rank == 1 {
			time.Sleep(200 * time.Millisecond) // the other one waits
			return err
		}
		return comm.Barrier()
	})
	fmt.Println(err)
	// Output: context deadline exceeded
}

// What is wrong with a call is found by its status, and where, by the parts of the error.
func ExampleError() {
	model, err := shardrec.NewModel()
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()
	_, err = model.AddTable("user", -1, 64, nil)
	var e *shardrec.Error
	fmt.Println(errors.Is(err, shardrec.ErrInvalidArgument), errors.As(err, &e) && e.Status == shardrec.StatusInvalidArgument)
	// Output: true true
}

// A tensor of three dimensions, and its first rows: the layout is made once.
func ExampleShaped() {
	values := make([]float32, 4*2*3)
	batches := shardrec.Shaped(values, 4, 2, 3)
	err := shardrec.Run(1, func(comm *shardrec.Comm) error {
		for samples := range 5 {
			if err := comm.AllReduce(batches.First(samples), shardrec.ReductionSum); err != nil {
				return err
			}
		}
		return nil
	})
	fmt.Println(err)
	// Output: <nil>
}

// A checkpoint that a rank may stop: by the end of a context, or by a control whose progress others read.
func ExampleWithControl() {
	folder, err := os.MkdirTemp("", "checkpoint")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	control, err := shardrec.NewControl()
	if err != nil {
		log.Fatal(err)
	}
	defer control.Close()
	err = shardrec.Run(1, func(comm *shardrec.Comm) error {
		checkpoint, err := shardrec.NewCheckpoint(comm, folder, nil)
		if err != nil {
			return err
		}
		defer checkpoint.Close()
		ctx := shardrec.WithControl(context.Background(), control)
		position := []int64{42}
		return errors.Join(checkpoint.SetTensor("position", shardrec.Vector(position)), checkpoint.Commit(ctx, 1))
	})
	progress, failure := control.Progress()
	fmt.Println(errors.Join(err, failure), progress.Done == progress.Total)
	// Output: <nil> true
}

// commit saves a model of one table whose rows are zero.
func commit(folder string) error {
	return shardrec.Run(1, func(comm *shardrec.Comm) error {
		model, err := shardrec.NewModel()
		if err != nil {
			return err
		}
		defer model.Close()
		table, err := model.AddTable("user", 943, 64, new(shardrec.TableOptions).Init(shardrec.InitZeros))
		if err = errors.Join(err, model.AddFeature(table, "user_id", shardrec.PoolingSum)); err != nil {
			return err
		}
		plan, err := shardrec.NewCollectivePlan(comm, nil, model, nil)
		if err != nil {
			return err
		}
		defer plan.Close()
		tables, err := shardrec.NewCollection(comm, nil, model, plan, nil)
		if err != nil {
			return err
		}
		defer tables.Close()
		checkpoint, err := shardrec.NewCheckpoint(comm, folder, nil)
		if err != nil {
			return err
		}
		defer checkpoint.Close()
		return errors.Join(checkpoint.AddCollection("tables", tables), checkpoint.Commit(context.Background(), 1))
	})
}

// Any number of goroutines look up at once; Refresh puts a newer checkpoint under them.
func ExampleOpenScorer() {
	folder, err := os.MkdirTemp("", "checkpoint")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	if err := commit(folder); err != nil {
		log.Fatal(err)
	}
	scorer, err := shardrec.OpenScorer(context.Background(), folder, -1, nil) // the newest checkpoint
	if err != nil {
		log.Fatal(err)
	}
	defer scorer.Close()
	failures := make(chan error)
	for range 4 {
		go func() {
			ids, lengths, out := []int64{3, 14, 15}, []int64{2, 1}, make([]float32, 2*64)
			_, err := scorer.Lookup(0, shardrec.Batch{Size: 2, Values: shardrec.Vector(ids), Lengths: shardrec.Vector(lengths)}, shardrec.Matrix(out, 2, 64))
			failures <- err
		}()
	}
	for range 4 {
		err = errors.Join(err, <-failures)
	}
	fmt.Println(err)
	// Output: <nil>
}
