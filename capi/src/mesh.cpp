#include "shardrec/mesh.h"

#include <memory>

#include "comm/collective/agree.h"
#include "guard.h"
#include "objects/collection_object.h"
#include "objects/model_object.h"
#include "options.h"
#include "plan_collective.h"
#include "training/mesh.h"

namespace shardrec::capi {

// A rank's place. The communicators of its groups end with the one they were split from.
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

namespace {

constexpr comm::Operation kCreate{.name = "collection_create_on_mesh",
                                  .kind = 1,
                                  .detail = 0,
                                  .deadline_kind = comm::DeadlineKind::kSetup};

constexpr comm::Operation kShardingComm{.name = "mesh_sharding_comm",
                                        .kind = 2,
                                        .detail = 0,
                                        .deadline_kind = comm::DeadlineKind::kSetup};
constexpr comm::Operation kReplicaComm{.name = "mesh_replica_comm",
                                       .kind = 3,
                                       .detail = 0,
                                       .deadline_kind = comm::DeadlineKind::kSetup};
constexpr uint32_t kFirstPlanOperation = 4;

// A communicator of the host's own over the ranks of one of the mesh's groups. It is a part of that
// group, which the handle keeps alive: a group that ends takes its parts with it.
void make_group_comm(shardrec_mesh* mesh, const comm::Operation& operation,
                     std::shared_ptr<comm::Communicator> training::Mesh::* group,
                     shardrec_comm** out) {
  require_out(out, "out");
  const auto use = enter(mesh, Access::kExclusive);
  use->world->require_open();
  comm::tell_shortage(use->world->communicator(), operation.name, [&] {
    Reserved<shardrec_comm> reserved;
    // A split is heard of in its group only; here, ranks that ask for other groups are.
    use->collectives.barrier(operation);
    comm::Communicator& whole = *(use->mesh.*group);
    auto object = std::make_shared<Comm>(use->world->split(whole, 0, whole.rank()));
    object->made_of = use.share();
    reserved.publish(out, std::move(object));
  });
}

}  // namespace
}  // namespace shardrec::capi

using namespace shardrec;  // NOLINT(google-build-using-namespace): the C functions live outside
using namespace shardrec::capi;  // NOLINT(google-build-using-namespace)

shardrec_status shardrec_mesh_create(shardrec_comm* comm, int32_t sharding_group_size,
                                     const shardrec_options* options, shardrec_mesh** out) {
  return guard([&] {
    require_out(out, "out");
    const auto placement = read_options(options, SHARDREC_OPTIONS_MESH)
                               .choice<shardrec_placement>(SHARDREC_OPTION_PLACEMENT);
    const auto use = enter(comm, Access::kExclusive);
    Reserved<shardrec_mesh> reserved;
    collective_call(use, "mesh_create", [&] {
      // Both arguments are compared, so that no rank waits in a group that its peers do not form.
      const comm::Operation create{
          .name = "mesh_create",
          .kind = static_cast<uint32_t>(CommCall::kMeshCreate),
          .detail = uint64_t{static_cast<uint32_t>(sharding_group_size)} << 8 |
                    static_cast<uint64_t>(placement),
          .deadline_kind = comm::DeadlineKind::kSetup};
      use->collectives.barrier(create);
      auto object = std::make_shared<MeshObject>(use->membership);
      object->mesh =
          training::make_mesh(use->membership->communicator(), sharding_group_size, placement);
      use->membership->add_part(object->mesh.sharding);
      use->membership->add_part(object->mesh.replicas);
      reserved.publish(out, std::move(object));
    });
  });
}

void shardrec_mesh_destroy(shardrec_mesh** mesh) { destroy(mesh); }

shardrec_status shardrec_mesh_place(const shardrec_mesh* mesh, int32_t* out_sharding_rank,
                                    int32_t* out_sharding_size, int32_t* out_replica_rank,
                                    int32_t* out_replica_size) {
  return guard([&] {
    const auto use = enter(mesh, Access::kShared);
    const training::Mesh& groups = use->mesh;
    if (out_sharding_rank != nullptr) *out_sharding_rank = groups.sharding->rank();
    if (out_sharding_size != nullptr) *out_sharding_size = groups.sharding->size();
    if (out_replica_rank != nullptr) *out_replica_rank = groups.replicas->rank();
    if (out_replica_size != nullptr) *out_replica_size = groups.replicas->size();
  });
}

shardrec_status shardrec_mesh_sharding_comm(shardrec_mesh* mesh, shardrec_comm** out) {
  return guard([&] { make_group_comm(mesh, kShardingComm, &training::Mesh::sharding, out); });
}

shardrec_status shardrec_mesh_replica_comm(shardrec_mesh* mesh, shardrec_comm** out) {
  return guard([&] { make_group_comm(mesh, kReplicaComm, &training::Mesh::replicas, out); });
}

shardrec_status shardrec_plan_collective_on_mesh(shardrec_mesh* mesh, const shardrec_model* model,
                                                 const shardrec_options* options,
                                                 shardrec_plan** out) {
  return guard([&] {
    const auto use = enter(mesh, Access::kExclusive);
    use->world->require_open();
    comm::Communicator& world = use->world->communicator();
    comm::tell_shortage(world, "plan_collective_on_mesh", [&] {
      const comm::Communicator& group = *use->mesh.sharding;
      plan_together({.collectives = use->collectives,
                     .first_operation = kFirstPlanOperation,
                     .rank = world.rank(),
                     .topology = {.ranks = group.size(), .ranks_per_node = group.ranks_per_node()},
                     .on_mesh = true},
                    model, options, out);
    });
  });
}

shardrec_status shardrec_collection_create_on_mesh(shardrec_mesh* mesh, const shardrec_model* model,
                                                   const shardrec_plan* plan,
                                                   const shardrec_options* options,
                                                   shardrec_collection** out) {
  return guard([&] {
    require_out(out, "out");
    const auto use = enter(mesh, Access::kExclusive);
    use->world->require_open();
    comm::Communicator& world = use->world->communicator();
    comm::tell_shortage(world, kCreate.name, [&] {
      embedding::CollectionOptions settings = collection_options(options);
      if (settings.threads == 0) settings.threads = world.default_threads();
      const plan::Model tables = *enter(model, Access::kExclusive);
      const plan::Plan boxes = enter(plan, Access::kExclusive)->plan;
      Reserved<shardrec_collection> reserved;
      // Before the collective part: what fails behind it fails on this rank alone.
      auto object = std::make_shared<CollectionObject>(use->world);
      object->set_tables(std::make_unique<training::Tables>(
          use->world->share(), use->mesh, use->collectives, kCreate, tables, boxes, settings));
      reserved.publish(out, std::move(object));
    });
  });
}

shardrec_status shardrec_collection_sync(shardrec_collection* collection) {
  return guard([&] {
    const auto use = enter(collection, Access::kExclusive);
    use->membership->require_open();
    use->tables->sync();
  });
}
