// The objects behind shardrec_local and shardrec_comm, and what everything that is made on a
// communicator needs.
#pragma once

#include <memory>
#include <utility>

#include "comm/collective/agree.h"
#include "comm/collective/collectives.h"
#include "comm/communicator.h"
#include "comm/local/local_group.h"
#include "comm/membership.h"
#include "comm/thread_share.h"
#include "core/error.h"
#include "handle.h"
#include "planner/together.h"
#include "shardrec/comm.h"

namespace shardrec::capi {

using comm::Membership;

struct Comm {
  explicit Comm(std::shared_ptr<comm::Communicator> communicator);
  explicit Comm(std::shared_ptr<Membership> membership);
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  // Disconnects, because peers that wait for this rank must not wait for ever.
  void closing() noexcept;

  // Keeps alive the group that this one was split from, where no handle does; else null.
  std::shared_ptr<const void> made_of;
  std::shared_ptr<Membership> membership;
  comm::Collectives collectives;  // of the handle's own calls; exclusive
  comm::ThreadShare threads;
};

// Numbers of the handle's own operations (comm::Operation::kind); they share a channel.
enum class CommCall : uint32_t {
  kBarrier = 1,
  kClose,
  kAllReduce,
  kPlan,  // the first of its operations
  kMeshCreate = kPlan + planner::Planners::kOperations,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kSplit,
  kCollectionCreate,
};

// An operation of the handle under its step deadline.
inline comm::Operation operation_of(CommCall call, const char* name, uint64_t detail = 0) {
  return {.name = name,
          .kind = static_cast<uint32_t>(call),
          .detail = detail,
          .deadline_kind = comm::DeadlineKind::kStep};
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
