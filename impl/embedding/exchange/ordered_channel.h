// The one channel of a collection on which everything that reads or writes weights is exchanged: forward,
// backward, rows, sync take effect in call order, the same on all ranks; its sequence numbers prove it.
//
// Thread rule: as the collection's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/bodies/carrier.h"
#include "comm/communicator.h"

namespace shardrec::embedding {

// Kinds of exchanges on the channel (comm::Operation::kind).
enum class ExchangeKind : uint32_t {
  kOutput = 1,
  kGradient,
  kStatistics,
  kReadRequest,
  kReadReply,
  kWrite,
  kSync,
  kNorms,
  kReplicaRows,
  kReplicaSums,
  kWeightGradients,
  kNodeSums,
  kReadListRequest,
  kReadListReply,
  kWriteList,
  kReplicaWeights,
};

class OrderedChannel {
 public:
  // bodies: what the messages' bodies are carried by.
  OrderedChannel(std::shared_ptr<comm::Channel> channel, int ranks, comm::BodyCarrier& bodies);
  // Lets go of all views; operations no longer read them.
  ~OrderedChannel();
  OrderedChannel(const OrderedChannel&) = delete;
  OrderedChannel& operator=(const OrderedChannel&) = delete;

  // One exchange. The views stay valid until let_go() or settle(); buffers may be written again after
  // settle(), or reclaim(). At most kMostHeld exchanges are not reclaimed: INTERNAL for one more, and
  // nothing was exchanged.
  std::span<const comm::ConstBytes> exchange(ExchangeKind kind, const char* name, uint64_t detail,
                                             std::span<const comm::ConstBytes> messages,
                                             std::shared_ptr<const void> keep_alive);
  // The same in two halves, for work while messages travel; nothing else is exchanged in between,
  // nor settled. What this rank sends to itself may be written until receive().
  void post(ExchangeKind kind, const char* name, uint64_t detail,
            std::span<const comm::ConstBytes> messages, std::shared_ptr<const void> keep_alive);
  std::span<const comm::ConstBytes> receive();
  // For calls that exchange something: the two halves may be those of two calls. Throws
  // INVALID_STATE where the first half was posted and not received.
  void require_nothing_posted(const char* call) const;
  // One backward exchanges 7 at most: kGradient, kWeightGradients, kReplicaRows, kReplicaSums,
  // kStatistics, kNorms, kReplicaWeights. While it receives the first, those of the backward before it may be there
  // still. A forward, a read, a write or a sync exchanges two at most.
  static constexpr size_t kMostHeld = 8;
  // Exchanges that are not reclaimed.
  size_t held() const { return held_count_; }

  // Lets go of all views. Waits for nobody.
  void let_go();
  // Waits until the peers have let go of what this rank sent in exchanges whose views it has let
  // go of itself. Where a later exchange has been received, and the peers let go before they post,
  // they have done so.
  void reclaim();
  // Both: waits for peers to come to their let_go() or settle().
  void settle();
  // Counts how often views were let go of: those of an older count are gone.
  uint64_t times_let_go() const { return times_let_go_; }

 private:
  struct Held {
    comm::Ticket ticket;
    std::vector<comm::ConstBytes> views;
  };
  static_assert(kMostHeld <= comm::Channel::kMostInFlight);

  std::shared_ptr<comm::Channel> channel_;
  comm::BodyCarrier& bodies_;
  std::array<Held, kMostHeld> held_;  // in the order of the exchanges
  size_t held_count_ = 0;
  size_t released_count_ = 0;  // of held_, from the first on: those whose views were let go of
  bool posted_ = false;        // the one behind held_count_ is posted and not received
  uint64_t times_let_go_ = 0;
};

}  // namespace shardrec::embedding
