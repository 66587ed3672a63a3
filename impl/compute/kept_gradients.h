// Gradients of one part that wait for their optimizer step: the rows that were touched since the last
// one and, for each, the sum over the accumulated lookups, in the order in which they came. Made by a
// back end, in its memory, read by its operations on rows.
//
// A row's sum is ((first + second) + third) ..., each the row's canonical gradient of one lookup:
// the same bits under every plan and number of threads.
//
// Thread rule: that of the back end, which outlives it.
#pragma once

#include <cstdint>
#include <span>

#include "compute/kernels.h"

namespace shardrec::compute {

class KeptGradients {
 public:
  // It has fewer rows.
  static constexpr int64_t kMostRows = UINT32_MAX;

  virtual ~KeptGradients() = default;
  KeptGradients(const KeptGradients&) = delete;
  KeptGradients& operator=(const KeptGradients&) = delete;

  virtual std::span<const int64_t> rows() const = 0;  // ascending
  // Adds a lookup's rows, ascending, with their gradients, [rows, width]. Where memory runs out,
  // nothing has changed.
  virtual void add(std::span<const int64_t> rows, const float* gradients) = 0;
  virtual void clear() noexcept = 0;

  // After the last add: makes what describe() needs.
  virtual void finish() = 0;
  // Fills in the fields of a job that say which gradients go to which row.
  virtual void describe(RowUpdate& job) const = 0;

 protected:
  KeptGradients() = default;
};

}  // namespace shardrec::compute
