// One bucket's way over the ranks: gradients are copied into messages, added up over the ranks, and
// written back. Nobody reads a gradient after post() but receive() and finish(), which overwrite it.
//
// Two ranks, or a small bucket: everybody sends all of it to everybody and adds up for itself, one
// exchange. Else rank r adds up the r-th part of the elements and sends the sum to all, a second
// exchange on a channel of its own, so that all ranks post in one order on either channel, whatever
// is ready when. The choice depends on sizes alone; the bits are the same.
//
//   post -- receive --> done                        direct
//        \- receive --> adding -- finish --> done   in parts
//
// Thread rule: one thread at a time for all exchanges of one pair of lanes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/collective/owned_range.h"
#include "comm/communicator.h"
#include "core/memory.h"
#include "dense/ddp/buckets.h"
#include "dense/ddp/message.h"
#include "dense/ddp/rank_sums.h"

namespace shardrec::dense {

// A channel whose exchanges are received in the order of posting. Reclaims the oldest when it must.
class Lane {
 public:
  explicit Lane(std::shared_ptr<comm::Channel> channel) : channel_(std::move(channel)) {}

  // May wait for peers to have read what was posted kMost exchanges ago.
  comm::Ticket post(const comm::Operation& operation, std::span<const comm::ConstBytes> send,
                    std::shared_ptr<const void> owner);
  void receive(comm::Ticket ticket, std::span<comm::ConstBytes> received) {
    channel_->receive(ticket, received);
  }
  void release(comm::Ticket ticket) noexcept { channel_->release(ticket); }
  // Waits until the peers have read this exchange and all before it.
  void reclaim_through(comm::Ticket ticket);

  // Exchanges that may be posted and not yet received.
  static constexpr uint64_t kMost = comm::Channel::kMostInFlight - 4;

 private:
  std::shared_ptr<comm::Channel> channel_;
  uint64_t posted_ = 0;
  uint64_t reclaimed_ = 0;
};

struct Lanes {
  Lane parts;
  Lane sums;
};

// The gradient of a parameter of the bucket, in the bucket's order.
struct GradientSlot {
  void* gradient = nullptr;
  int64_t offset = 0;  // in the bucket
  int64_t elements = 0;
};

struct ExchangeShape {
  int rank = 0;
  int ranks = 1;
  shardrec_dtype dtype = SHARDREC_FLOAT32;
  shardrec_dtype wire = SHARDREC_FLOAT32;  // of the messages
  bool asks_who_used = false;
  bool carries_gradients = true;  // else only heads travel
};

class BucketExchange {
 public:
  BucketExchange(const ExchangeShape& shape, uint64_t number, int64_t elements,
                 std::vector<GradientSlot> slots);

  // What the ranks' heads said.
  struct Heads {
    BucketVerdict verdict = BucketVerdict::kReady;  // of the first rank that is not ready
    int rank = -1;
    int32_t parameter = -1;
    int joined = 0;   // ranks
    int longest = 0;  // the first rank with the most steps
    uint64_t most_steps = 0;
  };

  // used: by this rank, per slot; where it is false zeros are sent. Copies the gradients.
  void post(Lanes& lanes, const BucketHead& head, std::span<const char> used);
  // Waits for the peers. scale: by what the heads say. Without a verdict but kReady nothing is
  // written. False: finish() is to follow.
  template <class ScaleOf>
  bool receive(Lanes& lanes, RankSums& sums, const ScaleOf& scale_of) {
    receive_heads(lanes);
    if (heads_.verdict != BucketVerdict::kReady) return drop(lanes);
    return add_up(lanes, sums, scale_of(heads_));
  }
  void finish(Lanes& lanes);

  const Heads& heads() const noexcept { return heads_; }
  bool direct() const noexcept { return direct_; }
  // After receive(): whether some rank has used it, where the ranks ask.
  bool is_written(size_t slot) const noexcept { return written_[slot] != 0; }
  // Sent to each peer, with gradients, both exchanges together.
  size_t bytes_per_peer() const noexcept;

 private:
  // The elements of the bucket that this rank's message to `rank` has.
  comm::OwnedRange part_of(int rank) const noexcept;
  size_t wire_bytes(int64_t elements) const noexcept;
  void stage(const comm::OwnedRange& part, const BucketHead& head, std::span<const char> used,
             std::byte* out);
  void receive_heads(Lanes& lanes);
  bool drop(Lanes& lanes);
  bool add_up(Lanes& lanes, RankSums& sums, const GradientScale& scale);
  // body(slot, first element of its gradient, place in the bucket, count) for what of the slots that
  // are to be written lies in the part.
  template <class Body>
  void for_each_run(const comm::OwnedRange& part, const Body& body) const;

  const ExchangeShape shape_;
  const uint64_t number_;
  const int64_t elements_;
  const std::vector<GradientSlot> slots_;
  const bool direct_;
  const size_t map_bytes_;
  std::shared_ptr<core::Scratch> outgoing_ = std::make_shared<core::Scratch>();
  std::shared_ptr<core::Scratch> own_sums_ = std::make_shared<core::Scratch>();
  comm::Ticket parts_{};
  comm::Ticket sums_{};
  bool has_posted_parts_ = false;
  bool has_posted_sums_ = false;
  std::vector<comm::ConstBytes> send_;
  std::vector<comm::ConstBytes> received_;
  std::vector<const std::byte*> inputs_;
  std::vector<char> written_;  // per slot: not where all ranks say that they did not use it
  Heads heads_;
};

}  // namespace shardrec::dense
