// Outputs, and gradients of them, that a caller gives in memory that operations do not reach are copied to where they do;
// and what they write is copied back. (A batch is GivenTensors.)
//
// Thread rule: one thread at a time.
#pragma once

#include <memory>

#include "compute/backend.h"
#include "compute/buffer.h"
#include "embedding/batch/output_view.h"

namespace shardrec::embedding {

class CallerMemory {
 public:
  explicit CallerMemory(const std::shared_ptr<compute::Memory>& memory) : memory_(memory) {}

  // An output, or the gradient of one, as operations reach it: where it lies, or rows side by side
  // that are valid until the next call. fetch: with what is in it now.
  OutputView matrix(const OutputView& view, int64_t rows, int64_t columns, bool fetch,
                    compute::Backend& backend);
  // What operations have written into `reached`, which matrix() made of `view`, into the view. Waits
  // for the operations where it copies.
  static void give_back(const OutputView& reached, const OutputView& view, int64_t rows,
                        int64_t columns, compute::Backend& backend);

 private:
  compute::Buffer memory_;
};

}  // namespace shardrec::embedding
