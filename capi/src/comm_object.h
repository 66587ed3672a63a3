// The objects behind shardrec_local and shardrec_comm, and what is made on a communicator needs of
// it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "comm/collective/agree.h"
#include "comm/collective/collectives.h"
#include "comm/communicator.h"
#include "comm/local/local_group.h"
#include "comm/recorder.h"
#include "core/error.h"
#include "handle.h"
#include "shardrec/comm.h"

namespace shardrec::capi {

// One rank's membership, shared by the communicator's handle and everything made on it, in whatever
// order the host destroys them. Any thread.
class Membership {
 public:
  explicit Membership(std::shared_ptr<comm::Communicator> communicator)
      : recorder_(std::make_shared<comm::Recorder>(communicator->rank(), communicator->size())),
        communicator_(comm::recorded(std::move(communicator), recorder_)) {}
  // Of a communicator that was split from another one's.
  struct Part {};
  Membership(Part, std::shared_ptr<comm::Communicator> communicator)
      : recorder_(comm::recorder_of(*communicator)), communicator_(std::move(communicator)) {}

  comm::Communicator& communicator() const noexcept { return *communicator_; }
  const comm::Recorder& recorder() const noexcept { return *recorder_; }
  // Of the memberships of this process, in the order of their making.
  uint64_t number() const noexcept { return number_; }
  // Numbers the collections on it; the same on all ranks.
  uint32_t next_collection() noexcept { return collections_.fetch_add(1); }
  const std::shared_ptr<comm::Communicator>& share() const noexcept { return communicator_; }

  // Throws CLOSED after shardrec_comm_close. Every call on something made on the communicator asks.
  void require_open() const {
    if (closed_.load(std::memory_order_acquire)) {
      core::fail(SHARDREC_CLOSED, "the communicator was closed by shardrec_comm_close");
    }
  }
  bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }

  // Two threads that change different deadlines do not undo each other.
  void set_deadline(double comm::Deadlines::* field, double seconds) {
    std::lock_guard lock(mutex_);
    comm::Deadlines deadlines = communicator_->deadlines();
    deadlines.*field = seconds;
    communicator_->set_deadlines(deadlines);
    for (const auto& part : parts_) {
      if (const auto living = part.lock()) living->set_deadlines(deadlines);
    }
  }

  // A communicator that was split from this one and has no handle: it has the same deadlines and
  // end.
  void add_part(const std::shared_ptr<comm::Communicator>& part) {
    std::lock_guard lock(mutex_);
    part->set_deadlines(communicator_->deadlines());
    std::erase_if(parts_, [](const auto& known) { return known.expired(); });
    parts_.push_back(part);
  }

  // A membership of a communicator that was split from this one: it has deadlines of its own and
  // the same end.
  void add_child(const std::shared_ptr<Membership>& child) {
    std::lock_guard lock(mutex_);
    std::erase_if(children_, [](const auto& known) { return known.expired(); });
    children_.push_back(child);
    if (disconnected_) child->disconnect();  // by another thread, during the split
  }

  // After the closing barrier.
  void close() noexcept {
    closed_.store(true, std::memory_order_release);
    std::lock_guard lock(mutex_);
    for (const auto& child : children_) {
      if (const auto living = child.lock()) living->close();
    }
    for (const auto& part : parts_) {
      if (const auto living = part.lock()) living->leave();
    }
    communicator_->leave();
  }

  void disconnect() noexcept {
    std::lock_guard lock(mutex_);
    disconnected_ = true;
    for (const auto& child : children_) {
      if (const auto living = child.lock()) living->disconnect();
    }
    for (const auto& part : parts_) {
      if (const auto living = part.lock()) living->disconnect();
    }
    communicator_->disconnect();
  }

 private:
  static uint64_t next_number() noexcept {
    static constinit std::atomic<uint64_t> made{0};
    return made.fetch_add(1);
  }

  std::shared_ptr<comm::Recorder> recorder_;
  std::shared_ptr<comm::Communicator> communicator_;
  const uint64_t number_ = next_number();
  std::atomic<uint32_t> collections_{0};
  std::atomic<bool> closed_{false};
  std::mutex mutex_;
  bool disconnected_ = false;
  std::vector<std::weak_ptr<comm::Communicator>> parts_;
  std::vector<std::weak_ptr<Membership>> children_;
};

struct Comm {
  explicit Comm(std::shared_ptr<comm::Communicator> communicator);
  explicit Comm(std::shared_ptr<Membership> membership);
  ~Comm();
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  // Peers that wait for this rank must not wait for ever.
  void closing() noexcept;

  // What owns the group that this one was split from, where no handle does: it must not end before.
  std::shared_ptr<const void> made_of;
  std::shared_ptr<Membership> membership;
  comm::Collectives collectives;  // of the handle's own calls; exclusive
};

// The threads of what is made without a communicator, unless its options say: the least
// default_threads() of the communicators that were made since this process had none; where it has
// none now, all that it may use. Any thread.
int default_threads();

// Numbers of the handle's own operations (comm::Operation::kind); they share a channel.
enum class CommCall : uint32_t {
  kBarrier = 1,
  kClose,
  kAllReduce,
  kPlanArguments,
  kPlanCompare,
  kPlanModels,
  kPlanMake,
  kPlanSend,
  kPlanTake,
  kMeshCreate,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kSplit,
};

// An operation of the handle under its step deadline.
inline comm::Operation operation_of(CommCall call, const char* name, uint64_t detail = 0) {
  return {.name = name,
          .kind = static_cast<uint32_t>(call),
          .detail = detail,
          .patience = comm::Patience::kStep};
}

template <>
struct Handle<shardrec_local> {
  using Object = comm::local::Group;
  static constexpr Kind kKind = Kind::kLocal;
};
template <>
struct Handle<shardrec_comm> {
  using Object = Comm;
  static constexpr Kind kKind = Kind::kComm;
};

// Runs a collective body of an exclusive call. An error that comes from this very handle being
// destroyed by another thread is CLOSED, not a peer's failure.
template <class Body>
void collective_call(const Use<shardrec_comm>& use, const char* operation, Body&& body) {
  use->membership->require_open();
  try {
    comm::tell_shortage(use->membership->communicator(), operation, std::forward<Body>(body));
  } catch (const core::Error&) {
    if (!use.closed()) throw;
    core::fail(SHARDREC_CLOSED, "this shardrec_comm was destroyed during the call");
  }
}

}  // namespace shardrec::capi
