#include "compute/cuda/host/clock/stream_trace.h"

#include <span>

namespace shardrec::compute::cuda::host {

void StreamTrace::set_track(const core::TraceTrack& track) noexcept {
  track_ = track;
  if (clock_.has_value()) clock_->set_track(track);
}

EventClock* StreamTrace::entered(const char* name) noexcept {
  if (!core::tracing() || !track_.has_value()) return nullptr;
  try {
    if (!clock_.has_value()) {
      clock_.emplace(stream_, std::span<std::atomic<int64_t>>());
      clock_->set_track(*track_);
    }
  } catch (...) {  // no memory for events: the operations themselves go on
    clock_.reset();
    return nullptr;
  }
  clock_->enter(0, name);
  return &*clock_;
}

}  // namespace shardrec::compute::cuda::host
