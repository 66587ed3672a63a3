// A channel whose messages' bodies go from device to device. What goes by the channel below it are heads, each with
// the size of its body. When all heads of an exchange are there, the rank enqueues one group of NCCL with the bodies
// that it sends and those that it receives: all ranks do so in the order in which they receive exchanges. Nobody
// waits for the bodies but operations, by marks; they find zeros where the group was broken off (compute/stop.h).
//
// Bodies that have come are shared memory (bodies/shared_memory.h), as those of ranks of one process are: whoever
// has the message finds its body there.
//
// Thread rule: that of the back end and of the channel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/bodies/arrivals.h"
#include "comm/bodies/shared_memory.h"
#include "comm/communicator.h"
#include "comm/nccl/lanes.h"
#include "compute/backend.h"

namespace shardrec::comm::nccl {

class BodyChannel final : public Channel {
 public:
  // The back end outlives this.
  BodyChannel(std::shared_ptr<Channel> heads, std::shared_ptr<Lanes> lanes, Purpose purpose,
              compute::Backend& backend);
  ~BodyChannel() override;
  BodyChannel(const BodyChannel&) = delete;
  BodyChannel& operator=(const BodyChannel&) = delete;

  Ticket post(const Operation& operation, std::span<const ConstBytes> send,
              std::shared_ptr<const void> keep_alive) override;
  void receive(Ticket ticket, std::span<ConstBytes> received) override;
  [[nodiscard]] bool has_arrived(Ticket ticket) noexcept override {
    return heads_->has_arrived(ticket);
  }
  void release(Ticket ticket) noexcept override;
  void reclaim(Ticket ticket) override;

 private:
  struct Exchange {
    const char* operation = "";
    ConstBytes own;  // to itself
    std::shared_ptr<std::vector<std::byte>> heads = std::make_shared<std::vector<std::byte>>();
    std::vector<shardrec_nccl_part> sends;
    std::vector<std::shared_ptr<SharedMemory>> from;  // that they lie in, each once
    std::shared_ptr<const void> keep_alive;
    std::unique_ptr<Arrivals> arrivals;  // while they are read
  };

  Exchange& of(Ticket ticket) { return exchanges_[ticket.sequence % exchanges_.size()]; }
  // Bytes of the message's head; what lies on the device is to be sent.
  size_t add_send(Exchange& exchange, size_t to, ConstBytes message);
  void write_heads(std::vector<std::byte>& heads, std::span<const ConstBytes> send);
  size_t body_of(size_t from) const;
  void place(const Arrivals* arrivals, std::span<ConstBytes> received);
  void enqueue(Exchange& exchange, uint64_t sequence, size_t bytes);
  void mark(const Exchange& exchange);

  const std::shared_ptr<Channel> heads_;
  const std::shared_ptr<Lanes> lanes_;
  Lane& lane_;
  const size_t rank_;
  std::shared_ptr<compute::Mark> sent_;  // in the lane
  uint64_t posted_ = 0;
  std::vector<ConstBytes> messages_;  // as the channel below takes and shows them
  std::vector<size_t> head_bytes_;    // by rank, of those that are posted
  std::vector<shardrec_nccl_part> receives_;
  ArrivalPool arrivals_;
  std::array<Exchange, kMostInFlight> exchanges_;  // by sequence
};

}  // namespace shardrec::comm::nccl
