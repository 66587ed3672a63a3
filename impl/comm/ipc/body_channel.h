// A channel whose messages' bodies are copied by their receivers, from the device of a process to that of another one.
// What goes by the channel below it are heads, each with the place of its body in memory that the sender has shared
// (exports.h) and the event behind which it is written. When all heads of an exchange are there, a rank waits until the
// bodies are written, enqueues copies of them in a stream of its own, and acknowledges the exchange with an event behind
// them; reclaim() waits for those of the peers. Events are of one exchange: what a rank enqueues later holds nobody up.
//
// Bodies that have come are shared memory (bodies/shared_memory.h), as those of ranks of one process are: whoever
// has the message finds its body there.
//
// Where the ranks have no links, it is the channel below.
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
#include "comm/ipc/acknowledgements.h"
#include "comm/ipc/links.h"
#include "comm/ipc/unread.h"
#include "compute/backend.h"

namespace shardrec::comm::ipc {

class BodyChannel final : public Channel {
 public:
  // The back end outlives this. unread: takes what peers may be reading when this ends.
  BodyChannel(std::shared_ptr<Channel> heads, std::shared_ptr<Links> links,
              std::shared_ptr<Unread> unread, compute::Backend& backend);
  ~BodyChannel() override;
  BodyChannel(const BodyChannel&) = delete;
  BodyChannel& operator=(const BodyChannel&) = delete;

  // Before the first message, where the ranks have links.
  void acknowledge_by(std::shared_ptr<Channel> channel);

  Ticket post(const Operation& operation, std::span<const ConstBytes> send,
              std::shared_ptr<const void> keep_alive) override;
  void receive(Ticket ticket, std::span<ConstBytes> received) override;
  // receive() may still wait for peers' devices then.
  [[nodiscard]] bool has_arrived(Ticket ticket) noexcept override {
    return heads_->has_arrived(ticket);
  }
  void release(Ticket ticket) noexcept override;
  void reclaim(Ticket ticket) override;

 private:
  // Where a body is, and the event behind which it is there.
  struct BodyPlace {
    Place at;
    EventPlace written;
  };
  struct Exchange {
    const char* operation = "";
    ConstBytes own;  // to itself
    std::shared_ptr<std::vector<std::byte>> heads = std::make_shared<std::vector<std::byte>>();
    Unread::Bodies sent;  // until they are reclaimed
    // Behind the copies of the last exchange that this place had. Peers have asked for it when they post the one that
    // has the place next.
    std::shared_ptr<Exports::Event> copied;
    std::shared_ptr<const void> keep_alive;
    std::unique_ptr<Arrivals> arrivals;  // while they are read
  };
  // What comes: a body of a peer.
  struct Part {
    size_t peer = 0;
    size_t head = 0;  // bytes of its message before it
    uint64_t bytes = 0;
    BodyPlace place;
    std::byte* to = nullptr;
  };

  static size_t header_of(uint64_t body) noexcept;
  Exchange& of(Ticket ticket) { return exchanges_[ticket.sequence % exchanges_.size()]; }
  // Of a message that is sent: where its body is.
  void find_body(Exchange& exchange, size_t to, ConstBytes message);
  void write_heads(std::vector<std::byte>& heads, std::span<const ConstBytes> send);
  void read_heads();
  void place(const Arrivals* arrivals, std::span<ConstBytes> received);
  void copy(Exchange& exchange, uint64_t sequence);
  void finish_copies() noexcept;

  const std::shared_ptr<Channel> heads_;
  const std::shared_ptr<Links> links_;
  const std::shared_ptr<Unread> unread_;
  compute::Backend& backend_;
  const size_t rank_;
  std::unique_ptr<Acknowledgements> acknowledgements_;  // null: there are no links
  uint64_t posted_ = 0;
  std::vector<ConstBytes> messages_;  // as the channel below takes and shows them
  std::vector<size_t> head_bytes_;    // by rank, of those that are posted
  std::vector<BodyPlace> places_;     // likewise, where they have a body
  std::vector<Part> parts_;
  std::shared_ptr<compute::Mark> written_;  // in the back end's operations
  ArrivalPool arrivals_;
  std::array<Exchange, kMostInFlight> exchanges_;  // by sequence
};

}  // namespace shardrec::comm::ipc
