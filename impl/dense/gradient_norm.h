// The norm over the gradients of many parameters, and its bound (Pascanu et al. 2013), as PyTorch's
// clip_grad_norm_ with norm_type 2 has it.
//
// The norm is the root of a sum in float64: the squares, which are exact, of each block of
// kBlockElements elements of a parameter (extents.h) over 16 lanes, the blocks added up in ascending
// order of parameters and blocks. So it depends neither on the number of threads nor on the
// instruction set. Not thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/threads.h"
#include "dense/extents.h"

namespace shardrec::dense {

class GradientNorm {
 public:
  // Adds the gradient of a parameter, which stays valid until rebind(); returns its index.
  size_t add(std::span<float> gradient);
  void rebind(size_t parameter, std::span<float> gradient) noexcept;

  // The L2 norm over all gradients; 0 without any element. NaN or infinite where one of them is.
  // Allocates nothing.
  double norm(core::Threads& threads);

  // Multiplies all gradients by factor.
  void scale(float factor, core::Threads& threads);

  // Multiplies all gradients by min(1, max_norm / (norm + 1e-6)), rounded once to float, and returns
  // the norm that they had. Where that is NaN or infinite nothing is multiplied: the caller decides.
  // max_norm >= 0.
  double clip(double max_norm, core::Threads& threads);

 private:
  Extents extents_;
  std::vector<float*> gradients_;
  std::vector<double> block_sums_;
};

}  // namespace shardrec::dense
