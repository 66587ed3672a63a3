// One kind of exchange between the owners and the sources of a batch: the messages that this rank sends,
// the memory that they are written in, and what has come.
//
// Thread rule: as the collection's.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "comm/bodies/carrier.h"
#include "embedding/exchange/ordered_channel.h"

namespace shardrec::embedding {

// Bytes of messages, by rank, that go to others than this one.
inline int64_t bytes_to_others(std::span<const comm::ConstBytes> messages, int own_rank) {
  size_t bytes = 0;
  for (size_t to = 0; to < messages.size(); ++to) {
    if (to != static_cast<size_t>(own_rank)) bytes += messages[to].size();
  }
  return static_cast<int64_t>(bytes);
}

class Exchange {
 public:
  // call: which call of the API it belongs to; rank: this rank's.
  Exchange(ExchangeKind kind, const char* call, int rank, OrderedChannel& channel,
           comm::BodyCarrier& bodies)
      : kind_(kind),
        call_(call),
        rank_(rank),
        channel_(channel),
        buffer_(bodies.make_buffer()),
        received_(bodies.make_received()) {}

  // Where the messages are laid out and written. It may be written again when the exchange is
  // reclaimed.
  comm::MessageBuffer& buffer() { return *buffer_; }

  // By rank, in buffer(), or in what keep_alive keeps. lookup: number of the one they are of.
  void post(uint64_t lookup, std::span<const comm::ConstBytes> messages) {
    post(lookup, messages, buffer_->keep_alive());
  }
  void post(uint64_t lookup, std::span<const comm::ConstBytes> messages,
            std::shared_ptr<const void> keep_alive) {
    channel_.post(kind_, call_, lookup, messages, std::move(keep_alive));
    sent_bytes_ = bytes_to_others(messages, rank_);
  }
  // The messages of all ranks, until the channel lets go of them.
  std::span<const comm::ConstBytes> receive() { return messages_ = channel_.receive(); }
  // Behind receive(): their bodies, where operations read them. heads: as ReceivedBodies has them.
  std::span<const comm::ConstBytes> bodies(std::span<const size_t> heads = {}) {
    return received_->open(messages_, heads);
  }

  // Adds the bytes that post() sent to other ranks.
  void count_sent(std::atomic<int64_t>& counter) const {
    counter.fetch_add(sent_bytes_, std::memory_order_relaxed);
  }

 private:
  ExchangeKind kind_;
  const char* call_;
  int rank_;
  OrderedChannel& channel_;
  std::unique_ptr<comm::MessageBuffer> buffer_;
  std::unique_ptr<comm::ReceivedBodies> received_;
  std::span<const comm::ConstBytes> messages_;
  int64_t sent_bytes_ = 0;
};

}  // namespace shardrec::embedding
