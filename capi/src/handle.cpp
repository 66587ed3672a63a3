#include "handle.h"

#include <pthread.h>

#include <array>
#include <mutex>
#include <new>
#include <optional>

namespace shardrec::capi {
namespace detail {

// One word says everything about a slot, so that a call counts itself in, and finds out whether it
// may, in one compare-and-swap:
//   generation << 32 | kOpen | kBusy | kIssued | calls inside
// The object is written before kOpen is set and taken out by the one thread that sees the word
// reach "closed, nobody inside"; the next generation begins after that.
struct Slot {
  std::atomic<uint64_t> word{uint64_t{1} << 32};
  std::shared_ptr<void> object;
  uint32_t index = 0;
  uint32_t next_free = 0;  // index + 1 of the next free slot, under the table's mutex
  Kind kind{};
};

constinit thread_local uint64_t callback_of = 0;

namespace {

constexpr uint64_t kOpen = uint64_t{1} << 31;
constexpr uint64_t kBusy = uint64_t{1} << 30;
constexpr uint64_t kIssued = uint64_t{1} << 29;  // this generation's ticket was given out
constexpr uint64_t kCalls = kIssued - 1;

constexpr uint32_t generation_of(uint64_t word) { return static_cast<uint32_t>(word >> 32); }
constexpr uint64_t first_word(uint32_t generation) { return uint64_t{generation} << 32; }

// Tickets: mark (8 bits) | kind (8) | generation (24) | slot (24). The mark makes the value an
// address that no process can hold, and 0 is none.
constexpr uint64_t kMark = 0x5b;
constexpr uint32_t kMostSlots = 1u << 24;
constexpr uint32_t kLastGeneration = (1u << 24) - 1;

constexpr uint64_t make_ticket(Kind kind, uint32_t generation, uint32_t index) {
  return kMark << 56 | static_cast<uint64_t>(kind) << 48 | uint64_t{generation} << 24 | index;
}

struct Ticket {
  Kind kind;
  uint32_t generation;
  uint32_t index;
};

std::optional<Ticket> parse(uint64_t value) {
  if (value >> 56 != kMark) return std::nullopt;
  const auto kind = static_cast<uint8_t>(value >> 48 & 0xff);
  if (kind >= kKindCount) return std::nullopt;
  return Ticket{static_cast<Kind>(kind), static_cast<uint32_t>(value >> 24 & 0xffffff),
                static_cast<uint32_t>(value & 0xffffff)};
}

// Slots of one kind, in chunks that double and stay where they are: readers need no lock.
class Table {
 public:
  // The slot of an index, null when it was never made.
  Slot* find(uint32_t index) const noexcept {
    const Address address = address_of(index);
    Slot* chunk = chunks_[address.chunk].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : chunk + address.offset;
  }

  Slot* take(Kind kind) {
    std::lock_guard lock(mutex_);
    if (free_ != 0) {
      Slot* slot = find(free_ - 1);
      free_ = slot->next_free;
      return slot;
    }
    if (made_ == kMostSlots) throw std::bad_alloc();
    const Address address = address_of(made_);
    if (address.offset == 0) {
      chunks_[address.chunk].store(std::make_unique<Slot[]>(kFirstChunk << address.chunk).release(),
                                   std::memory_order_release);
    }
    Slot* slot = find(made_);
    slot->index = made_++;
    slot->kind = kind;
    return slot;
  }

  uint32_t made() {
    std::lock_guard lock(mutex_);
    return made_;
  }

  void give_back(Slot* slot) noexcept {
    std::lock_guard lock(mutex_);
    slot->next_free = free_;
    free_ = slot->index + 1;
  }

 private:
  static constexpr uint32_t kFirstChunk = 64;
  static constexpr int kChunks = 19;  // 64 * (2^19 - 1) slots > kMostSlots

  struct Address {
    int chunk;
    uint32_t offset;
  };
  static Address address_of(uint32_t index) noexcept {
    const int chunk = std::bit_width(index / kFirstChunk + 1) - 1;
    return {chunk, index - kFirstChunk * ((1u << chunk) - 1)};
  }

  std::array<std::atomic<Slot*>, kChunks> chunks_{};
  std::mutex mutex_;
  uint32_t made_ = 0;
  uint32_t free_ = 0;  // index + 1 of the first free slot
};
static_assert(std::is_trivially_destructible_v<Table>, "tables outlive every thread");

constinit std::array<Table, kKindCount> tables{};
std::atomic<int64_t> live{0};
std::atomic<bool> in_forked_child{false};

Table& table_of(Kind kind) { return tables[static_cast<size_t>(kind)]; }

// An article belongs to it: "a shardrec_comm".
[[noreturn]] void throw_not_a_handle(uint64_t value, Kind wanted) {
  const char* what = value == 0 ? "the handle is NULL" : "this is no handle of this library";
  core::fail(SHARDREC_INVALID_HANDLE,
             core::sentence(what, "; a ", kind_name(wanted), " is needed"));
}

[[noreturn]] void throw_closed(Kind kind) {
  core::fail(SHARDREC_CLOSED, core::sentence("this ", kind_name(kind), " was destroyed"));
}

[[noreturn]] void throw_in_callback(Kind kind) {
  core::fail(SHARDREC_INVALID_STATE,
             core::sentence("this call on a ", kind_name(kind),
                            " came from inside a callback of the same one, where only reading is "
                            "accepted; make it after the callback has returned"));
}

// True when such a ticket was given out at some time.
bool was_issued(const Ticket& ticket, const Slot* slot, uint64_t word) {
  if (slot == nullptr || ticket.generation == 0) return false;
  const uint32_t now = generation_of(word);
  return ticket.generation < now || (ticket.generation == now && (word & kIssued) != 0);
}

// The last call has left a closed slot: the object goes, and the slot is free for its next
// generation.
void free_slot(Slot* slot) noexcept {
  slot->object.reset();
  const uint32_t generation = generation_of(slot->word.load(std::memory_order_relaxed));
  slot->word.store(first_word(generation + 1), std::memory_order_release);
  live.fetch_sub(1, std::memory_order_release);
  // A slot whose generations are used up is not used again, so that no old ticket ever fits.
  if (generation < kLastGeneration) table_of(slot->kind).give_back(slot);
}

}  // namespace

Reservation::Reservation(Kind kind) : kind_(kind), slot_(nullptr), index_(0) {
  refuse_after_fork();
  watch_forks();
  slot_ = table_of(kind).take(kind);
  index_ = slot_->index;
}

Reservation::~Reservation() {
  if (slot_ != nullptr) table_of(kind_).give_back(slot_);
}

uint64_t Reservation::publish(std::shared_ptr<void> object) noexcept {
  Slot* slot = std::exchange(slot_, nullptr);
  slot->object = std::move(object);
  live.fetch_add(1, std::memory_order_relaxed);
  const uint64_t word = slot->word.load(std::memory_order_relaxed);
  slot->word.store(word | kOpen | kIssued, std::memory_order_release);
  return make_ticket(kind_, generation_of(word), index_);
}

Slot* enter_slot(uint64_t value, Kind kind, Access access) {
  refuse_after_fork();
  const std::optional<Ticket> ticket = parse(value);
  if (!ticket.has_value()) throw_not_a_handle(value, kind);
  Slot* slot = table_of(ticket->kind).find(ticket->index);
  uint64_t word = slot == nullptr ? 0 : slot->word.load(std::memory_order_acquire);
  if (!was_issued(*ticket, slot, word)) throw_not_a_handle(value, kind);
  if (ticket->kind != kind) {
    core::fail(SHARDREC_INVALID_HANDLE, core::sentence("this is a ", kind_name(ticket->kind),
                                                       "; a ", kind_name(kind), " is needed"));
  }
  if (access == Access::kExclusive && value == callback_of) throw_in_callback(kind);
  const uint64_t busy = access == Access::kExclusive ? kBusy : 0;
  do {
    if (generation_of(word) != ticket->generation || (word & kOpen) == 0) throw_closed(kind);
    if ((word & busy) != 0) throw_busy(kind);
  } while (!slot->word.compare_exchange_weak(word, (word + 1) | busy, std::memory_order_acquire));
  return slot;
}

void leave_slot(Slot* slot, Access access) noexcept {
  const uint64_t inside = access == Access::kExclusive ? kBusy + 1 : 1;
  const uint64_t before = slot->word.fetch_sub(inside, std::memory_order_acq_rel);
  if ((before & kOpen) == 0 && (before & kCalls) == 1) free_slot(slot);
}

Slot* close_slot(uint64_t value, Kind kind) noexcept {
  if (in_forked_child.load(std::memory_order_relaxed)) return nullptr;
  const std::optional<Ticket> ticket = parse(value);
  if (!ticket.has_value() || ticket->kind != kind) return nullptr;
  Slot* slot = table_of(kind).find(ticket->index);
  if (slot == nullptr) return nullptr;
  uint64_t word = slot->word.load(std::memory_order_acquire);
  do {
    if (generation_of(word) != ticket->generation || (word & kOpen) == 0) return nullptr;
  } while (!slot->word.compare_exchange_weak(word, (word & ~kOpen) + 1, std::memory_order_acq_rel));
  return slot;
}

void* object_in(const Slot* slot) noexcept { return slot->object.get(); }
const std::shared_ptr<void>& owner_in(const Slot* slot) noexcept { return slot->object; }
bool slot_is_closed(const Slot* slot) noexcept {
  return (slot->word.load(std::memory_order_relaxed) & kOpen) == 0;
}

std::vector<std::shared_ptr<void>> open_objects(Kind kind) {
  refuse_after_fork();
  std::vector<std::shared_ptr<void>> objects;
  const uint32_t made = table_of(kind).made();
  objects.reserve(made);  // nothing may fail while a call is counted in
  for (uint32_t index = 0; index < made; ++index) {
    Slot* slot = table_of(kind).find(index);
    uint64_t word = slot->word.load(std::memory_order_acquire);
    bool open = true;
    do {
      open = (word & kOpen) != 0;
    } while (open && !slot->word.compare_exchange_weak(word, word + 1, std::memory_order_acquire));
    if (!open) continue;
    objects.push_back(slot->object);
    leave_slot(slot, Access::kShared);
  }
  return objects;
}

}  // namespace detail

const char* kind_name(Kind kind) noexcept {
  static constexpr std::array<const char*, kKindCount> kNames = {
      "shardrec_options", "shardrec_control",  "shardrec_local",      "shardrec_comm",
      "shardrec_model",   "shardrec_topology", "shardrec_plan",       "shardrec_collection",
      "shardrec_lookup",  "shardrec_ddp",      "shardrec_mlp",        "shardrec_interaction",
      "shardrec_metrics", "shardrec_mesh",     "shardrec_rendezvous", "shardrec_checkpoint",
      "shardrec_scorer",  "shardrec_memory",   "shardrec_fsdp",
  };
  return kNames[static_cast<size_t>(kind)];
}

void throw_busy(Kind kind) {
  core::fail(SHARDREC_BUSY,
             core::sentence("another thread is inside a call on this ", kind_name(kind),
                            ", or on one that belongs to it; one thread at a time is accepted"));
}

void throw_left(Kind kind) {
  core::fail(
      SHARDREC_INVALID_STATE,
      core::sentence("a backward is under way on this ", kind_name(kind),
                     ", or on one that belongs to it: call shardrec_lookup_backward_wait first"));
}

void refuse_after_fork() {
  if (detail::in_forked_child.load(std::memory_order_relaxed)) {
    core::fail(SHARDREC_INVALID_STATE,
               "this process was made by fork from one that had used the library; start the child "
               "with exec, or fork before the first call");
  }
}

void watch_forks() {
  static const int registered = pthread_atfork(
      nullptr, nullptr, [] { detail::in_forked_child.store(true, std::memory_order_relaxed); });
  if (registered != 0) throw std::bad_alloc();
}

int64_t live_objects() noexcept { return detail::live.load(std::memory_order_acquire); }

}  // namespace shardrec::capi
