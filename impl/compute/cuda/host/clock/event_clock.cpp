#include "compute/cuda/host/clock/event_clock.h"

#include <algorithm>
#include <utility>

namespace shardrec::compute::cuda::host {

EventClock::EventClock(std::shared_ptr<Stream> stream, std::span<std::atomic<int64_t>> nanoseconds)
    : stream_(std::move(stream)), nanoseconds_(nanoseconds), time_(stream_->device()) {
  for (Place& place : places_) {
    shardrec_cuda_event* event = nullptr;
    require(table().create_timed_event(stream_->device(), &event), "make an event with a time");
    place.event.reset(event);
  }
}

EventClock::~EventClock() {
  leave_trace();
  if (core::tracing() && first_ != end_) {
    try {
      stream_->wait();
    } catch (...) {  // the device is lost, and what it had to do
      return;
    }
  }
  read();
}

void EventClock::enter(size_t kind, const char* name) noexcept {
  if (kind_.has_value()) table().end_range();
  table().begin_range(name);
  kind_ = kind;
  put(kind_, name);
}

void EventClock::leave() noexcept {
  kind_.reset();
  put(kind_, nullptr);
  table().end_range();
}

void EventClock::put(std::optional<size_t> kind, const char* name) noexcept {
  const bool counts = started_.load(std::memory_order_relaxed);
  const bool traces = core::tracing() && track_.has_value();
  if (!counts && !traces) return forget_open_kind();
  if (traces && !is_source_) {
    join_trace();
    is_source_ = true;
  }
  const std::lock_guard lock(mutex_);
  if (end_ - first_ >= kPlaces / 2) count_what_is_over();
  if (failed_) return;
  if (end_ - first_ == kPlaces) ++first_;
  std::optional<size_t> pair;
  if (traces) {
    if (!time_.is_fresh())
      count_what_is_over();  // the oldest place may keep a pair from being renewed
    pair = time_.pair(oldest_pair());
  }
  Place& here = place(end_);
  // Recorded as on a caller's stream: table().record() would report, and so take away, a failure of earlier commands that
  // the next operation must report.
  if (table().record_caller(here.event.get(), stream_->number()) != SHARDREC_CUDA_OK) {
    failed_ = true;
    return;
  }
  here.kind = kind;
  here.counts = counts;
  here.name = pair.has_value() ? name : nullptr;
  here.pair = pair.value_or(0);
  has_open_kind_ = kind.has_value();
  ++end_;
}

void EventClock::set_track(const core::TraceTrack& track) noexcept {
  const std::lock_guard lock(mutex_);
  count_what_is_over();
  track_ = track;
}

std::optional<size_t> EventClock::oldest_pair() noexcept {
  for (size_t i = first_; i < end_; ++i) {
    if (place(i).name != nullptr) return place(i).pair;
  }
  return std::nullopt;
}

void EventClock::forget_open_kind() noexcept {
  if (!has_open_kind_) return;
  const std::lock_guard lock(mutex_);
  has_open_kind_ = false;
  if (first_ < end_) place(end_ - 1).kind.reset();
}

void EventClock::read() noexcept {
  const std::lock_guard lock(mutex_);
  count_what_is_over();
}

void EventClock::count_what_is_over() noexcept {
  const size_t end = end_of_over();
  for (; !failed_ && first_ + 1 < end; ++first_) {
    const Place& from = place(first_);
    if (!from.kind.has_value()) continue;
    if (from.name != nullptr) trace(from, place(first_ + 1));
    if (!from.counts) continue;
    float milliseconds = 0;
    failed_ = table().milliseconds_between(from.event.get(), place(first_ + 1).event.get(),
                                           &milliseconds) != SHARDREC_CUDA_OK;
    if (failed_) return;
    nanoseconds_[*from.kind].fetch_add(static_cast<int64_t>(double{milliseconds} * 1e6),
                                       std::memory_order_relaxed);
  }
}

// Two pairs may differ by what they are unsure: a row's spans do not overlap for that.
void EventClock::trace(const Place& from, const Place& to) noexcept {
  const auto start = time_.time_of(from.pair, from.event.get());
  const auto end = time_.time_of(from.pair, to.event.get());
  if (!start.has_value() || !end.has_value()) return;
  const core::TraceClock::time_point begun = std::max(*start, traced_);
  traced_ = std::max(*end, begun);
  core::record_past_event(*track_, from.name, begun, traced_);
}

// Events of one stream take place in order.
size_t EventClock::end_of_over() noexcept {
  size_t over = first_;
  size_t end = end_;
  while (!failed_ && over < end) {
    const size_t middle = over + (end - over) / 2;
    const shardrec_cuda_error error = table().query_event(place(middle).event.get());
    if (error == SHARDREC_CUDA_NOT_READY) {
      end = middle;
    } else {
      over = middle + 1;
      failed_ = error != SHARDREC_CUDA_OK;
    }
  }
  return over;
}

}  // namespace shardrec::compute::cuda::host
