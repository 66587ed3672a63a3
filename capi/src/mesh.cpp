#include "shardrec/mesh.h"

#include <memory>
#include <optional>
#include <vector>

#include "comm/collective/agree.h"
#include "guard.h"
#include "objects/mesh_object.h"
#include "options.h"
#include "structs.h"

namespace shardrec::capi {

std::optional<training::Mesh> groups_of(const Use<shardrec_comm>& comm, shardrec_mesh* mesh) {
  if (mesh == nullptr) return std::nullopt;
  const auto use = enter(mesh, Access::kShared);
  if (use->world != comm->membership) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               "the mesh was made of another communicator; a mesh of comm is accepted");
  }
  return use->mesh;
}

namespace {

struct Group {
  comm::Operation operation;
  std::shared_ptr<comm::Communicator> training::Mesh::* ranks;
};

const Group& group_named(shardrec_mesh_group group) {
  static constexpr auto kOperation = [](const char* name, uint32_t kind) {
    return comm::Operation{
        .name = name, .kind = kind, .detail = 0, .deadline_kind = comm::DeadlineKind::kSetup};
  };
  static constexpr Group kSharding{kOperation("mesh_comm (sharding group)", 1),
                                   &training::Mesh::sharding};
  static constexpr Group kReplica{kOperation("mesh_comm (replica group)", 2),
                                  &training::Mesh::replicas};
  switch (group) {
    case SHARDREC_MESH_GROUP_SHARDING:
      return kSharding;
    case SHARDREC_MESH_GROUP_REPLICA:
      return kReplica;
    default:
      refuse_value("group", int64_t{group},
                   "SHARDREC_MESH_GROUP_SHARDING (0) or SHARDREC_MESH_GROUP_REPLICA (1)");
  }
}

}  // namespace
}  // namespace shardrec::capi

using namespace shardrec;  // NOLINT(google-build-using-namespace): the C functions live outside
using namespace shardrec::capi;  // NOLINT(google-build-using-namespace)

shardrec_status shardrec_mesh_create(shardrec_comm* comm, int32_t sharding_group_size,
                                     const shardrec_options* options, shardrec_mesh** out) {
  return guard([&] {
    const auto use = enter(comm, Access::kExclusive);
    collective_call(use, "mesh_create", [&] {
      constexpr comm::Operation kCreate{.name = "mesh_create",
                                        .kind = static_cast<uint32_t>(CommCall::kMeshCreate),
                                        .detail = 0,
                                        .deadline_kind = comm::DeadlineKind::kSetup};
      shardrec_placement placement{};
      std::optional<Reserved<shardrec_mesh>> reserved;
      // No rank waits in a group that its peers do not form.
      comm::agree_on_same(use->collectives, kCreate, [&] {
        require_out(out, "out");
        placement = read_options(options, SHARDREC_OPTIONS_MESH)
                        .choice<shardrec_placement>(SHARDREC_OPTION_PLACEMENT);
        reserved.emplace();
        return std::vector<comm::SharedValue>{
            {"sharding_group_size", static_cast<uint64_t>(sharding_group_size)},
            {"option PLACEMENT", static_cast<uint64_t>(placement)}};
      });
      auto object = std::make_shared<MeshObject>(use->membership);
      object->mesh =
          training::make_mesh(use->membership->communicator(), sharding_group_size, placement);
      use->membership->add_part(object->mesh.sharding);
      use->membership->add_part(object->mesh.replicas);
      reserved->publish(out, std::move(object));
    });
  });
}

void shardrec_mesh_destroy(shardrec_mesh** mesh) { destroy(mesh); }

shardrec_status shardrec_mesh_place(const shardrec_mesh* mesh, shardrec_place* out) {
  return guard([&] {
    const auto use = enter(mesh, Access::kShared);
    const training::Mesh& groups = use->mesh;
    write_struct(out, "out",
                 shardrec_place{.struct_size = sizeof(shardrec_place),
                                .sharding_rank = groups.sharding->rank(),
                                .sharding_size = groups.sharding->size(),
                                .replica_rank = groups.replicas->rank(),
                                .replica_size = groups.replicas->size()});
  });
}

// It is a part of the group, which the handle keeps alive: a group that ends takes its parts with it.
shardrec_status shardrec_mesh_comm(shardrec_mesh* mesh, shardrec_mesh_group group,
                                   shardrec_comm** out) {
  return guard([&] {
    require_out(out, "out");
    const Group& asked = group_named(group);
    const auto use = enter(mesh, Access::kExclusive);
    use->world->require_open();
    comm::tell_shortage(use->world->communicator(), asked.operation.name, [&] {
      Reserved<shardrec_comm> reserved;
      // A split is heard of in its group only; here, ranks that ask for other groups are.
      use->collectives.barrier(asked.operation);
      comm::Communicator& whole = *(use->mesh.*asked.ranks);
      auto object = std::make_shared<Comm>(use->world->split(whole, 0, whole.rank()));
      object->made_of = use.share();
      reserved.publish(out, std::move(object));
    });
  });
}
