// The object behind shardrec_checkpoint.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/store/session.h"
#include "objects/collection_object.h"
#include "objects/dense_objects.h"
#include "objects/fsdp_object.h"
#include "shardrec/checkpoint.h"

namespace shardrec::capi {

// What was added is known by its handle: whoever is in a call on it keeps a commit out, and one
// that was destroyed is told.
template <class Type>
struct Added {
  std::string name;
  Type* handle = nullptr;
};

struct CheckpointObject {
  CheckpointObject(const std::shared_ptr<Membership>& its_membership, std::string directory,
                   const checkpoint::SessionOptions& options)
      : membership(its_membership),
        session(membership->communicator(), std::move(directory), options) {}

  std::shared_ptr<Membership> membership;
  checkpoint::Session session;
  std::vector<Added<shardrec_collection>> collections;
  std::vector<Added<shardrec_mlp>> layers;
  std::vector<Added<shardrec_ddp>> parameters;
  std::vector<Added<shardrec_fsdp>> sharded;
};

template <>
struct Handle<shardrec_checkpoint> {
  using Object = CheckpointObject;
  static constexpr Kind kKind = Kind::kCheckpoint;
};

}  // namespace shardrec::capi
