// The object behind shardrec_checkpoint.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/host_tensors.h"
#include "checkpoint/load.h"
#include "checkpoint/names.h"
#include "checkpoint/store.h"
#include "collection_object.h"
#include "dense_objects.h"
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
  CheckpointObject(const std::shared_ptr<Membership>& its_membership, std::string its_directory,
                   int64_t its_keep)
      : membership(its_membership),
        channels(membership->communicator()),
        directory(std::move(its_directory)),
        keep(its_keep) {}

  std::shared_ptr<Membership> membership;
  checkpoint::GroupChannels channels;
  std::string directory;
  int64_t keep = 0;
  std::vector<Added<shardrec_collection>> collections;
  std::vector<Added<shardrec_mlp>> layers;
  std::vector<Added<shardrec_ddp>> parameters;
  checkpoint::HostTensors tensors;
  checkpoint::UsedNames names;  // of all of these
  checkpoint::Lineage lineage;
  std::optional<checkpoint::Opened> opened;

  // Throws INVALID_STATE when no checkpoint is open.
  const checkpoint::Opened& require_opened() const;
};

template <>
struct Handle<shardrec_checkpoint> {
  using Object = CheckpointObject;
  static constexpr Kind kKind = Kind::kCheckpoint;
};

}  // namespace shardrec::capi
