// The search for a NaN or an infinity among numbers that a caller has given in the memory of a device: an operation of
// the back end, whose answer the host waits for when it asks. non_finite.h is the same for the host's memory.
//
// Thread rule: that of the back end.
#pragma once

#include <cstdint>

#include "compute/element.h"

namespace shardrec::compute {

// [rows, columns] numbers; row r begins at element r * stride.
struct GivenNumbers {
  const void* data = nullptr;
  Element element = Element::kFloat32;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t stride = 0;
};

class NonFiniteSearch {
 public:
  virtual ~NonFiniteSearch() = default;
  NonFiniteSearch(const NonFiniteSearch&) = delete;
  NonFiniteSearch& operator=(const NonFiniteSearch&) = delete;

  // The numbers, one at least, are read by the operation that is enqueued here, and by none behind it. What the search
  // before has found is forgotten.
  virtual void begin(const GivenNumbers& numbers) = 0;
  // Behind begin(): row * columns + column of the first one that is not finite; -1: all are finite. Waits, unless the
  // host has waited for something behind begin().
  virtual int64_t first() = 0;

 protected:
  NonFiniteSearch() = default;
};

}  // namespace shardrec::compute
