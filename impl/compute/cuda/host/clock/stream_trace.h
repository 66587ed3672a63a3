// What a stream does in the trace, for those who count no times: spans of its operations in a row of their own. Without a
// trace a span costs a look at whether there is one.
//
// Thread rule: that of the stream.
#pragma once

#include <memory>
#include <optional>

#include "compute/cuda/host/clock/event_clock.h"
#include "compute/cuda/host/stream.h"
#include "core/trace.h"

namespace shardrec::compute::cuda::host {

class StreamTrace {
 public:
  explicit StreamTrace(std::shared_ptr<Stream> stream) noexcept : stream_(std::move(stream)) {}

  // Spans that begin from now on are in this row. Without one no trace has them.
  void set_track(const core::TraceTrack& track) noexcept;

  // The operations from here to the end of the scope. Spans do not nest, and begin behind what the stream waits for.
  class Span {
   public:
    // name: a string literal.
    Span(StreamTrace& trace, const char* name) noexcept : clock_(trace.entered(name)) {}
    ~Span() {
      if (clock_ != nullptr) clock_->leave();
    }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    EventClock* clock_;  // null: no trace is on
  };

 private:
  EventClock* entered(const char* name) noexcept;

  std::shared_ptr<Stream> stream_;
  std::optional<core::TraceTrack> track_;
  std::optional<EventClock> clock_;  // since the first span in a trace
};

}  // namespace shardrec::compute::cuda::host
