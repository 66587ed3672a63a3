// Command dlrm is a DLRM from the first step to serving: tables sharded over ranks, dense layers trained data-parallel,
// checkpoints, and a scorer.
//
//	dlrm train DIR      50 steps on 2 ranks, goroutines of this process; saved in DIR
//	dlrm resume DIR     50 more on 3 ranks
//	dlrm serve DIR      scores the test samples, from two goroutines
//
// To build it: go mod tidy, go build (bindings/go/README.md has what must be installed, and how programs find it).
//
// Ranks may be processes: shardrec launch --nproc 2 -- dlrm train DIR. The same program stands in examples/cpp,
// examples/java and examples/rust; their checkpoints are equal, byte for byte.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"

	sr "shardrec.org/shardrec"
)

// train is what one rank does: from nothing, or from the newest checkpoint in the directory on.
func train(ctx context.Context, comm *sr.Comm, directory string, resume bool) error {
	var r rank
	defer r.close()
	if err := r.open(comm, directory); err != nil {
		return err
	}
	position := []int64{0} // what else a run needs to go on: where it is in the data
	if resume {
		if err := inOrder(
			func() error { return r.checkpoint.Open(-1) },
			func() error { return r.checkpoint.Load(ctx) },
			func() error { return r.checkpoint.GetTensor("position", 0, sr.Vector(position)) },
		); err != nil {
			return err
		}
	}
	for end := position[0] + steps; position[0] < end; position[0]++ {
		if err := r.step(int(position[0])); err != nil {
			return err
		}
	}
	var area float64
	err := inOrder(
		func() error { return r.checkpoint.SetTensor("position", sr.Vector(position)) },
		func() error { return r.checkpoint.Commit(ctx, int(position[0])) },
		func() (err error) { area, err = r.test(); return err },
		comm.Shutdown,
	)
	if err == nil && r.number == 0 {
		fmt.Printf("step %d, %d ranks: test AUC %.4f\n", position[0], r.ranks, area)
	}
	return err
}

func trainAll(ctx context.Context, directory string, resume bool) error {
	if _, launched := os.LookupEnv("WORLD_SIZE"); launched { // this process is a rank
		comm, err := sr.JoinFromEnvContext(ctx, nil)
		if err != nil {
			return err
		}
		defer comm.Close()
		return train(ctx, comm, directory, resume)
	}
	ranks := 2
	if resume {
		ranks = 3
	}
	return sr.RunContext(ctx, ranks, func(ctx context.Context, comm *sr.Comm) error { return train(ctx, comm, directory, resume) })
}

// serve: every goroutine may call the scorer at any time; this is all that a service needs of the checkpoint.
func serve(ctx context.Context, directory string) error {
	scorer, err := sr.OpenScorer(ctx, directory, -1, nil)
	if err != nil {
		return err
	}
	defer scorer.Close()
	all, err := makeBatch(testFrom, testSize)
	if err != nil {
		return err
	}
	const size = testSize / 2
	scores, failures := make([]float32, testSize), make([]error, 2)
	var halves sync.WaitGroup
	for half := range failures {
		halves.Add(1)
		go func() {
			defer halves.Done()
			b, err := makeBatch(testFrom+half*size, size)
			if err == nil {
				_, err = scorer.Predict(sr.Batch{Size: size, Values: sr.Vector(b.ids), Lengths: sr.Vector(b.lengths)}, sr.Matrix(b.dense, size, denseColumns), sr.Vector(scores[half*size:][:size]))
			}
			failures[half] = err
		}()
	}
	halves.Wait()
	metrics, err := sr.NewMetrics(nil, nil)
	if err != nil {
		return err
	}
	defer metrics.Close()
	var info sr.ScorerInfo
	var area float64
	err = inOrder(
		func() error { return errors.Join(failures...) },
		func() (err error) { info, err = scorer.Info(); return err },
		func() (err error) { area, err = auc(metrics, scores, all.labels); return err },
	)
	if err == nil {
		fmt.Printf("serving step %d: test AUC %.4f\n", info.Step, area)
	}
	return err
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: dlrm train|resume|serve DIR")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) // Ctrl-C ends all ranks
	defer stop()
	var err error
	switch what, directory := os.Args[1], os.Args[2]; what {
	case "train", "resume":
		err = trainAll(ctx, directory, what == "resume")
	case "serve":
		err = serve(ctx, directory)
	default:
		err = fmt.Errorf("%q is none of train, resume and serve", what)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
