// A channel whose exchanges are received in the order in which they were posted, several of them in
// flight. It reclaims the oldest when there is no room for another. The collectives of this folder
// (all_to_all.h, reduce_scatter.h, all_gather.h) run on one. Nobody else posts on its channel.
//
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "comm/communicator.h"

namespace shardrec::comm {

class PipelinedChannel {
 public:
  explicit PipelinedChannel(std::shared_ptr<Channel> channel) : channel_(std::move(channel)) {}

  // As Channel::post(). May wait until the peers have released what was posted kMost exchanges ago.
  Ticket post(const Operation& operation, std::span<const ConstBytes> send,
              std::shared_ptr<const void> keep_alive);
  bool has_arrived(Ticket ticket) const noexcept { return channel_->has_arrived(ticket); }
  void receive(Ticket ticket, std::span<ConstBytes> received) {
    channel_->receive(ticket, received);
  }
  void release(Ticket ticket) noexcept { channel_->release(ticket); }
  // Waits until the peers have released this exchange and all before it. Does nothing if that was
  // waited for before.
  void reclaim_through(Ticket ticket);

  // Number of exchanges that were posted: the next one's sequence number.
  uint64_t posted() const noexcept { return posted_; }

  // Exchanges that may be posted and not yet received.
  static constexpr uint64_t kMost = Channel::kMostInFlight - 4;

 private:
  std::shared_ptr<Channel> channel_;
  uint64_t posted_ = 0;
  uint64_t reclaimed_ = 0;  // all exchanges below are
};

}  // namespace shardrec::comm
