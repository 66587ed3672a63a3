package main

import (
	"errors"
	"math"

	"shardrec.org/shardrec"
)

// Clicks that anybody can make again: every number is a hash of what it is for.

const (
	features, denseColumns, tableRows = 6, 4, 1000
	values                            = 300 // that a feature takes
)

// batch is a part of the samples, with the size that it has.
type batch struct {
	size         int
	dense        []float32 // [size, denseColumns]
	labels       []float32 // [size]
	ids, lengths []int64   // feature after feature, bag after bag; [features, size]
}

// real is a number in [-1, 1), by 2^24 steps.
func real(hash int64) float32 { return float32(hash-1<<23) / (1 << 23) }

// makeBatch makes the samples [first, first + size).
func makeBatch(first, size int) (*batch, error) {
	var err error
	hashed := func(seed uint64, keys []int64, rows int) []int64 {
		out := make([]int64, len(keys))
		err = errors.Join(err, shardrec.Hash64IDs(seed, shardrec.Vector(keys), rows, shardrec.Vector(out)))
		return out
	}
	b := &batch{size: size}
	var keys []int64
	for n := 8 * first; n < 8*(first+size); n++ {
		keys = append(keys, int64(n))
	}
	numbers := hashed(1, keys, 1<<24) // eight for each sample
	keys = nil
	for f := range features {
		for n := first; n < first+size; n++ {
			b.lengths = append(b.lengths, int64(1+n%3))
			for k := range 1 + n%3 {
				keys = append(keys, int64((n*features+f)*3+k))
			}
		}
	}
	raw := hashed(2, keys, values)    // what a log would have: a city, a device, ...
	b.ids = hashed(3, raw, tableRows) // the row of each
	score := make([]float64, size)
	for n := range size {
		for c := range denseColumns {
			b.dense = append(b.dense, real(numbers[8*n+c]))
		}
		score[n] = float64(b.dense[denseColumns*n] - b.dense[denseColumns*n+1])
	}
	i := 0
	for f := range features {
		planted := hashed(uint64(4+f), raw, 1<<24)
		for n := range size {
			for range b.lengths[f*size+n] {
				score[n] += float64(real(planted[i]))
				i++
			}
		}
	}
	for n := range size {
		tripled := 3 * score[n]
		label := float32(0)
		if float64(real(numbers[8*n+denseColumns])) < tripled/(1+math.Abs(tripled)) { // in (-1, 1)
			label = 1
		}
		b.labels = append(b.labels, label)
	}
	return b, err
}
