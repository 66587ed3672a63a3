// The shared state of one channel: one ring per rank, which holds the exchanges that the rank has
// posted. Nothing here waits or fails; channel.cpp does.
//
// A slot of a ring holds exchange n from its publication until every rank has released it. Then the
// slot may hold exchange n + kMostInFlight. Hence all ranks have posted n before any rank posts n +
// kMostInFlight, and a slot does not change while a reader has not released it.
//
// Memory order: what a sender wrote before publish() is visible to a thread that has seen arrived(n).
// What a reader did before release() is visible to a thread that has seen drained(n).
//
// Thread rule: calls that name a rank come from that rank's one thread on this channel, except
// where said.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "comm/local/wake_up.h"

namespace shardrec::comm::local {

class Rings {
 public:
  explicit Rings(int ranks);

  // Makes room for the marks of the rank's readers; before its other calls.
  void open(int rank, Purpose purpose);

  // False while the slot of exchange `sequence` is still read by somebody.
  bool has_room(int rank, uint64_t sequence) const noexcept;
  // Makes room for the messages of exchange `sequence` (the rank's next), where there is room for it.
  void prepare(int rank, uint64_t sequence, std::span<const ConstBytes> send);
  // Puts it, when it is prepared, where peers can compare it. It cannot be received yet.
  void publish(int rank, uint64_t sequence, const Operation& operation,
               std::shared_ptr<const void> keep_alive) noexcept;
  // Counts the rank in; the last one wakes who waits for the exchange.
  void arrive(int rank, uint64_t sequence) noexcept;

  bool arrived(uint64_t sequence) const noexcept;
  // What rank `from` sends to rank `to`, after arrived().
  ConstBytes message(int from, int to, uint64_t sequence) const noexcept;

  // The reader is done with every published message of the exchange. Any thread.
  void release(int reader, uint64_t sequence) noexcept;
  bool drained(int sender, uint64_t sequence) const noexcept;
  // The rank knows that its exchange is drained.
  void reclaim(int rank, uint64_t sequence) noexcept;

  // The rank will neither post nor read any more: peers' messages to it count as released. Its own
  // stay readable. True for the last rank of all.
  bool close(int rank) noexcept;

  // What others may ask about a rank, from any thread.
  bool posted(int rank, uint64_t sequence) const noexcept;  // has published it
  bool closed(int rank) const noexcept;
  bool released(int reader, int sender, uint64_t sequence) const noexcept;
  const Operation& operation(int rank, uint64_t sequence) const noexcept;  // after posted()
  Purpose purpose(int rank) const noexcept;                                // after posted()
  WakeUp& wake_up(int rank) noexcept { return rings_[static_cast<size_t>(rank)].wake_up; }
  int ranks() const noexcept { return static_cast<int>(rings_.size()); }

 private:
  static constexpr size_t kSlots = Channel::kMostInFlight;

  struct Slot {
    Operation operation;
    std::shared_ptr<const void> keep_alive;
    std::atomic<uint32_t> readers{0};  // who have not released it
    std::atomic<uint64_t> drained{0};  // number of exchanges up to the last one that all released
    bool to_all = false;               // do all readers get the same message?
    ConstBytes message;                // that one
    std::vector<ConstBytes> messages;  // by reader, where they differ
  };
  struct alignas(64) Ring {
    WakeUp wake_up;
    Purpose purpose{};
    std::array<Slot, kSlots> slots;
    std::vector<std::vector<ConstBytes>> spare;  // memory of messages; the sender's alone
    std::vector<std::atomic<uint8_t>> releases;  // slot x reader: round_of() the released exchange
    std::atomic<uint64_t> posted{0};             // number of exchanges
    std::atomic<bool> closed{false};
  };

  static size_t slot_of(uint64_t sequence) noexcept { return sequence % kSlots; }
  // Counts the exchanges of a slot. A reader's mark is at the round of the slot's exchange or one before it,
  // so that the lowest bits tell.
  static uint8_t round_of(uint64_t sequence) noexcept {
    return static_cast<uint8_t>(sequence / kSlots + 1);
  }
  static bool reached(uint8_t mark, uint64_t sequence) noexcept {
    return static_cast<int8_t>(static_cast<uint8_t>(mark - round_of(sequence))) >= 0;
  }
  size_t entry(uint64_t sequence, int reader) const noexcept {
    return slot_of(sequence) * rings_.size() + static_cast<size_t>(reader);
  }
  const Ring& ring(int rank) const noexcept { return rings_[static_cast<size_t>(rank)]; }
  Ring& ring(int rank) noexcept { return rings_[static_cast<size_t>(rank)]; }
  void release_one(int reader, int sender, uint64_t sequence) noexcept;

  std::vector<Ring> rings_;
  std::array<std::atomic<uint64_t>, kSlots> arrivals_{};  // all ranks' arrivals in a slot, ever
  std::atomic<int> open_;                                 // rings not closed
};

}  // namespace shardrec::comm::local
