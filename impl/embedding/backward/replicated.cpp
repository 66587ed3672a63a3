#include "embedding/backward/replicated.h"

#include <algorithm>
#include <cstring>

#include "comm/collective/owned_range.h"
#include "core/error.h"
#include "embedding/exchange/wire.h"

namespace shardrec::embedding {
namespace {

size_t gradient_bytes(const compute::SlotShape& slot) {
  return align_up(static_cast<size_t>(slot.count * slot.width) * sizeof(float), 8);
}

size_t slot_bytes(const compute::SlotShape& slot) {
  return compute::slot_index_bytes(slot) + gradient_bytes(slot);
}

[[noreturn]] void throw_malformed_slot(size_t rank) {
  core::fail(SHARDREC_CORRUPT_DATA,
             core::sentence("rank ", rank, " sent malformed gradients of replicated tables"),
             {.rank = static_cast<int64_t>(rank), .operation = "backward"});
}

}  // namespace

ReplicatedGradients::ReplicatedGradients(const Layout& layout, comm::BodyCarrier& bodies)
    : layout_(layout),
      backend_(bodies.backend()),
      messages_(static_cast<size_t>(layout.ranks())),
      received_(bodies.make_received()),
      rows_memory_(bodies.backend().memory()),
      occurrences_memory_(bodies.backend().memory()) {
  if (layout.ranks() == 1) return;
  for (size_t t = 0; t < layout.table_count(); ++t) {
    const auto table = static_cast<int32_t>(t);
    if (layout.table(table).own_ids_only()) tables_.push_back(table);
  }
  sums_.resize(count());
  searches_.resize(count());
  additions_.resize(count());
  unpackings_.resize(count());
  touched_.resize(count());
  for (size_t n = 0; n < count(); ++n) {
    for (size_t rank = 0; rank < ranks(); ++rank) bounds_.push_back(slot(n, rank, 0).begin);
    bounds_.push_back(table(n).rows);
  }
  before_.resize(bounds_.size());
  packings_.resize(ranks() * count());
  slots_.resize(count() * ranks());
  good_.resize(slots_.size());
  heads_.assign(ranks(), head_bytes());
}

compute::SlotShape ReplicatedGradients::slot(size_t n, size_t rank, int64_t touched) const {
  const int64_t rows = table(n).rows;
  const comm::OwnedRange range =
      comm::owned_range(rows, layout_.ranks(), compute::kSlotGrain, static_cast<int64_t>(rank));
  return {.begin = range.begin,
          .rows = range.count,
          .count = touched,
          .width = table(n).dim,
          .bits = layout_.table(tables_[n]).replication == SHARDREC_REPLICATION_DENSE};
}

compute::SlotRoom ReplicatedGradients::take_room(const compute::SlotShape& slot, std::byte*& at) {
  compute::SlotRoom room{slot};
  room.index = at;
  at += compute::slot_index_bytes(slot);
  room.gradients = static_cast<float*>(static_cast<void*>(at));
  at += gradient_bytes(slot);
  return room;
}

void ReplicatedGradients::pack(std::span<const RowGradients> own, comm::MessageBuffer& buffer) {
  const size_t bounds = ranks() + 1;  // of a table
  for (size_t n = 0; n < count(); ++n) {
    searches_[n] = {.rows = own[n].rows.data(),
                    .count = std::ssize(own[n].rows),
                    .bounds = std::span(bounds_).subspan(n * bounds, bounds),
                    .before = before_.data() + n * bounds};
  }
  backend_.slots().find_rows(searches_);
  const auto slot_to = [&](size_t n, size_t rank) {
    const int64_t* before = before_.data() + n * bounds + rank;
    return slot(n, rank, before[1] - before[0]);
  };
  size_t bytes = 0;
  for (size_t rank = 0; rank < ranks(); ++rank) {
    bytes += head_bytes();
    for (size_t n = 0; n < count(); ++n) bytes += slot_bytes(slot_to(n, rank));
  }
  std::byte* at = buffer.resize(bytes);
  std::byte* const start = at;
  for (size_t rank = 0; rank < ranks(); ++rank) {
    std::byte* const head = at;
    at += head_bytes();
    for (size_t n = 0; n < count(); ++n) {
      const compute::SlotShape shape = slot_to(n, rank);
      std::memcpy(buffer.host(head) + n * sizeof shape.count, &shape.count, sizeof shape.count);
      const int64_t first = before_[n * bounds + rank];
      packings_[rank * count() + n] = {.rows = own[n].rows.data() + first,
                                       .gradients = own[n].gradients + first * shape.width,
                                       .to = take_room(shape, at)};
    }
    messages_[rank] = buffer.host(head, at);
  }
  backend_.slots().pack_slots(packings_);
  std::byte* from = start;
  for (const comm::ConstBytes message : messages_) {
    buffer.publish(from + head_bytes(), from + message.size());
    from += message.size();
  }
}

void ReplicatedGradients::add_up(std::span<const comm::ConstBytes> messages,
                                 comm::MessageBuffer& buffer) {
  read(messages, Slots::kOwn);
  for (size_t n = 0; n < count(); ++n) {
    additions_[n] = {.addends = std::span(slots_).subspan(n * ranks(), ranks()), .to = {}};
  }
  backend_.slots().count_slot_sums(additions_, touched_);
  const auto rank = static_cast<size_t>(layout_.rank());
  size_t bytes = head_bytes();
  for (size_t n = 0; n < count(); ++n) bytes += slot_bytes(slot(n, rank, touched_[n]));
  std::byte* const head = buffer.resize(bytes);
  std::memcpy(buffer.host(head), touched_.data(), head_bytes());
  std::byte* at = head + head_bytes();
  for (size_t n = 0; n < count(); ++n) {
    additions_[n].to = take_room(slot(n, rank, touched_[n]), at);
  }
  backend_.slots().add_slots(additions_);
  buffer.publish(head + head_bytes(), at);
  for (comm::ConstBytes& message : messages_) message = buffer.host(head, at);
}

void ReplicatedGradients::take(std::span<const comm::ConstBytes> messages) {
  read(messages, Slots::kOfSenders);
  const auto touched_rows = [&](size_t n) {
    int64_t rows = 0;
    for (size_t r = 0; r < ranks(); ++r) rows += slots_[n * ranks() + r].count;
    return static_cast<size_t>(rows);
  };
  size_t all = 0;
  size_t most = 0;
  for (size_t n = 0; n < count(); ++n) {
    all += touched_rows(n);
    most = std::max(most, touched_rows(n));
  }
  // An address takes as much as a row.
  static_assert(sizeof(const float*) == sizeof(int64_t));
  std::byte* at = rows_memory_.resize(2 * all * sizeof(int64_t));
  for (size_t n = 0; n < count(); ++n) {
    const size_t rows = touched_rows(n);
    Sums& sums = sums_[n];
    sums.rows = {static_cast<int64_t*>(static_cast<void*>(at)), rows};
    at += sums.rows.size_bytes();
    sums.gradients = {static_cast<const float**>(static_cast<void*>(at)), rows};
    at += sums.gradients.size_bytes();
    unpackings_[n] = {.slots = std::span(slots_).subspan(n * ranks(), ranks()),
                      .rows = sums.rows.data(),
                      .gradients = sums.gradients.data()};
  }
  backend_.slots().unpack_slots(unpackings_);
  if (static_cast<size_t>(occurrences_.rows) < most || occurrences_.run == nullptr) {
    const size_t room = most + most / 16 + 17;
    occurrences_ = {};  // where there is no memory, nothing points to what was freed
    std::byte* const memory =
        occurrences_memory_.resize((room + 1) * sizeof(int64_t) + 2 * room * sizeof(uint32_t));
    occurrences_.rows = static_cast<int64_t>(room);
    occurrences_.run = static_cast<int64_t*>(static_cast<void*>(memory));
    occurrences_.bags = static_cast<uint32_t*>(static_cast<void*>(occurrences_.run + room + 1));
    occurrences_.blocks = occurrences_.bags + room;
    backend_.gradients().number_occurrences(occurrences_);
  }
}

void ReplicatedGradients::read(std::span<const comm::ConstBytes> messages, Slots slots) {
  for (size_t rank = 0; rank < ranks(); ++rank) read_head(messages[rank], rank, slots);
  const auto bodies = received_->open(messages, heads_);
  for (size_t rank = 0; rank < ranks(); ++rank) {
    const std::byte* at = bodies[rank].data();
    for (size_t n = 0; n < count(); ++n) {
      compute::SlotRows& read = slots_[n * ranks() + rank];
      read.index = at;
      at += compute::slot_index_bytes(read);
      read.gradients = static_cast<const float*>(static_cast<const void*>(at));
      at += gradient_bytes(read);
    }
  }
  backend_.slots().check_slots(slots_, good_);
  const auto bad = std::find(good_.begin(), good_.end(), 0) - good_.begin();
  if (bad != std::ssize(good_)) throw_malformed_slot(static_cast<size_t>(bad) % ranks());
}

// How many rows there are of each table, and that the message has just them.
void ReplicatedGradients::read_head(comm::ConstBytes message, size_t rank, Slots slots) {
  if (message.size() < head_bytes()) throw_malformed_slot(rank);
  size_t rest = message.size() - head_bytes();
  const auto own = static_cast<size_t>(layout_.rank());
  for (size_t n = 0; n < count(); ++n) {
    int64_t touched = 0;
    std::memcpy(&touched, message.data() + n * sizeof touched, sizeof touched);
    const compute::SlotShape shape = slot(n, slots == Slots::kOwn ? own : rank, touched);
    if (touched < 0 || touched > shape.rows) throw_malformed_slot(rank);
    const size_t bytes = slot_bytes(shape);
    if (bytes > rest) throw_malformed_slot(rank);
    rest -= bytes;
    slots_[n * ranks() + rank] = compute::SlotRows{shape};
  }
  if (rest != 0) throw_malformed_slot(rank);
}

void ReplicatedGradients::describe(size_t n, compute::RowUpdate& job) const {
  job.rows = sums_[n].rows.data();
  job.run = occurrences_.run;
  job.bags = occurrences_.bags;
  job.weights = nullptr;
  job.gradients = sums_[n].gradients.data();
  job.blocks = occurrences_.blocks;
  job.block_start = compute::RowUpdate::kUnchanged;
}

}  // namespace shardrec::embedding
