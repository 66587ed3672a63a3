// What the ranks of a communicator share, which may be of several processes: a piece of shared memory under a name from
// the communicator's id, which is gone from the system's list once all ranks have it.
//
// Each rank writes its own states, slots and arena. A slot holds one collective, or one side of a message, until all
// that take part have had its bytes; its number is written last. All waits are of a counter of changes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace fake_nccl {

inline constexpr int kMostRanks = 16;
inline constexpr uint64_t kSlots = 512;  // of a rank or pair, operations that are not over
inline constexpr size_t kArenaBytes =
    size_t{1} << 28;  // of a rank; pages that are not written take no memory

enum class Kind : int32_t { kAllReduce = 1, kReduceScatter, kAllGather };
const char* name_of(Kind kind);

struct RankState {
  std::atomic<uint32_t> joined;
  std::atomic<uint32_t> finalized;
  std::atomic<uint32_t> aborted;
  std::atomic<int32_t> device;
  std::atomic<uint64_t>
      issuer;  // who enqueues, for all communicators of a rank; 0: it has not joined
};

// What a rank says of a collective.
struct CollectiveSlot {
  std::atomic<uint64_t> number;  // of its collectives, from 1
  Kind kind;
  int32_t dtype;
  int32_t reduction;
  uint64_t count;
  uint64_t sequence;                 // of the issuer
  uint64_t messages_to[kMostRanks];  // before it
  uint64_t messages_from[kMostRanks];
  uint64_t offset;                // of its bytes in its arena
  std::atomic<uint64_t> staged;   // the number once they lie there
  std::atomic<uint32_t> readers;  // ranks that have read them
};

// What a rank says of a message to or from another one.
struct MessageSlot {
  std::atomic<uint64_t> number;  // of messages of this pair and direction, from 1
  uint64_t bytes;
  uint64_t sequence;     // of the issuer
  uint64_t collectives;  // before it
  uint64_t offset;       // of the sender's bytes in its arena
  std::atomic<uint64_t>
      staged;  // sender: the number once they lie there; receiver: once its stream is there
  std::atomic<uint64_t> read;  // sender: the number once the receiver has read them
};

struct SharedState {
  std::atomic<uint32_t> size;
  std::atomic<uint32_t> changes;
  RankState ranks[kMostRanks];
  CollectiveSlot collectives[kMostRanks][kSlots];
  MessageSlot sends[kMostRanks][kMostRanks][kSlots];     // [sender][receiver]
  MessageSlot receives[kMostRanks][kMostRanks][kSlots];  // [receiver][sender]
};

class Segment {
 public:
  // Takes part in the one of this name, made if there is none. data() is null where the system refuses it.
  Segment(std::string name, int size);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  bool is_there() const noexcept { return state_ != nullptr; }
  SharedState& state() const noexcept { return *state_; }
  std::byte* arena(int rank) const noexcept;

  // No others find it by its name any more.
  void forget_name() noexcept;

  // Something has changed: all who wait look again.
  void notify() noexcept;
  uint32_t changes() const noexcept { return state_->changes.load(); }
  // Until there are other changes than these, or for a moment.
  void wait_past(uint32_t changes) noexcept;

 private:
  const std::string name_;
  size_t bytes_ = 0;
  SharedState* state_ = nullptr;
};

}  // namespace fake_nccl
