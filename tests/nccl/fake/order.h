// What the thread sanitizer is told of the order of things, as the emulated runtime tells it of its own
// (tests/simt/runtime/sanitizers.h): an operation of a communicator comes behind the one before it on its rank; what
// a rank did before it sent happens before what its peer does behind the receive; and behind a collective comes what
// all ranks did before it. Nothing else is ordered.
#pragma once

#include <cstdint>

namespace fake_nccl {

// A place that stands for a message, a collective, or a rank's operations, in all ranks of the process.
struct Place {
  uint64_t communicator;
  int from;
  int to;  // -1: all
  uint64_t number;
};

void release_place(const Place& place) noexcept;
void acquire_place(const Place& place) noexcept;

}  // namespace fake_nccl
