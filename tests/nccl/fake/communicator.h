// One rank of a communicator.
//
// Its state changes in calls, which are made by one thread at a time: what is in progress goes on in poll(). Streams
// hold it too, until the last of its operations is over.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "arena.h"
#include "comm/nccl/nccl_api.h"
#include "issuer.h"
#include "segment.h"

namespace fake_nccl {

using shardrec::comm::nccl::Result;
class Operation;

// What a rank has enqueued, until its peer has enqueued what belongs to it.
struct Unmatched {
  enum class What { kCollective, kSend, kReceive };
  What what;
  int peer;
  uint64_t number;
  uint64_t sequence;
  bool reported = false;
  // Of a collective.
  Kind kind{};
  int32_t dtype = 0;
  int32_t reduction = 0;
  uint64_t count = 0;
  uint64_t messages_to = 0;  // the peer, before it
  uint64_t messages_from = 0;
  // Of a message.
  uint64_t bytes = 0;
  uint64_t collectives = 0;  // before it
};

class Communicator {
 public:
  struct Place {
    std::string name;  // of the segment
    uint64_t number;   // the same in all ranks
    int rank;
    int size;
    bool blocking;
  };
  Communicator(const Place& place, Issuer& issuer);

  const Place place;
  Issuer& issuer;

  // Calls; the issuer's lock is held.
  bool is_in_progress() const;
  bool is_finalized() const { return phase_ == Phase::kFinalized; }
  bool has_pending() const { return issued_ != done_.load(); }
  Result error() const { return static_cast<Result>(error_.load()); }
  Result begin(std::unique_ptr<Operation> operation);
  Result poll();
  Result finalize();
  // No call follows. What waits in streams ends. in_order: it was not aborted.
  void end(bool in_order) noexcept;

  // Streams.
  Segment& segment() { return segment_; }
  Arena& arena() { return arena_; }
  bool is_aborted() const { return aborted_.load(); }
  void set_error(Result error) { error_.store(error); }
  uint64_t done() const { return done_.load(); }
  void add_done() { done_.fetch_add(1); }
  // False: it was aborted.
  template <class Condition>
  bool wait_until(const Condition& condition) {
    for (;;) {
      const uint32_t changes = segment_.changes();
      if (is_aborted()) return false;
      if (condition()) return true;
      segment_.wait_past(changes);
    }
  }

  // The registry holds it, and each operation does; the last that lets go of it deletes it.
  void hold() noexcept;
  void let_go() noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  enum class Phase { kJoining, kReady, kFinalizing, kFinalized };

  ~Communicator();
  Result join();
  Result check_members();
  Result go_on_finalizing();
  Result issue();
  bool wait_for_slots(const Operation& operation);
  void publish(Operation& operation);
  void publish_collectives(Operation& operation);
  void publish_messages(Operation& operation);
  bool polled_enough();
  // Compares what the peers have enqueued by now with what belongs to it here (matches.cpp).
  void check_matches();
  bool is_settled(Unmatched& mine);
  void check_collective(const Unmatched& mine, const CollectiveSlot& theirs) const;
  void check_message(const Unmatched& mine, const MessageSlot& theirs) const;
  void check_order(const Unmatched& mine, uint64_t their_sequence);
  bool waits_for_another(const Unmatched& mine) const;

  Segment segment_;
  Arena arena_{kArenaBytes};
  Phase phase_ = Phase::kJoining;
  Clock::time_point join_at_;
  bool joins_ever_ = true;
  bool has_joined_ = false;
  int polls_left_ = 0;
  std::unique_ptr<Operation> waiting_;  // begun, and not in its stream yet
  uint64_t issued_ = 0;
  uint64_t collectives_ = 0;
  uint64_t sends_[kMostRanks] = {};
  uint64_t receives_[kMostRanks] = {};
  std::list<Unmatched> unmatched_;
  std::atomic<uint64_t> done_{0};
  std::atomic<int32_t> error_{shardrec::comm::nccl::kSuccess};
  std::atomic<bool> aborted_{false};
  std::atomic<int> holders_{1};
};

}  // namespace fake_nccl
