// Marks of a device: events.
#pragma once

#include <cstdint>
#include <memory>

#include "compute/cuda/host/stream.h"
#include "compute/mark.h"

namespace shardrec::compute::cuda::host {

class EventMark final : public Mark {
 public:
  explicit EventMark(int32_t device) : event_(device) {}

  int32_t device() const noexcept override { return event_.device(); }
  void wait() const noexcept override { table().wait_for_event(event_.handle()); }

  Event& event() noexcept { return event_; }
  const Event& event() const noexcept { return event_; }

 private:
  Event event_;
};

// All marks that it is given are events.
class EventMarks final : public Marks {
 public:
  // stream: of the back end; it outlives this.
  explicit EventMarks(Stream& stream) : stream_(stream) {}

  std::shared_ptr<Mark> make() override { return std::make_shared<EventMark>(stream_.device()); }
  void set(Mark& mark) override { static_cast<EventMark&>(mark).event().record(stream_); }
  void follow(const Mark& mark) override {
    stream_.follow(static_cast<const EventMark&>(mark).event());
  }

 private:
  Stream& stream_;
};

}  // namespace shardrec::compute::cuda::host
