// A first program: two ranks, threads of this process, share an embedding table and train it until the numbers of each
// user's row add up to 1.
package main

import (
	"fmt"
	"log"

	sr "shardrec.org/shardrec"
)

const ranks, batch, dim, steps = 2, 4, 8, 20

// train trains on one rank; returns its last loss.
func train(comm *sr.Comm) (loss float32, err error) {
	model, err := sr.NewModel()
	if err != nil {
		return 0, err
	}
	defer model.Close()
	table, err := model.AddTable("user", 1000, dim, nil)
	if err == nil {
		err = model.AddFeature(table, "user_id", sr.PoolingSum)
	}
	if err != nil {
		return 0, err
	}
	plan, err := sr.NewCollectivePlan(comm, nil, model, nil) // which rows live where
	if err != nil {
		return 0, err
	}
	defer plan.Close()
	tables, err := sr.NewCollection(comm, nil, model, plan, nil)
	if err != nil {
		return 0, err
	}
	defer tables.Close()
	step, err := sr.NewLookup(tables, nil)
	if err != nil {
		return 0, err
	}
	defer step.Close()
	rank, err := comm.Rank()
	if err == nil {
		err = tables.SetLearningRate(sr.AllTables, 0.1)
	}
	ids, lengths := []int64{0, 11, 222, int64(900 + rank)}, []int64{1, 1, 1, 1} // four bags of one id
	pooled, gradient := sr.Aligned[float32](batch*dim), sr.Aligned[float32](batch*dim)
	given := sr.Batch{Size: batch, Values: sr.Vector(ids), Lengths: sr.Vector(lengths)}
	for s := 0; s < steps && err == nil; s++ {
		if err = step.Begin(given); err != nil {
			break
		}
		if err = step.Forward(0, sr.Matrix(pooled, batch, dim)); err != nil {
			break
		}
		loss = 0
		for bag := 0; bag < batch; bag++ {
			row, sum := pooled[bag*dim:(bag+1)*dim], float32(-1)
			for _, x := range row {
				sum += x
			}
			loss += sum * sum / batch
			for c := range row {
				gradient[bag*dim+c] = 2 * sum / batch
			}
		}
		if err = step.SetGradient(0, sr.Matrix(gradient, batch, dim)); err == nil {
			err = step.Backward(sr.UpdateApply) // exchanges gradients, updates rows
		}
	}
	return loss, err
}

func main() {
	var losses [ranks]float32
	err := sr.Run(ranks, func(comm *sr.Comm) error {
		rank, err := comm.Rank()
		if err == nil {
			losses[rank], err = train(comm)
		}
		return err
	})
	if err != nil || losses[0] > 0.01 || losses[1] > 0.01 {
		log.Fatal(losses, err)
	}
	fmt.Printf("last losses: %.5e, %.5e\n", losses[0], losses[1])
}
