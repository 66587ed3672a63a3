// The groups that a rank of a mesh is in, as far as a failure of one of them is that of all: no peer waits for a rank
// that has stopped, in whichever group.
//
// Thread rule: any thread.
#pragma once

#include <memory>
#include <string_view>

#include "comm/communicator.h"
#include "core/error.h"

namespace shardrec::training {

class MeshGroups {
 public:
  MeshGroups(std::shared_ptr<comm::Communicator> mesh, std::shared_ptr<comm::Communicator> replicas)
      : mesh_(std::move(mesh)), replicas_(std::move(replicas)) {}

  comm::Communicator& mesh() const noexcept { return *mesh_; }
  const std::shared_ptr<comm::Communicator>& replicas() const noexcept { return replicas_; }

  // Ends both groups and that of a collection, which an error has stopped in `call`; null: none that says more. An abort
  // stays an abort on its way to the other groups.
  void end(comm::Communicator& of_collection, std::string_view call,
           const core::Error* error) const noexcept {
    for (comm::Communicator* group : {mesh_.get(), replicas_.get(), &of_collection}) {
      if (error != nullptr && error->status() == SHARDREC_ABORTED) {
        group->abort(error->sentence());
      } else {
        group->fail(call);
      }
    }
  }

 private:
  std::shared_ptr<comm::Communicator> mesh_;
  std::shared_ptr<comm::Communicator> replicas_;
};

}  // namespace shardrec::training
