// Step 7 of the exchange on the source rank: scale the output gradients of non-empty bags and pack
// them for the owners of their boxes.
#pragma once

#include <span>
#include <vector>

#include "comm/communicator.h"
#include "compute/kernels.h"
#include "core/memory.h"
#include "core/threads.h"
#include "embedding/layout.h"
#include "embedding/output.h"
#include "embedding/route.h"

namespace shardrec::embedding {

class GradientPacking {
 public:
  explicit GradientPacking(const Layout& layout);

  // Writes gradient / divisor, clamped, divided by the bag's length for MEAN, into `buffer`.
  void pack(const RoutedBatch& routed, const CheckedBatch& batch, const core::Matrix& gradient,
            float divisor, float max_gradient, const compute::Kernels& kernels,
            core::Threads& threads, core::Scratch& buffer);

  // Messages with headers but no blocks, for a step that this rank does not apply.
  void decline(GradientVerdict decision, const Verdict& verdict, core::Scratch& buffer);

  std::span<const comm::ConstBytes> messages() const { return messages_; }

 private:
  const Layout& layout_;
  std::vector<comm::ConstBytes> messages_;
  struct Task {
    const SentBlock* block = nullptr;
    const Part* part = nullptr;
    int32_t feature = 0;
    float* rows = nullptr;
  };
  std::vector<Task> tasks_;
};

}  // namespace shardrec::embedding
