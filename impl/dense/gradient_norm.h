// The norm over the gradients of many parameters, of any floating dtype, and bounds on it (Pascanu et
// al. 2013) or on each element, as PyTorch's clip_grad_norm_ and clip_grad_value_ have them.
//
// The L2 norm is the root of a sum in float64: the squares of each block of kBlockElements elements of
// a parameter (extents.h) over 16 lanes, the blocks added up in ascending order of parameters and
// blocks. Squares are exact but for float64. The infinity norm is the largest magnitude. So neither
// depends on the number of threads or on the instruction set. Not thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/tensor.h"
#include "core/threads.h"
#include "dense/extents.h"

namespace shardrec::dense {

// The blocks that a norm is taken of, wherever the gradients are.
class NormBlocks {
 public:
  virtual ~NormBlocks() = default;
  NormBlocks(const NormBlocks&) = delete;
  NormBlocks& operator=(const NormBlocks&) = delete;

  // By block; valid until the next call. The sums of squares of elements times scale, and the largest magnitudes.
  virtual std::span<const double> square_sums(double scale) = 0;
  virtual std::span<const double> largest() = 0;

 protected:
  NormBlocks() = default;
};
double l2_norm(NormBlocks& blocks);
double infinity_norm(NormBlocks& blocks);
// What gradients of such a norm are multiplied with, exactly; none: they stay as they are.
std::optional<double> clip_factor(double norm, double bound) noexcept;

class GradientNorm {
 public:
  // Adds the gradient of a parameter: FLOAT32, FLOAT64, FLOAT16 or BFLOAT16, in place as long as this
  // object is used.
  void add(const core::FlatView& gradient);

  // Over all gradients; 0 without any element. NaN where an element is NaN; else infinite where one of
  // them is, or where the norm exceeds float64. Allocate nothing.
  double l2(core::Threads& threads);
  double infinity(core::Threads& threads);

  // Multiplies all gradients by min(1, bound / (norm + 1e-6)). The factor is rounded to float (float64
  // for FLOAT64 gradients), the product once to the gradient's dtype. Where norm is NaN or infinite
  // nothing is multiplied: the caller decides. norm and bound >= 0.
  void bound_norm(double norm, double bound, core::Threads& threads);

  // Each element x becomes min(max(x, -bound), bound), with bound rounded to the gradient's dtype; NaN
  // stays. bound >= 0.
  void bound_values(double bound, core::Threads& threads);

 private:
  // block_values_[b] = of(elements of block b), for all blocks; of(gradient, first element, elements).
  template <class Of>
  void for_each_block(const Of& of, core::Threads& threads);
  class Blocks;
  // body(gradient, first element, elements) for pieces of all gradients.
  template <class Body>
  void for_each_piece(const Body& body, core::Threads& threads);

  Extents extents_;
  std::vector<core::FlatView> gradients_;
  std::vector<double> block_values_;
};

}  // namespace shardrec::dense
