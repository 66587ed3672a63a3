#include "compute/cuda/host/allocator.h"

#include <mutex>

#include "core/error.h"

namespace shardrec::compute::cuda::host {
namespace {

struct Chosen {
  std::mutex mutex;
  Allocator allocator;
};

// Never destroyed: other threads may train while the process ends.
Chosen& chosen() {
  static Chosen& of_process = *new Chosen;
  return of_process;
}

}  // namespace

void* Allocator::get(const Stream& stream, size_t bytes) const {
  void* memory = nullptr;
  if (allocate == nullptr) {
    require(table().allocate(stream.handle(), bytes, &memory), "allocate ", bytes,
            " bytes on device ", stream.device());
    return memory;
  }
  memory = allocate(context, stream.device(), static_cast<int64_t>(bytes), stream.number());
  if (memory == nullptr) {
    core::fail(SHARDREC_OUT_OF_MEMORY,
               core::sentence("the program's allocator has no ", bytes, " bytes on device ",
                              stream.device()),
               {.value = static_cast<int64_t>(bytes)});
  }
  return memory;
}

void Allocator::give_back(const Stream& stream, void* memory, size_t bytes) const noexcept {
  if (release == nullptr) {
    table().release(stream.handle(), memory);
  } else {
    release(context, stream.device(), memory, static_cast<int64_t>(bytes), stream.number());
  }
}

void set_allocator(const Allocator& allocator) noexcept {
  const std::lock_guard lock(chosen().mutex);
  chosen().allocator = allocator;
}

Allocator allocator() noexcept {
  const std::lock_guard lock(chosen().mutex);
  return chosen().allocator;
}

}  // namespace shardrec::compute::cuda::host
