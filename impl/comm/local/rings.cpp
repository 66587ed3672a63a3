#include "comm/local/rings.h"

#include <algorithm>
#include <utility>

namespace shardrec::comm::local {

Rings::Rings(int ranks) : rings_(static_cast<size_t>(ranks)), open_(ranks) {}

void Rings::open(int rank, Purpose purpose) {
  Ring& own = ring(rank);
  own.purpose = purpose;
  own.spare.reserve(kSlots);
  own.releases = std::vector<std::atomic<uint8_t>>(kSlots * rings_.size());
}

bool Rings::has_room(int rank, uint64_t sequence) const noexcept {
  return sequence < kSlots || drained(rank, sequence - kSlots);
}

// The memory of messages goes from exchanges that are reclaimed to later ones: there is as much as the rank has in
// flight at once, however quick its peers are.
void Rings::prepare(int rank, uint64_t sequence, std::span<const ConstBytes> send) {
  Ring& own = ring(rank);
  Slot& slot = own.slots[slot_of(sequence)];
  const auto same = [&](ConstBytes message) {
    return message.data() == send[0].data() && message.size() == send[0].size();
  };
  slot.to_all = std::all_of(send.begin(), send.end(), same);
  slot.message = send[0];
  if (slot.to_all) return;
  if (slot.messages.empty() && !own.spare.empty()) {
    slot.messages.swap(own.spare.back());
    own.spare.pop_back();
  }
  slot.messages.assign(send.begin(), send.end());
}

void Rings::publish(int rank, uint64_t sequence, const Operation& operation,
                    std::shared_ptr<const void> keep_alive) noexcept {
  Ring& own = ring(rank);
  Slot& slot = own.slots[slot_of(sequence)];
  slot.operation = operation;
  slot.keep_alive = std::move(keep_alive);
  slot.readers.store(static_cast<uint32_t>(rings_.size()), std::memory_order_relaxed);
  own.posted.store(sequence + 1);
  // Who closes at this moment sees the message and releases it, or is seen here.
  for (int reader = 0; reader < ranks(); ++reader) {
    if (ring(reader).closed.load()) release_one(reader, rank, sequence);
  }
}

void Rings::arrive(int rank, uint64_t sequence) noexcept {
  const uint64_t before = arrivals_[slot_of(sequence)].fetch_add(1);
  if (before + 1 != (sequence / kSlots + 1) * rings_.size()) return;
  for (int other = 0; other < ranks(); ++other) {
    if (other != rank) wake_up(other).wake_if(WaitFor::kArrival);
  }
}

bool Rings::arrived(uint64_t sequence) const noexcept {
  return arrivals_[slot_of(sequence)].load() >= (sequence / kSlots + 1) * rings_.size();
}

ConstBytes Rings::message(int from, int to, uint64_t sequence) const noexcept {
  const Slot& slot = ring(from).slots[slot_of(sequence)];
  return slot.to_all ? slot.message : slot.messages[static_cast<size_t>(to)];
}

void Rings::release(int reader, uint64_t sequence) noexcept {
  // Nobody posts an exchange whose slot holds one that it has not released: this was released.
  if (ring(reader).posted.load() > sequence + kSlots) return;
  for (int sender = 0; sender < ranks(); ++sender) {
    if (posted(sender, sequence)) release_one(reader, sender, sequence);
  }
}

void Rings::reclaim(int rank, uint64_t sequence) noexcept {
  Ring& own = ring(rank);
  Slot& slot = own.slots[slot_of(sequence)];
  if (slot.messages.empty()) return;
  own.spare.push_back(std::move(slot.messages));  // there is room for those of all slots
  slot.messages.clear();
}

void Rings::release_one(int reader, int sender, uint64_t sequence) noexcept {
  Ring& from = ring(sender);
  std::atomic<uint8_t>& mark = from.releases[entry(sequence, reader)];
  // A second release, also one that comes when the slot holds a later exchange, changes nothing.
  uint8_t known = mark.load();
  do {
    if (reached(known, sequence)) return;
  } while (!mark.compare_exchange_weak(known, round_of(sequence)));
  Slot& slot = from.slots[slot_of(sequence)];
  if (slot.readers.fetch_sub(1) != 1) return;
  slot.keep_alive.reset();
  slot.drained.store(sequence + 1);
  from.wake_up.wake_if(WaitFor::kRelease);
}

bool Rings::drained(int sender, uint64_t sequence) const noexcept {
  return ring(sender).slots[slot_of(sequence)].drained.load() > sequence;
}

bool Rings::close(int rank) noexcept {
  ring(rank).closed.store(true);
  for (int sender = 0; sender < ranks(); ++sender) {
    const uint64_t end = ring(sender).posted.load();
    for (uint64_t n = end - std::min<uint64_t>(end, kSlots); n < end; ++n) {
      release_one(rank, sender, n);
    }
  }
  for (int other = 0; other < ranks(); ++other) {
    if (other != rank) wake_up(other).wake_in_any_case();
  }
  return open_.fetch_sub(1) == 1;
}

bool Rings::posted(int rank, uint64_t sequence) const noexcept {
  return ring(rank).posted.load() > sequence;
}

bool Rings::closed(int rank) const noexcept { return ring(rank).closed.load(); }

bool Rings::released(int reader, int sender, uint64_t sequence) const noexcept {
  return reached(ring(sender).releases[entry(sequence, reader)].load(), sequence);
}

const Operation& Rings::operation(int rank, uint64_t sequence) const noexcept {
  return ring(rank).slots[slot_of(sequence)].operation;
}

Purpose Rings::purpose(int rank) const noexcept { return ring(rank).purpose; }

}  // namespace shardrec::comm::local
