// The dense half of a served checkpoint: sigmoid(top(interaction(bottom(dense), pooled))), with the
// bits of dense::Mlp in evaluation and of dense::Interaction. Immutable once it is made; any number of threads at once,
// each with scratch of its own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/read/load.h"
#include "core/control.h"
#include "core/memory.h"
#include "core/tensor.h"
#include "dense/kernels.h"
#include "dense/layers/forward.h"

namespace shardrec::serving {

// The parameters of a stack of layers, without gradients and states.
class Stack {
 public:
  // What the checkpoint says of a stack of this name. NOT_FOUND, CORRUPT_DATA.
  Stack(const checkpoint::Opened& opened, const std::string& name);

  int64_t inputs() const noexcept { return layers_.empty() ? 0 : layers_.front().inputs; }
  int64_t outputs() const noexcept { return layers_.empty() ? 0 : layers_.back().outputs; }
  // Of the checkpoint that read() reads.
  int64_t bytes() const noexcept { return parameter_bytes_; }

  void read(const checkpoint::Opened& opened, core::Control* control,
            core::Environment& environment);

  // Floats of scratch of a call of forward().
  int64_t scratch() const noexcept {
    return dense::kMostTileRows * (kBuffers * widest_ + largest_rank_);
  }
  // Of at most kMostTileRows rows, the first of which is a multiple of that in a batch of `batch` rows.
  void forward(const dense::Gemm& gemm, int64_t batch, const core::Matrix& x, const core::Matrix& y,
               float* scratch) const noexcept;

 private:
  void forward_tile(const dense::Gemm& gemm, const core::Matrix& x, const core::Matrix& y,
                    float* scratch) const noexcept;

  // For the input of a layer, its output, and the input of the run of cross layers that it is in.
  static constexpr int64_t kBuffers = 3;

  std::string name_;
  std::vector<dense::LayerValues> layers_;
  int64_t parameter_bytes_ = 0;
  int64_t floats_ = 0;  // of parameters, each at a line of its own
  int64_t widest_ = 0;
  int64_t largest_rank_ = 0;
  bool is_wide_ = false;
  core::Pages parameters_;
};

class DenseHalf {
 public:
  // Throws INVALID_ARGUMENT where the columns of the stacks do not fit the features: names both.
  // features: of the pooled output, in its order, each of so many columns.
  DenseHalf(Stack bottom, Stack top, std::span<const int64_t> features);

  int64_t dense_columns() const noexcept { return bottom_.inputs(); }
  int64_t scores() const noexcept { return top_.outputs(); }
  int64_t bytes() const noexcept { return bottom_.bytes() + top_.bytes(); }
  void read(const checkpoint::Opened& opened, core::Control* control,
            core::Environment& environment);

  int64_t scratch() const noexcept;  // floats
  void predict(const dense::Gemm& gemm, const core::Matrix& dense_input, const core::Matrix& pooled,
               const core::Matrix& out, bool logits, float* scratch) const noexcept;

 private:
  Stack bottom_;
  Stack top_;
  dense::InteractionShape shape_;
};

}  // namespace shardrec::serving
