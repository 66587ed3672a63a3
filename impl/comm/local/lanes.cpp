#include "comm/local/lanes.h"

#include <algorithm>
#include <utility>

namespace shardrec::comm::local {

Lanes::Lanes(int ranks) : lanes_(static_cast<size_t>(ranks)), open_(ranks) {}

void Lanes::open(int rank, Purpose purpose) {
  Lane& own = lane(rank);
  own.purpose = purpose;
  own.messages.resize(kSlots * lanes_.size());
  own.releases = std::vector<std::atomic<uint64_t>>(kSlots * lanes_.size());
}

bool Lanes::has_room(int rank, uint64_t sequence) const noexcept {
  return sequence < kSlots || drained(rank, sequence - kSlots);
}

void Lanes::publish(int rank, uint64_t sequence, const Operation& operation,
                    std::span<const ConstBytes> send, std::shared_ptr<const void> owner) noexcept {
  Lane& own = lane(rank);
  Slot& slot = own.slots[slot_of(sequence)];
  std::copy(send.begin(), send.end(),
            own.messages.begin() + static_cast<std::ptrdiff_t>(entry(sequence, 0)));
  slot.operation = operation;
  slot.owner = std::move(owner);
  slot.readers.store(static_cast<uint32_t>(lanes_.size()), std::memory_order_relaxed);
  own.posted.store(sequence + 1);
  // Who closes at this moment sees the message and releases it, or is seen here.
  for (int reader = 0; reader < ranks(); ++reader) {
    if (lane(reader).closed.load()) release_one(reader, rank, sequence);
  }
}

void Lanes::arrive(int rank, uint64_t sequence) noexcept {
  const uint64_t before = arrivals_[slot_of(sequence)].fetch_add(1);
  if (before + 1 != (sequence / kSlots + 1) * lanes_.size()) return;
  for (int other = 0; other < ranks(); ++other) {
    if (other != rank) bell(other).ring(Wish::kArrival);
  }
}

bool Lanes::arrived(uint64_t sequence) const noexcept {
  return arrivals_[slot_of(sequence)].load() >= (sequence / kSlots + 1) * lanes_.size();
}

ConstBytes Lanes::message(int from, int to, uint64_t sequence) const noexcept {
  return lane(from).messages[entry(sequence, to)];
}

void Lanes::release(int reader, uint64_t sequence) noexcept {
  for (int sender = 0; sender < ranks(); ++sender) {
    if (posted(sender, sequence)) release_one(reader, sender, sequence);
  }
}

void Lanes::release_one(int reader, int sender, uint64_t sequence) noexcept {
  Lane& from = lane(sender);
  std::atomic<uint64_t>& mark = from.releases[entry(sequence, reader)];
  // A second release, also one that comes when the slot holds a later exchange, changes nothing.
  uint64_t known = mark.load();
  do {
    if (known > sequence) return;
  } while (!mark.compare_exchange_weak(known, sequence + 1));
  Slot& slot = from.slots[slot_of(sequence)];
  if (slot.readers.fetch_sub(1) != 1) return;
  slot.owner.reset();
  slot.drained.store(sequence + 1);
  from.bell.ring(Wish::kRelease);
}

bool Lanes::drained(int sender, uint64_t sequence) const noexcept {
  return lane(sender).slots[slot_of(sequence)].drained.load() > sequence;
}

bool Lanes::close(int rank) noexcept {
  lane(rank).closed.store(true);
  for (int sender = 0; sender < ranks(); ++sender) {
    const uint64_t end = lane(sender).posted.load();
    for (uint64_t n = end - std::min<uint64_t>(end, kSlots); n < end; ++n) {
      release_one(rank, sender, n);
    }
  }
  for (int other = 0; other < ranks(); ++other) {
    if (other != rank) bell(other).ring_whatever_it_wants();
  }
  return open_.fetch_sub(1) == 1;
}

bool Lanes::posted(int rank, uint64_t sequence) const noexcept {
  return lane(rank).posted.load() > sequence;
}

bool Lanes::closed(int rank) const noexcept { return lane(rank).closed.load(); }

bool Lanes::released(int reader, int sender, uint64_t sequence) const noexcept {
  return lane(sender).releases[entry(sequence, reader)].load() > sequence;
}

const Operation& Lanes::operation(int rank, uint64_t sequence) const noexcept {
  return lane(rank).slots[slot_of(sequence)].operation;
}

Purpose Lanes::purpose(int rank) const noexcept { return lane(rank).purpose; }

}  // namespace shardrec::comm::local
