// The values of integers that an operation found wrong, fetched from where they lie: there are few, and
// whoever gave them gets an error. Its memory stays: to give pinned memory back is to wait for all devices.
//
// Thread rule: that of the stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "compute/cuda/host/memory.h"
#include "compute/routing_operations.h"

namespace shardrec::compute::cuda::host {

// The plug-in says ~i of the first wrong item i of a list, 0 where none is.
constexpr int64_t first_wrong(uint64_t told) { return static_cast<int64_t>(~told); }

class WrongValues {
 public:
  explicit WrongValues(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}

  // All wait for the stream.
  int64_t of(const Integers& integers, int64_t position);
  // An unsigned integer of at most 4 bytes.
  int64_t of_code(const std::byte* at, size_t bytes);

 private:
  template <class T>
  int64_t fetch(const void* at, size_t bytes);

  std::shared_ptr<Stream> stream_;
  PinnedRoom value_;
};

}  // namespace shardrec::compute::cuda::host
