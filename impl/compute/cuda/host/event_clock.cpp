#include "compute/cuda/host/event_clock.h"

#include <utility>

namespace shardrec::compute::cuda::host {

EventClock::EventClock(std::shared_ptr<Stream> stream, std::span<std::atomic<int64_t>> nanoseconds)
    : stream_(std::move(stream)), nanoseconds_(nanoseconds) {
  for (Place& place : places_) {
    shardrec_cuda_event* event = nullptr;
    require(table().create_timed_event(stream_->device(), &event), "make an event with a time");
    place.event.reset(event);
  }
}

void EventClock::enter(size_t kind, const char* name) noexcept {
  if (kind_.has_value()) table().end_range();
  table().begin_range(name);
  kind_ = kind;
  put(kind_);
}

void EventClock::leave() noexcept {
  kind_.reset();
  put(kind_);
  table().end_range();
}

void EventClock::put(std::optional<size_t> kind) noexcept {
  if (!started_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  if (end_ - first_ >= kPlaces / 2) count_what_is_over();
  if (failed_) return;
  if (end_ - first_ == kPlaces) ++first_;
  Place& here = place(end_);
  if (table().record(here.event.get(), stream_->handle()) != SHARDREC_CUDA_OK) {
    failed_ = true;
    return;
  }
  here.kind = kind;
  ++end_;
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
    float milliseconds = 0;
    failed_ = table().milliseconds_between(from.event.get(), place(first_ + 1).event.get(),
                                           &milliseconds) != SHARDREC_CUDA_OK;
    if (failed_) return;
    nanoseconds_[*from.kind].fetch_add(static_cast<int64_t>(double{milliseconds} * 1e6),
                                       std::memory_order_relaxed);
  }
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
