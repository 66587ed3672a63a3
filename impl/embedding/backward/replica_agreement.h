// On a mesh, a step that one sharding group skips is skipped by all, so that their replicas stay at the same step: with
// option NON_FINITE SKIP, in which numbers decide and not the program.
//
// Thread rule: that of the collection.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "comm/collective/collectives.h"
#include "comm/communicator.h"

namespace shardrec::embedding {

class ReplicaAgreement {
 public:
  // replicas: the ranks that hold the same boxes in each sharding group.
  explicit ReplicaAgreement(std::shared_ptr<comm::Communicator> replicas)
      : replicas_(std::move(replicas)),
        collectives_(replicas_->open_channel(comm::Purpose::kControl), replicas_->rank(),
                     replicas_->size()) {}

  // Do all sharding groups apply the step? here: this rank's does. Collective. Throws what kills the communicator.
  bool all_apply(bool here) {
    int32_t declines = here ? 0 : 1;
    collectives_.all_reduce(kOperation, comm::Reduction::kMax, std::span(&declines, 1));
    return declines == 0;
  }
  // This rank takes no part in what the others wait for.
  void give_up(const char* operation) noexcept { replicas_->fail(operation); }

 private:
  static constexpr comm::Operation kOperation{.name = "backward: step of all replicas", .kind = 1};

  const std::shared_ptr<comm::Communicator> replicas_;
  comm::Collectives collectives_;
};

}  // namespace shardrec::embedding
