#include "comm/bodies/arrivals.h"

#include <algorithm>
#include <utility>

namespace shardrec::comm {

Arrivals::~Arrivals() {
  if (bodies == nullptr) return;
  bodies->withdraw();
  bodies->written().wait();
}

ArrivalPool::ArrivalPool(compute::Backend& backend, compute::Marks& writes, size_t most)
    : backend_(backend), writes_(writes), allocated_(backend.marks()->make()) {
  free_.reserve(most);
}

std::unique_ptr<Arrivals> ArrivalPool::take(size_t bytes) {
  const auto fits = std::find_if(free_.begin(), free_.end(), [&](const auto& arrivals) {
    return arrivals->bodies->size() >= bytes;
  });
  std::unique_ptr<Arrivals> taken;
  if (free_.empty()) {
    taken = std::make_unique<Arrivals>();
  } else {
    const auto chosen = fits == free_.end() ? free_.begin() : fits;
    taken = std::move(*chosen);
    free_.erase(chosen);
  }
  if (taken->bodies == nullptr || taken->bodies->size() < bytes) grow(*taken, bytes);
  return taken;
}

void ArrivalPool::give_back(std::unique_ptr<Arrivals> arrivals) noexcept {
  free_.push_back(std::move(arrivals));  // there is room
}

void ArrivalPool::grow(Arrivals& arrivals, size_t bytes) {
  if (arrivals.bodies != nullptr) {
    arrivals.bodies->withdraw();
    arrivals.bodies->written().wait();
    arrivals.bodies.reset();
  }
  std::byte* const host = arrivals.host.resize(bytes);
  auto block = backend_.memory()->allocate(bytes);
  const size_t size = std::min(block->size, arrivals.host.capacity());
  arrivals.bodies = std::make_shared<SharedMemory>(host, std::move(block), size, writes_.make());
  backend_.marks()->set(*allocated_);
  writes_.follow(*allocated_);
}

}  // namespace shardrec::comm
