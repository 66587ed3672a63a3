// Gradients of weight matrices: of W in z = x W^T it is dz^T x, over all rows of the batch.
//
// They are cut into blocks of W and chunks of rows by the shapes alone, and chunks are added in a fixed
// tree, so bits do not depend on the number of threads. Not thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "core/memory.h"
#include "core/threads.h"
#include "dense/element_matrix.h"
#include "dense/gemm.h"
#include "dense/layers/shape.h"

namespace shardrec::dense {

// What becomes of a gradient before it is written: it is multiplied by 1 / the loss scale, and looked through.
struct Unscaling {
  float factor = 1;
  std::atomic<bool>* found_non_finite = nullptr;  // becomes true; null: gradients carry no scale

  bool is_wanted() const noexcept { return found_non_finite != nullptr; }
  // Of `count` floats in place. Any thread.
  void apply(float* gradients, int64_t count) const noexcept;
};

// What the gradients of a batch have in common.
struct GradientBatch {
  int64_t rows = 0;
  bool is_wide = false;     // some layer of the stack is
  bool accumulate = false;  // gradients are added to
  bool is_whole = false;    // rows are not cut: a device multiplies
  Unscaling unscaling;      // on the CPU
};

// How the rows of a batch and those of W are cut.
struct WeightCut {
  int64_t rows = 0;  // of a chunk
  int64_t chunks = 0;
  int64_t block_rows = 0;  // of W
  int64_t blocks = 0;
};
WeightCut cut_weight(const WeightShape& shape, const GradientBatch& batch) noexcept;

// Floats of the parts that a gradient is added up from; 0 where it is written where it belongs.
int64_t partial_floats(const WeightShape& shape, const GradientBatch& batch) noexcept;

// The gradient of one W [dz.cols, x.cols].
struct WeightGradient {
  ElementMatrix dz;
  ElementMatrix x;
  float* partials = nullptr;  // partial_floats(); null where they are 0
  float* target = nullptr;
};

class WeightGradients {
 public:
  // The next `more` of add() in a batch do not allocate.
  void reserve(size_t more);
  void start(const GradientBatch& batch) noexcept;
  void add(const WeightGradient& gradient);
  // All that were added since start().
  void compute(const Gemm& gemm, core::Threads& threads) const;

 private:
  void compute_task(const Gemm& gemm, int64_t task) const noexcept;

  GradientBatch batch_;
  std::vector<WeightGradient> gradients_;
};

// parts: `count` vectors of `size` floats, each `stride` behind the one before, which become scratch. Their sum, in
// pairs of neighbours, is written to target, or added, as the batch says.
struct VectorSum {
  float* parts = nullptr;
  int64_t count = 0;
  int64_t size = 0;
  int64_t stride = 0;
  float* target = nullptr;
};
void add_up(const VectorSum& sum, const GradientBatch& batch, core::Threads& threads);

}  // namespace shardrec::dense
