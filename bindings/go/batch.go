package shardrec

import "shardrec.org/shardrec/internal/capi"

// Batch is a batch of ids, for Lookup.Begin and Scorer: Lengths or Offsets; BatchSizes and Inverse both or none. The zero
// Tensor is none, and a Batch without Values says that this rank has no more data. All tensors are compact and of one
// dimension, of int32 or int64 but for Weights; bags are feature-major, features in the order of the model.
type Batch struct {
	Size       int    // samples of this rank: rows of output 0
	Values     Tensor // [ids], bag after bag
	Lengths    Tensor // [bags]: features * Size, or the sum of BatchSizes
	Offsets    Tensor // in place of Lengths: [bags + 1], from 0, never falling, the last one the number of ids
	Weights    Tensor // [ids], float32; none: all 1
	BatchSizes Tensor // [features], the number of bags of each, where many samples have the same bag
	Inverse    Tensor // [features * Size], the bag of each sample
}

// Begin starts the exchange of a batch's ids, which are read before it returns. Collective, waits for nobody; every defect
// of the batch is told by Forward. [ErrInvalidState] when the lookup has begun and not forwarded.
func (l *Lookup) Begin(batch Batch) error {
	return capi.Flat_lookup_begin(l.raw(), int64(batch.Size), batch.Values.raw, batch.Lengths.raw, batch.Offsets.raw,
		batch.Weights.raw, batch.BatchSizes.raw, batch.Inverse.raw)
}

// Lookup looks up a batch without BatchSizes and writes one of its outputs: 0, the pooled features, into [Size, width], or
// 1 + k, the k-th sequence feature, into [ids of the feature, dim]; of float32, Float16 or BFloat16. It returns the step of
// the checkpoint that has answered. Any goroutine.
func (s *Scorer) Lookup(output int, batch Batch, out Tensor) (int, error) {
	var step int64
	err := capi.Flat_scorer_lookup(s.raw(), int32(output), int64(batch.Size), batch.Values.raw, batch.Lengths.raw,
		batch.Offsets.raw, batch.Weights.raw, batch.BatchSizes.raw, batch.Inverse.raw, out.raw, &step)
	return int(step), err
}

// Predict scores a batch, given [Size, dense columns] of float32: probabilities, or logits with the option LOGITS, into
// [Size, scores], of one score also a vector of Size. It returns the step of the checkpoint that has answered. Any goroutine.
func (s *Scorer) Predict(batch Batch, dense, out Tensor) (int, error) {
	var step int64
	err := capi.Flat_scorer_predict(s.raw(), int64(batch.Size), batch.Values.raw, batch.Lengths.raw, batch.Offsets.raw,
		batch.Weights.raw, batch.BatchSizes.raw, batch.Inverse.raw, dense.raw, out.raw, &step)
	return int(step), err
}

// AllTables in place of a table's index means all of them.
const AllTables = -1
