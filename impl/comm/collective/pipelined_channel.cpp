#include "comm/collective/pipelined_channel.h"

namespace shardrec::comm {

Ticket PipelinedChannel::post(const Operation& operation, std::span<const ConstBytes> send,
                              std::shared_ptr<const void> keep_alive) {
  // kMost of them may not yet have been received by this rank itself; it has released older ones.
  if (posted_ >= kMost + 2) reclaim_through({.sequence = posted_ - (kMost + 2)});
  const Ticket ticket = channel_->post(operation, send, std::move(keep_alive));
  ++posted_;
  return ticket;
}

void PipelinedChannel::reclaim_through(Ticket ticket) {
  for (; reclaimed_ <= ticket.sequence; ++reclaimed_) channel_->reclaim({.sequence = reclaimed_});
}

}  // namespace shardrec::comm
