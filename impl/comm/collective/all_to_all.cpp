#include "comm/collective/all_to_all.h"

#include <utility>

#include "comm/collective/received.h"

namespace shardrec::comm {

AllToAll::AllToAll(PipelinedChannel& channel, int ranks)
    : channel_(channel), received_(static_cast<size_t>(ranks)) {}

void AllToAll::start(const Operation& operation, std::span<const ConstBytes> send,
                     std::shared_ptr<const void> keep_alive) {
  release();
  operation_ = operation;
  ticket_ = channel_.post(operation, send, std::move(keep_alive));
  is_started_ = true;
}

std::span<const ConstBytes> AllToAll::finish() {
  if (!is_reading_) channel_.receive(ticket_, received_);
  is_reading_ = true;
  return received_;
}

void AllToAll::release() noexcept {
  if (!is_reading_) return;
  channel_.release(ticket_);
  is_reading_ = false;
}

void AllToAll::reclaim() {
  if (is_started_) channel_.reclaim_through(ticket_);
}

void AllToAll::require_size(size_t from, size_t bytes) const {
  comm::require_size(operation_, from, received_[from], bytes);
}

}  // namespace shardrec::comm
