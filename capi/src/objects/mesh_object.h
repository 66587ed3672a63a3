// The object behind shardrec_mesh: a rank's place. The communicators of its groups end with the one they were
// split from.
#pragma once

#include <memory>
#include <optional>

#include "comm/collective/collectives.h"
#include "handle.h"
#include "objects/comm_object.h"
#include "shardrec/mesh.h"
#include "training/mesh.h"

namespace shardrec::capi {

struct MeshObject {
  explicit MeshObject(const std::shared_ptr<Membership>& its_world)
      : world(its_world),
        collectives(world->communicator().open_channel(comm::Purpose::kControl),
                    world->communicator().rank(), world->communicator().size()) {}

  std::shared_ptr<Membership> world;
  comm::Collectives collectives;  // over the whole mesh; exclusive
  training::Mesh mesh;
};

template <>
struct Handle<shardrec_mesh> {
  using Object = MeshObject;
  static constexpr Kind kKind = Kind::kMesh;
};

// The groups of a mesh of this communicator; none where mesh is NULL. Throws INVALID_ARGUMENT for a mesh of
// another communicator.
std::optional<training::Mesh> groups_of(const Use<shardrec_comm>& comm, shardrec_mesh* mesh);

}  // namespace shardrec::capi
