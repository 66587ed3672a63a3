#include "comm/gloo/transport_pair.h"

#include <algorithm>
#include <vector>

namespace shardrec::comm::gloo_plugin {

TransportPair::TransportPair(const shardrec_transport_job& job)
    : TransportPair(job, plugin::after(job.seconds)) {}

TransportPair::TransportPair(const shardrec_transport_job& job, plugin::Clock::time_point deadline)
    : first_(job, {.with = std::vector<bool>(static_cast<size_t>(job.size), true)}, deadline),
      far_(static_cast<size_t>(job.size)) {
  for (int peer = 0; peer < job.size; ++peer)
    far_[static_cast<size_t>(peer)] = peer != job.rank && !first_.reads_memory_of(peer);
  // Both ends of a connection know of it alike, so that these meet without those that have none.
  if (std::find(far_.begin(), far_.end(), true) != far_.end())
    second_.emplace(job, Peering{.key = "gloo/second/", .with = far_}, deadline);
}

void TransportPair::cancel() noexcept {
  first_.cancel();
  if (second_) second_->cancel();
}

Transport& TransportPair::transport_of(Direction direction, int peer) noexcept {
  const bool far = peer >= 0 && peer < size() && far_[static_cast<size_t>(peer)];
  const bool downward = (direction == Direction::kSend) == (peer < rank());
  return far && downward ? *second_ : first_;
}

}  // namespace shardrec::comm::gloo_plugin
