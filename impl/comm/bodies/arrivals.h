// Room where messages lie whose bodies have come to a device by themselves: heads in the host's memory, bodies on the
// device, as shared memory (shared_memory.h), so that whoever has the message finds its body.
//
// Thread rule: that of the back end.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "comm/bodies/shared_memory.h"
#include "compute/backend.h"

namespace shardrec::comm {

struct Arrivals {
  Arrivals() = default;
  // Waits for what writes the bodies.
  ~Arrivals();
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;

  compute::Buffer host{compute::cpu_memory()};
  std::shared_ptr<SharedMemory> bodies;
};

// Those of a channel, which are used again.
class ArrivalPool {
 public:
  // writes: marks of the stream that bodies are written in; it and the back end outlive this. most: that are taken at
  // the same time.
  ArrivalPool(compute::Backend& backend, compute::Marks& writes, size_t most);

  // Room for so many bytes, which what is enqueued in the stream from now on may write when it follows the readers
  // (SharedMemory::follow_readers). Throws OUT_OF_MEMORY.
  std::unique_ptr<Arrivals> take(size_t bytes);
  void give_back(std::unique_ptr<Arrivals> arrivals) noexcept;

 private:
  void grow(Arrivals& arrivals, size_t bytes);

  compute::Backend& backend_;
  compute::Marks& writes_;
  std::shared_ptr<compute::Mark> allocated_;  // in the back end's operations
  std::vector<std::unique_ptr<Arrivals>> free_;
};

}  // namespace shardrec::comm
