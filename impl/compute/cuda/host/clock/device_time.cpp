#include "compute/cuda/host/clock/device_time.h"

namespace shardrec::compute::cuda::host {
namespace {

// Another process, or a busy queue, makes some pairs wide: so many are tried until one is narrow.
constexpr int kTries = 5;
constexpr std::chrono::microseconds kNarrow{100};

}  // namespace

bool DeviceTime::prepare() noexcept {
  if (stream_ != nullptr) return true;
  shardrec_cuda_stream* stream = nullptr;
  if (table().create_stream(device_, &stream) != SHARDREC_CUDA_OK) return false;
  stream_.reset(stream);
  for (Pair& pair : pairs_) {
    shardrec_cuda_event* event = nullptr;
    if (table().create_timed_event(device_, &event) != SHARDREC_CUDA_OK) return false;
    pair.event.reset(event);
  }
  return true;
}

bool DeviceTime::take(Pair& pair) noexcept {
  for (int i = 0; i < kTries; ++i) {
    const Clock::time_point before = Clock::now();
    if (table().record(pair.event.get(), stream_.get()) != SHARDREC_CUDA_OK) return false;
    if (table().wait_for_event(pair.event.get()) != SHARDREC_CUDA_OK) return false;
    pair.width = Clock::now() - before;
    pair.time = before + pair.width / 2;
    if (pair.width < kNarrow) break;
  }
  return true;
}

std::optional<size_t> DeviceTime::pair(std::optional<size_t> oldest) noexcept {
  if (failed_) return std::nullopt;
  const bool has_room = !oldest.has_value() || *oldest == current_;
  if (is_fresh() || (taken_ && !has_room)) return current_;
  const size_t next = taken_ ? 1 - current_ : 0;
  if (!prepare() || !take(pairs_[next])) {
    failed_ = true;
    return std::nullopt;
  }
  looked_ = Clock::now();
  const Clock::duration width = pairs_[next].width;
  if (!taken_ || width < kNarrow || width < pairs_[current_].width) current_ = next;
  taken_ = true;
  return current_;
}

std::optional<core::TraceClock::time_point> DeviceTime::time_of(
    size_t pair, shardrec_cuda_event* event) const noexcept {
  float milliseconds = 0;
  if (table().milliseconds_between(pairs_[pair].event.get(), event, &milliseconds) !=
      SHARDREC_CUDA_OK) {
    return std::nullopt;
  }
  return pairs_[pair].time +
         std::chrono::nanoseconds(static_cast<int64_t>(double{milliseconds} * 1e6));
}

}  // namespace shardrec::compute::cuda::host
