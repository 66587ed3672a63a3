// The handle table. A handle's pointer value is a ticket (mark, kind, generation, slot) that is
// looked up and never dereferenced: NULL, garbage, and handles of another kind are INVALID_HANDLE,
// destroyed ones CLOSED. Each kind has slots of its own; a slot is used again under the next
// generation.
//
// A call counts itself in and out with one atomic operation each, so that destroy never blocks: it
// closes the ticket, and the last call inside frees the object. Looking up takes no lock; making
// and freeing take one per kind. Objects are held by shared_ptr: children hold what they need of
// parents, hence handles may be destroyed in any order. Nothing here is destroyed when the process
// exits.
//
// For each public handle type, in the header that defines its object:
//
//   struct Comm { ... };                                    // the object behind a shardrec_comm
//   template <>
//   struct Handle<shardrec_comm> {
//     using Object = Comm;
//     static constexpr Kind kKind = Kind::kComm;
//   };
//
// and in its functions, inside guard():
//
//   create(out, std::make_shared<Comm>(...));               // out is written last
//   const auto use = enter(comm, Access::kExclusive);       // throws INVALID_HANDLE, CLOSED, BUSY
//   use->communicator->...                                  // held until the end of `use`
//   destroy(comm_pointer);                                  // outside guard(): it never fails
//
// An object may have these members:
//   BusyFlag& busy_flag()      kExclusive calls also take this flag: objects that share one (a
//                              collection and its lookups) are used by one thread at a time
//   void closing() noexcept    called once by destroy when the ticket is closed, also while other
//                              threads are inside calls; not called when a creation fails
//
// After fork, in the child, enter() and create() throw INVALID_STATE when the parent had made
// handles, and destroy only nulls the caller's copy.
//
// Thread rule: everything may be called from any thread.
#pragma once

#include <atomic>
#include <bit>
#include <concepts>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/error.h"

namespace shardrec::capi {

enum class Kind : uint8_t {
  kOptions,
  kControl,
  kLocal,
  kComm,
  kModel,
  kTopology,
  kPlan,
  kCollection,
  kLookup,
  kDdp,
  kMlp,
  kInteraction,
  kMetrics,
  kMesh,
  kRendezvous,
  kCheckpoint,
  kScorer,
  kMemory,
  kFsdp,
};
inline constexpr int kKindCount = 19;
const char* kind_name(Kind kind) noexcept;  // "shardrec_comm"

// kShared: for calls documented "any thread", and for reading what a create call was given by
// another object. kExclusive: a second call at the same time gets BUSY; shared calls are not kept
// out.
enum class Access : uint8_t { kShared, kExclusive };

template <class Type>
struct Handle;  // specialised per public handle type

// Taken and given back by calls of one thread at a time; never waits. A call may leave it to work that goes on
// behind it: the flag is then taken up by the call that ends the work, and others are refused.
class BusyFlag {
 public:
  bool try_take() noexcept { return change(State::kFree, State::kTaken); }
  void give_back() noexcept {
    state_.store(left_ ? State::kLeft : State::kFree, std::memory_order_release);
  }
  // By who has taken it: what it is when it is given back.
  void leave() noexcept { left_ = true; }
  bool try_take_up() noexcept {
    if (!change(State::kLeft, State::kTaken)) return false;
    left_ = false;
    return true;
  }
  bool is_left() const noexcept { return state_.load(std::memory_order_acquire) == State::kLeft; }

 private:
  enum class State : uint8_t { kFree, kTaken, kLeft };

  bool change(State from, State to) noexcept {
    return state_.compare_exchange_strong(from, to, std::memory_order_acquire);
  }

  std::atomic<State> state_{State::kFree};
  bool left_ = false;  // of who has taken it
};

[[noreturn]] void throw_busy(Kind kind);
// The flag is left: INVALID_STATE.
[[noreturn]] void throw_left(Kind kind);

// Throws INVALID_STATE in a child of fork whose parent had made handles or set up the log.
void refuse_after_fork();
// Notes that a child of a later fork must be refused. create() calls it; other calls that make
// state which a child cannot use call it, too.
void watch_forks();

// Open handles of all kinds, and closed ones with a call still inside.
int64_t live_objects() noexcept;

namespace detail {

struct Slot;

// A slot that holds no object yet. The destructor gives it back unless it was published.
class Reservation {
 public:
  explicit Reservation(Kind kind);  // throws bad_alloc, INVALID_STATE
  ~Reservation();
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  // Opens the slot with this object and returns its ticket. At most once.
  uint64_t publish(std::shared_ptr<void> object) noexcept;

 private:
  Kind kind_;
  Slot* slot_;
  uint32_t index_;
};

// The ticket whose callback this thread runs; 0: none.
extern constinit thread_local uint64_t callback_of;

// Counts a call in; throws INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE.
Slot* enter_slot(uint64_t ticket, Kind kind, Access access);
void leave_slot(Slot* slot, Access access) noexcept;
// Closes the ticket and counts the caller in; null when it is not an open one.
Slot* close_slot(uint64_t ticket, Kind kind) noexcept;
void* object_in(const Slot* slot) noexcept;
const std::shared_ptr<void>& owner_in(const Slot* slot) noexcept;
bool slot_is_closed(const Slot* slot) noexcept;
// The objects of all open handles of a kind, in no order.
std::vector<std::shared_ptr<void>> open_objects(Kind kind);

template <class Type>
uint64_t ticket_of(Type* handle) noexcept {
  return std::bit_cast<uint64_t>(handle);
}

template <class Object>
concept HasBusyFlag = requires(Object& object) {
  { object.busy_flag() } -> std::same_as<BusyFlag&>;
};
template <class Object>
concept HasClosing = requires(Object& object) {
  { object.closing() } noexcept;
};

}  // namespace detail

// A call's hold on the object behind a handle, from enter() to the end of the scope.
template <class Type>
class Use {
 public:
  using Object = typename Handle<Type>::Object;

  Use(uint64_t ticket, Access access)
      : slot_(detail::enter_slot(ticket, Handle<Type>::kKind, access)), access_(access) {
    if constexpr (detail::HasBusyFlag<Object>) {
      if (access_ == Access::kExclusive && !(*this)->busy_flag().try_take()) {
        const bool is_left = (*this)->busy_flag().is_left();
        detail::leave_slot(slot_, access_);
        if (is_left) throw_left(Handle<Type>::kKind);
        throw_busy(Handle<Type>::kKind);
      }
    }
  }
  ~Use() {
    if constexpr (detail::HasBusyFlag<Object>) {
      if (access_ == Access::kExclusive) (*this)->busy_flag().give_back();
    }
    detail::leave_slot(slot_, access_);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  Object& operator*() const noexcept { return *static_cast<Object*>(detail::object_in(slot_)); }
  Object* operator->() const noexcept { return &**this; }
  // For children that keep the object alive beyond this call.
  std::shared_ptr<Object> share() const noexcept {
    return std::static_pointer_cast<Object>(detail::owner_in(slot_));
  }
  // True from the moment another thread destroys the handle.
  bool closed() const noexcept { return detail::slot_is_closed(slot_); }

 private:
  detail::Slot* slot_;
  Access access_;
};

// handle: as the caller gave it, const or not.
template <class Type>
Use<std::remove_const_t<Type>> enter(Type* handle, Access access) {
  return Use<std::remove_const_t<Type>>(detail::ticket_of(handle), access);
}

// What the open handles of a type stand for, kept alive by the result.
template <class Type>
std::vector<std::shared_ptr<typename Handle<Type>::Object>> open_objects() {
  std::vector<std::shared_ptr<typename Handle<Type>::Object>> objects;
  for (std::shared_ptr<void>& object : detail::open_objects(Handle<Type>::kKind)) {
    objects.push_back(std::static_pointer_cast<typename Handle<Type>::Object>(std::move(object)));
  }
  return objects;
}

// While the library runs a callback that belongs to a handle. Exclusive calls on that handle from
// inside it get INVALID_STATE before they take anything: they never make another thread's call BUSY.
template <class Type>
class InCallback {
 public:
  explicit InCallback(Type* handle) noexcept
      : outer_(std::exchange(detail::callback_of, detail::ticket_of(handle))) {}
  ~InCallback() { detail::callback_of = outer_; }
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;

 private:
  uint64_t outer_;
};

// Room for a handle, taken before work that cannot be undone: publish() cannot fail.
template <class Type>
class Reserved {
 public:
  Reserved() : reservation_(Handle<Type>::kKind) {}
  void publish(Type** out, std::shared_ptr<typename Handle<Type>::Object> object) noexcept {
    *out = std::bit_cast<Type*>(reservation_.publish(std::move(object)));
  }

 private:
  detail::Reservation reservation_;
};

template <class Type>
void create(Type** out, std::shared_ptr<typename Handle<Type>::Object> object) {
  Reserved<Type> reserved;
  reserved.publish(out, std::move(object));
}

// handle or *handle NULL, closed or no handle at all: nothing happens but *handle = NULL.
template <class Type>
void destroy(Type** handle) noexcept {
  if (handle == nullptr) return;
  detail::Slot* slot = detail::close_slot(detail::ticket_of(*handle), Handle<Type>::kKind);
  *handle = nullptr;
  if (slot == nullptr) return;
  using Object = typename Handle<Type>::Object;
  if constexpr (detail::HasClosing<Object>) {
    static_cast<Object*>(detail::object_in(slot))->closing();
  }
  detail::leave_slot(slot, Access::kShared);
}

}  // namespace shardrec::capi
