// Marks of a device: events.
#pragma once

#include <cstdint>
#include <memory>

#include "compute/cuda/host/stream.h"
#include "compute/mark.h"

namespace shardrec::compute::cuda::host {

class EventMark final : public Mark {
 public:
  // stream: the one that it is always set in.
  explicit EventMark(const Stream& stream) : event_(stream), set_in_(&stream) {}

  int32_t device() const noexcept override { return event_.device(); }
  void wait() const noexcept override { table().wait_for_event(event_.handle()); }

  Event& event() noexcept { return event_; }
  const Event& event() const noexcept { return event_; }
  bool is_set_in(const Stream& stream) const noexcept { return set_in_ == &stream; }

 private:
  Event event_;
  const Stream* set_in_;  // which may be gone: only to compare
};

// All marks that it is given are events.
class EventMarks final : public Marks {
 public:
  // stream: of the back end; it outlives this. alone: there are no other back ends, whose operations would need to
  // wait for those of the stream.
  EventMarks(Stream& stream, bool alone) : stream_(stream), alone_(alone) {}

  std::shared_ptr<Mark> make() override { return std::make_shared<EventMark>(stream_); }
  void set(Mark& mark) override {
    if (!alone_) static_cast<EventMark&>(mark).event().record(stream_);
  }
  void follow(const Mark& mark) override {
    const auto& event_mark = static_cast<const EventMark&>(mark);
    if (!event_mark.is_set_in(stream_)) stream_.follow(event_mark.event());
  }

 private:
  Stream& stream_;
  const bool alone_;
};

}  // namespace shardrec::compute::cuda::host
