// Where the first NaN or infinity is among numbers that a caller has given (option NON_FINITE). Those in the host's memory are
// looked through at once; those on a device by an operation, whose answer is waited for when it is asked for.
//
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>

#include "compute/backend.h"
#include "compute/non_finite_search.h"
#include "embedding/batch/output_view.h"

namespace shardrec::embedding {

class FiniteCheck {
 public:
  // Nothing was given: first() is -1.
  void clear();
  // [rows, columns] numbers; what the check before has found is forgotten. Throws OUT_OF_MEMORY, DEVICE_ERROR: then
  // nothing was looked through.
  void look_through(const OutputView& given, int64_t rows, int64_t columns,
                    compute::Backend& backend);
  // row * columns + column of the first one that is not finite; -1: all are finite.
  int64_t first();

 private:
  std::unique_ptr<compute::NonFiniteSearch> search_;  // null: nothing was given on a device so far
  bool is_searching_ = false;                         // has search_ the answer?
  int64_t first_ = -1;
};

}  // namespace shardrec::embedding
