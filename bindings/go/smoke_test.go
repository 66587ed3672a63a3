package shardrec_test

import (
	"errors"
	"io"
	"math"
	"testing"

	. "shardrec.org/shardrec"
)

const rows, dim, ranks, batch, rate, table = 10, 4, 2, 2, 0.5, "usér 😀"

var values, lengths = [][]int64{{1, 7, 1}, {7, 3, 3}}, [][]int64{{2, 1}, {1, 2}}

// Two ranks train two steps around refused batches; weights, the error's parts, and closing out of order.
func TestTwoRanksTrainAroundARefusedBatch(t *testing.T) {
	err := Run(ranks, func(comm *Comm) error { return trainRank(t, comm) })
	if live := must(LiveObjects()); err != nil || live != 0 || Hash64(7, []byte("id")) != 0x6550b7d1d89c43a {
		t.Fatalf("error %v, live objects at the end: %d, or the hash is not XXH3", err, live)
	}
}

func trainRank(t *testing.T, comm *Comm) error {
	rank := must(comm.Rank())
	sgd, zeros, rowWise := new(OptimizerOptions).LearningRate(rate), new(TableOptions).Init(InitZeros), new(PlanOptions).Sharding(ShardingRowWise)
	model := must(NewModel())
	err := errors.Join(comm.Set(CommPropertyStepSeconds, 60), model.SetOptimizer(AllTables, sgd), model.AddFeature(must(model.AddTable(table, rows, dim, zeros)), "id", PoolingSum))
	plan := must(NewCollectivePlan(comm, nil, model, rowWise))
	tables := must(NewCollection(comm, nil, model, plan, new(CollectionOptions).NonFinite(NonFiniteError)))
	lookup := must(NewLookup(tables, nil))
	weights := make([]float32, rows*dim)
	err = errors.Join(err, step(lookup, rank), refused(lookup, rank), notFinite(lookup, rank), step(lookup, rank), tables.ReadRange(0, TablePartWeights, 0, rows, Matrix(weights, rows, dim)))
	for i, want := range expected() {
		if weights[i] != want || weights[7*dim] == 0 || must(tables.Step()) != 2 {
			t.Errorf("rank %d: weight %d is %v, not %v, or not after two steps", rank, i, weights[i], want)
		}
	}
	if bad := must(tables.Stat(StatTableNonFinite, 0)); bad != float64(rank) {
		t.Errorf("rank %d counts %v batches with a NaN", rank, bad)
	}
	// Both ranks write row 9; the higher one's entry stays. Rank 0 reads rows 9 and 1.
	mine, got := []float32{float32(rank + 1), 0, 0, 0}, make([]float32, 2*dim)
	err = errors.Join(err, tables.WriteRows(0, TablePartWeights, Vector([]int32{9}), Matrix(mine, 1, dim)))
	if rank == 0 {
		err = errors.Join(err, tables.ReadRows(0, TablePartWeights, Vector([]int64{9, 1}), Matrix(got, 2, dim)))
		if got[0] != 2 || got[dim] != weights[dim] {
			t.Errorf("rows 9 and 1 are %v", got)
		}
	} else {
		err = errors.Join(err, tables.ReadRows(0, TablePartWeights, Tensor{}, Tensor{}))
	}
	err = errors.Join(err, comm.Shutdown())
	for _, handle := range []io.Closer{comm, plan, tables, model, lookup, lookup} {
		err = errors.Join(err, handle.Close())
	}
	if status := StatusOf(lookup.Backward(UpdateApply)); status != StatusInvalidHandle {
		t.Errorf("a closed lookup gave status %d", status)
	}
	return err
}

func step(lookup *Lookup, rank int) error {
	out := make([]float32, batch*dim)
	err := errors.Join(lookup.Begin(Batch{Size: batch, Values: Vector(values[rank]), Lengths: Vector(lengths[rank])}), lookup.Forward(0, Matrix(out, batch, dim)))
	for i := range out {
		out[i] += float32(rank + 1 + i%dim)
	}
	return errors.Join(err, lookup.SetGradient(0, Matrix(out, batch, dim)), lookup.SendGradients(UpdateApply),
		lookup.BackwardBegin(UpdateApply), lookup.BackwardWait())
}

func refused(lookup *Lookup, rank int) error {
	ids := append([]int64(nil), values[rank]...)
	ids[2] += int64(rank) * rows // rank 1's third id is out of range
	err := errors.Join(lookup.Begin(Batch{Size: batch, Values: Vector(ids), Lengths: Vector(lengths[rank])}), lookup.Forward(0, Matrix(make([]float32, batch*dim), batch, dim)))
	var e *Error
	if !errors.As(err, &e) || StatusOf(e) != StatusInvalidBatch || e.Rank == nil || *e.Rank != 1 || e.Position == nil || *e.Position != 2 || e.Table != table || e.Feature != "id" || e.Operation == "" {
		return errors.Join(errors.New("not the error of rank 1's third id"), err)
	}
	return nil
}

// Option NON_FINITE: both ranks hear where rank 1 has a NaN, and no row has changed.
func notFinite(lookup *Lookup, rank int) error {
	gradient := make([]float32, batch*dim)
	err := errors.Join(lookup.Begin(Batch{Size: batch, Values: Vector(values[rank]), Lengths: Vector(lengths[rank])}), lookup.Forward(0, Matrix(gradient, batch, dim)))
	if rank == 1 {
		gradient[dim+2] = float32(math.NaN())
	}
	err = errors.Join(err, lookup.SetGradient(0, Matrix(gradient, batch, dim)))
	refusal := lookup.Backward(UpdateApply)
	var e *Error
	if !errors.As(refusal, &e) || StatusOf(e) != StatusInvalidBatch || e.Rank == nil || *e.Rank != 1 || e.Position == nil || *e.Position != 1 || e.Table != table || e.Feature != "id" {
		return errors.Join(errors.New("not the error of rank 1's second row"), err, refusal)
	}
	return err
}

// Three ranks exchange tensors; two of them in a part of their own.
func TestCollectivesOnTensors(t *testing.T) {
	err := Run(3, func(comm *Comm) error {
		rank := must(comm.Rank())
		name, all := []int32{int32(rank + 5)}, make([]int32, 3)
		err := errors.Join(comm.AllGather(Vector(name), Vector(all)), comm.Broadcast(Vector(name), 2))
		if all[0] != 5 || all[1] != 6 || all[2] != 7 || name[0] != 7 {
			t.Errorf("rank %d gathered %v and was told %v", rank, all, name)
		}
		sum, part := []float32{1, 2, float32(rank)}, []float32{0}
		err = errors.Join(err, comm.ReduceScatter(Vector(sum), Vector(part), ReductionSum))
		if want := []float32{3, 6, 3}[rank]; part[0] != want {
			t.Errorf("rank %d has %v of the sum, not %v", rank, part[0], want)
		}
		// Rank r sends r rows to each; all are its number.
		sent, received := []int64{int64(rank), int64(rank), int64(rank)}, []int64{0, 1, 2}
		rows := make([]float32, 3*rank)
		for i := range rows {
			rows[i] = float32(rank)
		}
		got := make([]float32, 3)
		err = errors.Join(err, comm.AllToAll(Vector(rows), Vector(sent), Vector(got), Vector(received)),
			comm.AllToAll(Vector(all), Tensor{}, Vector(all), Tensor{}))
		if got[0] != 1 || got[1] != 2 || got[2] != 2 || all[2] != int32(rank+5) {
			t.Errorf("rank %d received %v and %v", rank, got, all)
		}
		pair := must(comm.Split(-(rank / 2), -rank))
		if (pair == nil) != (rank == 2) {
			t.Errorf("rank %d has the part %v", rank, pair)
		}
		if pair != nil {
			if must(pair.Size()) != 2 || must(pair.Rank()) != 1-rank {
				t.Errorf("rank %d is not where its key says", rank)
			}
			err = errors.Join(err, pair.Barrier(), pair.Shutdown())
			err = errors.Join(err, pair.Close())
		}
		return errors.Join(err, comm.Shutdown())
	})
	if live := must(LiveObjects()); err != nil || live != 0 {
		t.Fatalf("error %v, live objects at the end: %d", err, live)
	}
}

// Two steps of SGD on the whole table, in a plain loop.
func expected() (weights [rows * dim]float32) {
	for range 2 {
		var gradient [rows * dim]float32
		for rank, ids := range values {
			for _, length := range lengths[rank] {
				for d := range int64(dim) {
					out := float32(rank+1) + float32(d)
					for _, id := range ids[:length] {
						out += weights[id*dim+d]
					}
					for _, id := range ids[:length] {
						gradient[id*dim+d] += out / ranks
					}
				}
				ids = ids[length:]
			}
		}
		for i := range weights {
			weights[i] -= rate * gradient[i]
		}
	}
	return weights
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
