// Command overhead times steps in Go beside the same in C: see tests/bench/overhead, which runs it.
package main

// #cgo CFLAGS: -std=c11
// #cgo LDFLAGS: -loverhead_c
// #include "../steps.h"
import "C"

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"testing"
	"time"

	. "shardrec.org/shardrec"
)

const dim, rows, denseColumns = 16, 1000, 4

// In the order of steps.h.
const (
	kindTables = iota
	kindWhole
	kindHash
)

// training is what steps.c does, in Go.
type training struct {
	kind, tables, batch, number, width                       int
	lookup                                                   *Lookup
	bottom, top                                              *Mlp
	cross                                                    *Interaction
	ddp                                                      *Ddp
	metrics                                                  *Metrics
	ids, lengths, hashes                                     []int64
	pooled, input, dense, crossed, logits, labels, predicted []float32
	logitsGradient, crossedGradient, denseGradient           []float32
	pooledGradient                                           []float32
	handles                                                  []io.Closer
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(errs ...error) {
	for _, err := range errs {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func (t *training) openTables(comm *Comm) {
	model := must(NewModel())
	for i := range t.tables {
		name := fmt.Sprint("t", i)
		check(model.AddFeature(must(model.AddTable(name, rows, dim, nil)), name, PoolingSum))
	}
	plan := must(NewCollectivePlan(comm, nil, model, nil))
	collection := must(NewCollection(comm, nil, model, plan, new(CollectionOptions).Threads(1)))
	t.lookup = must(NewLookup(collection, nil))
	t.handles = append(t.handles, t.lookup, collection, plan, model)
}

func (t *training) openLayers(comm *Comm) {
	t.cross = must(NewInteraction(t.tables, dim, nil))
	t.width = must(t.cross.Outputs())
	t.bottom, t.top = must(NewMlp(denseColumns, nil)), must(NewMlp(t.width, nil))
	check(t.bottom.AddLinear(dim, ActivationRelu), t.top.AddLinear(1, ActivationNone))
	t.ddp, t.metrics = must(NewDdp(comm, nil)), must(NewMetrics(comm, nil))
	must(t.ddp.AddMlp("bottom", t.bottom))
	must(t.ddp.AddMlp("top", t.top))
	check(t.ddp.Commit())
	t.handles = append(t.handles, t.metrics, t.ddp, t.bottom, t.top, t.cross)
}

func open(comm *Comm, kind, tables, batch int) *training {
	t := &training{kind: kind, tables: tables, batch: batch}
	if kind != kindHash {
		t.openTables(comm)
	}
	if kind == kindWhole {
		t.openLayers(comm)
	}
	t.ids, t.lengths, t.hashes = Aligned[int64](tables*batch), Aligned[int64](tables*batch), Aligned[int64](tables*batch)
	for i := range t.ids {
		t.ids[i], t.lengths[i] = int64(i*7%rows), 1
	}
	for to, columns := range map[*[]float32]int{&t.pooled: tables * dim, &t.input: denseColumns, &t.dense: dim, &t.crossed: t.width,
		&t.logits: 1, &t.labels: 1, &t.predicted: 1, &t.logitsGradient: 1, &t.crossedGradient: t.width, &t.denseGradient: dim,
		&t.pooledGradient: tables * dim} {
		*to = Aligned[float32](batch * columns)
	}
	return t
}

func (t *training) tableStep() {
	pooled := Matrix(t.pooled, t.batch, t.tables*dim)
	check(t.lookup.Begin(Batch{Size: t.batch, Values: Vector(t.ids), Lengths: Vector(t.lengths)}))
	check(t.lookup.Forward(0, pooled))
	check(t.lookup.SetGradient(0, pooled))
	check(t.lookup.Backward(UpdateApply))
}

func (t *training) wholeStep() {
	size := t.batch - t.number%8
	t.number++
	pooled, input, dense := Matrix(t.pooled, size, t.tables*dim), Matrix(t.input, size, denseColumns), Matrix(t.dense, size, dim)
	crossed, logits, labels := Matrix(t.crossed, size, t.width), Matrix(t.logits, size, 1), Matrix(t.labels, size, 1)
	predicted, logitsGradient := Matrix(t.predicted, size, 1), Matrix(t.logitsGradient, size, 1)
	crossedGradient, denseGradient := Matrix(t.crossedGradient, size, t.width), Matrix(t.denseGradient, size, dim)
	pooledGradient := Matrix(t.pooledGradient, size, t.tables*dim)
	check(t.lookup.Begin(Batch{Size: size, Values: Vector(t.ids[:t.tables*size]), Lengths: Vector(t.lengths[:t.tables*size])}))
	check(t.bottom.Forward(input, dense))
	check(t.lookup.Forward(0, pooled))
	must(t.lookup.AllDone())
	check(t.cross.Forward(dense, pooled, crossed))
	check(t.top.Forward(crossed, logits))
	must(BceWithLogits(nil, logits, labels, predicted, logitsGradient))
	check(t.ddp.Begin(true))
	check(t.top.Backward(logitsGradient, crossedGradient))
	check(t.cross.Backward(crossedGradient, denseGradient, pooledGradient))
	check(t.lookup.SetGradient(0, pooledGradient))
	check(t.lookup.SendGradients(UpdateApply))
	check(t.bottom.Backward(denseGradient, Tensor{}))
	check(t.ddp.End())
	check(t.lookup.Backward(UpdateApply))
	check(t.ddp.Wait())
	check(t.bottom.Step())
	check(t.top.Step())
	check(t.metrics.Update(predicted, labels))
}

func (t *training) step() {
	switch t.kind {
	case kindTables:
		t.tableStep()
	case kindWhole:
		t.wholeStep()
	default:
		check(Hash64IDs(1, Vector(t.ids), rows, Vector(t.hashes)))
	}
}

func (t *training) steps(count int) {
	for range count {
		t.step()
	}
}

func (t *training) close() {
	for _, handle := range t.handles {
		check(handle.Close())
	}
}

func openInC(kind, tables, batch int) *C.overhead_training {
	t := C.overhead_open(C.int(kind), C.int(tables), C.int64_t(batch))
	if t == nil {
		os.Exit(1)
	}
	return t
}

func stepsInC(t *C.overhead_training, count int) {
	if C.overhead_steps(t, C.int64_t(count)) != 0 {
		os.Exit(1)
	}
}

// measure prints the times of a step in C and in Go, block by block. Each round has memory of its own, for where it lies counts
// too; the first one to get it is the other one each time.
func measure(comm *Comm, kind, tables, batch, steps, blocks, rounds int, warm time.Duration) {
	times := make([][2]float64, blocks)
	for round := range rounds {
		var inC *C.overhead_training
		if round%2 == 0 {
			inC = openInC(kind, tables, batch)
		}
		inGo := open(comm, kind, tables, batch)
		if inC == nil {
			inC = openInC(kind, tables, batch)
		}
		turns := [2]func(){func() { stepsInC(inC, steps) }, func() { inGo.steps(steps) }}
		for begin := time.Now(); ; {
			turns[0]()
			turns[1]()
			if round > 0 || time.Since(begin) > warm {
				break
			}
		}
		for block := range times {
			for turn := range turns {
				whose := (block + turn) % 2 // the first one of a pair is the other one each time
				begin := time.Now()
				turns[whose]()
				times[block][whose] = float64(time.Since(begin).Nanoseconds()) / 1000 / float64(steps)
			}
		}
		for _, pair := range times {
			fmt.Println(round, pair[0], pair[1])
		}
		if round == rounds-1 {
			fmt.Println("allocated", testing.AllocsPerRun(10*steps, inGo.step))
		}
		C.overhead_close(inC)
		inGo.close()
	}
}

// KIND TABLES BATCH STEPS BLOCKS ROUNDS, and the seconds of warming up.
func main() {
	kind := map[string]int{"tables": kindTables, "whole": kindWhole, "hash": kindHash}[os.Args[1]]
	var numbers [5]int
	for i := range numbers {
		numbers[i] = must(strconv.Atoi(os.Args[2+i]))
	}
	warm := time.Duration(must(strconv.ParseFloat(os.Args[7], 64)) * float64(time.Second))
	check(Run(1, func(comm *Comm) error {
		measure(comm, kind, numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], warm)
		return nil
	}))
}
