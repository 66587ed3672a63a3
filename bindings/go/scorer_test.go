package shardrec_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand"
	"runtime"
	"slices"
	"sync"
	"testing"

	. "shardrec.org/shardrec"
)

func TestHashesOfABatchAreThoseOfItsIds(t *testing.T) {
	ids, rows, narrow := make([]int64, 1_000), make([]int64, 1_000), make([]int32, 1_000)
	for i := range ids {
		ids[i] = rand.Int63() - rand.Int63()
	}
	err := errors.Join(Hash64IDs(7, Vector(ids), 943, Vector(rows)), Hash64IDs(7, Vector(ids), 943, Vector(narrow)))
	for i, id := range ids {
		hash := Hash64(7, binary.LittleEndian.AppendUint64(nil, uint64(id)))
		ok(t, rows[i] == int64(hash%943) && narrow[i] == int32(hash%943), id, rows[i], narrow[i])
		rows[i] = int64(hash)
	}
	err = errors.Join(err, Hash64IDs(7, Vector(ids), 0, Vector(ids))) // in place
	ok(t, err == nil && slices.Equal(ids, rows), err)
	refusedWith(t, StatusInvalidArgument, "", Hash64IDs(7, Vector(ids), -1, Vector(ids)))
	allocations := testing.AllocsPerRun(100, func() { err = errors.Join(err, Hash64IDs(7, Vector(ids), 943, Vector(rows))) })
	ok(t, err == nil && allocations == 0, err, allocations)
}

// served is a checkpoint of the trainer's model after so many steps, and what the ranks themselves compute from it.
type served struct {
	root    string
	batches []servedBatch
}

type servedBatch struct {
	samples                int
	ids, lengths           []int64
	dense, pooled, correct []float32
}

func checkpointed(t *testing.T) served {
	s := served{root: t.TempDir()}
	if err := Run(1, func(comm *Comm) error {
		training := newTrainer(comm)
		checkpoint := must(NewCheckpoint(comm, s.root, nil))
		defer checkpoint.Close()
		err := errors.Join(checkpoint.AddCollection("tables", training.tables), checkpoint.AddMlp("bottom", training.bottom),
			checkpoint.AddMlp("top", training.top))
		for number := range 20 {
			if err == nil {
				err = training.step(number)
			}
		}
		err = errors.Join(err, checkpoint.Commit(context.Background(), 20))
		for number := 1; number <= mostSamples && err == nil; number++ {
			samples, count := training.fill(number)
			b := servedBatch{samples: samples, ids: slices.Clone(training.ids[:count]), lengths: slices.Clone(training.lengths[:features*samples]),
				dense: slices.Clone(training.dense[:3*samples])}
			err = training.forward(samples, count)
			b.pooled, b.correct = slices.Clone(training.pooled[:samples*features*width]), slices.Clone(training.predicted[:samples])
			s.batches = append(s.batches, b)
		}
		// Another checkpoint, which nothing has changed since.
		return errors.Join(err, training.lookup.Backward(UpdateSkip), checkpoint.Commit(context.Background(), 21), training.close())
	}); err != nil {
		t.Fatal(err)
	}
	return s
}

// Many goroutines call one scorer, which another checkpoint is put under: no call is refused, and all get the bits of
// the ranks' own forward.
func TestAScorerServes64GoroutinesAtOnce(t *testing.T) {
	s, ctx := checkpointed(t), context.Background()
	scorer := must(OpenScorer(ctx, s.root, 20, nil))
	defer scorer.Close()
	info, model := must(scorer.Info()), must(scorer.Model())
	defer model.Close()
	ok(t, info == ScorerInfo{Step: 20, DenseColumns: 3, Scores: 1} && must(model.Info()).Features == features, info)
	var calling sync.WaitGroup
	for g := range 64 {
		calling.Add(1)
		go func() {
			defer calling.Done()
			pooled, scores := make([]float32, mostSamples*features*width), make([]float32, mostSamples)
			for round := range 100 {
				b := s.batches[(g+round)%len(s.batches)]
				ids, lengths := Vector(b.ids), Vector(b.lengths)
				step, err := scorer.Lookup(0, Batch{Size: b.samples, Values: ids, Lengths: lengths}, Matrix(pooled, b.samples, features*width))
				second, failure := scorer.Predict(Batch{Size: b.samples, Values: ids, Lengths: lengths}, Matrix(b.dense, b.samples, 3), Vector(scores[:b.samples]))
				if err = errors.Join(err, failure); err != nil || step < 20 || second < step || !slices.Equal(pooled[:len(b.pooled)], b.pooled) ||
					!slices.Equal(scores[:b.samples], b.correct) {
					t.Errorf("goroutine %d, round %d: steps %d and %d, %v", g, round, step, second, err)
					return
				}
				if round%10 == 0 { // a bad batch is its caller's alone
					_, err := scorer.Lookup(0, Batch{Size: 1, Values: Vector([]int64{int64(1000 + g), 1}), Lengths: Vector([]int64{1, 1})}, Matrix(pooled, 1, features*width))
					var e *Error
					if !errors.As(err, &e) || e.Status != StatusInvalidBatch || e.Value == nil || *e.Value != int64(1000+g) || e.Table != "a" {
						t.Errorf("goroutine %d: %v", g, err)
					}
					runtime.Gosched()
				}
			}
		}()
	}
	ok(t, must(scorer.Refresh(ctx, -1)) == 21)
	calling.Wait()
	ok(t, must(scorer.Info()).Step == 21)
}

// A training publishes its changes; a scorer that follows answers with the bits of each of its steps.
func TestAScorerFollowsATrainingByItsDeltas(t *testing.T) {
	root, ctx := t.TempDir(), context.Background()
	if err := Run(1, func(comm *Comm) error {
		training := newTrainer(comm)
		checkpoint := must(NewCheckpoint(comm, root, new(CheckpointOptions).DeltaStates(false)))
		defer checkpoint.Close()
		err := errors.Join(checkpoint.AddCollection("tables", training.tables), checkpoint.AddMlp("bottom", training.bottom),
			checkpoint.AddMlp("top", training.top), checkpoint.Commit(ctx, 0))
		ok(t, !must(checkpoint.CommitDelta(ctx, 1)))
		scorer := must(OpenScorer(ctx, root, -1, nil))
		defer scorer.Close()
		scores := make([]float32, mostSamples)
		for number := 2; number < 14 && err == nil; number++ {
			err = training.step(number)
			ok(t, must(checkpoint.CommitDeltaBegin(ctx, number)) && must(checkpoint.CommitWait(-1)), number)
			ok(t, must(scorer.Refresh(ctx, -1)) == number, number)
			samples, count := training.fill(mostSamples)
			err = errors.Join(err, training.forward(samples, count))
			step, failure := scorer.Predict(Batch{Size: samples, Values: Vector(training.ids[:count]), Lengths: Vector(training.lengths[:features*samples])},
				Matrix(training.dense[:3*samples], samples, 3), Vector(scores[:samples]))
			ok(t, failure == nil && step == number && slices.Equal(scores[:samples], training.predicted[:samples]), number, failure)
			err = errors.Join(err, training.lookup.Backward(UpdateSkip))
		}
		return errors.Join(err, training.close())
	}); err != nil {
		t.Fatal(err)
	}
}

func TestScoringAllocatesNothing(t *testing.T) {
	s := checkpointed(t)
	scorer := must(OpenScorer(context.Background(), s.root, -1, new(ScorerOptions).ServedTables(ServedTablesMapped)))
	defer scorer.Close()
	pooled, scores, number := make([]float32, mostSamples*features*width), make([]float32, mostSamples), 0
	var err error
	allocations := testing.AllocsPerRun(200, func() {
		b := &s.batches[number%len(s.batches)]
		_, failure := scorer.Lookup(0, Batch{Size: b.samples, Values: Vector(b.ids), Lengths: Vector(b.lengths)}, Matrix(pooled, b.samples, features*width))
		_, second := scorer.Predict(Batch{Size: b.samples, Values: Vector(b.ids), Lengths: Vector(b.lengths)}, Matrix(b.dense, b.samples, 3), Vector(scores[:b.samples]))
		if err == nil && (failure != nil || second != nil) {
			err = fmt.Errorf("batch %d: %w", number, errors.Join(failure, second))
		}
		number++
	})
	ok(t, err == nil && allocations == 0, err, allocations)
}

// A scorer is opened under a context, as all that reads and writes checkpoints.
func TestTheEndOfAContextEndsTheOpeningOfAScorer(t *testing.T) {
	s := checkpointed(t)
	ctx, cancel := context.WithCancel(context.Background())
	control := must(NewControl())
	defer control.Close()
	must(0, control.Cancel())
	_, err := OpenScorer(WithControl(ctx, control), s.root, -1, nil)
	ok(t, errors.Is(err, ErrCancelled), err)
	scorer := must(OpenScorer(ctx, s.root, 20, nil))
	defer scorer.Close()
	cancel()
	_, err = scorer.Refresh(ctx, 21)
	ok(t, errors.Is(err, context.Canceled) && must(scorer.Info()).Step == 20, err)
}
