#include "shardrec/mesh.h"

#include <cstring>
#include <span>

#include "collection_object.h"
#include "comm/agree.h"
#include "guard.h"
#include "model_object.h"
#include "options.h"
#include "replica/mesh.h"

namespace shardrec::capi {

// A rank's place. The communicators of its groups end with the one they were split from.
struct MeshObject {
  explicit MeshObject(const std::shared_ptr<Membership>& its_world)
      : world(its_world),
        collectives(world->communicator().open_channel(comm::Purpose::kControl),
                    world->communicator().rank(), world->communicator().size()) {}

  std::shared_ptr<Membership> world;
  comm::Collectives collectives;  // over the whole mesh; exclusive
  replica::Mesh mesh;
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
                                  .patience = comm::Patience::kSetup};

// What all replicas must bring alike; a collection compares inside its sharding group only.
struct Agreement {
  uint64_t model = 0;
  uint64_t plan = 0;
  int64_t seed = 0;
};

void compare(comm::Collectives& collectives, const Agreement& mine) {
  const auto messages = collectives.all_gather(kCreate, std::as_bytes(std::span(&mine, 1)));
  Agreement first;
  for (size_t rank = 0; rank < messages.size(); ++rank) {
    Agreement theirs;
    if (messages[rank].size() != sizeof theirs) {
      core::fail(SHARDREC_CORRUPT_DATA,
                 core::sentence("rank ", rank, " sent a malformed message in ", kCreate.name),
                 {.rank = static_cast<int64_t>(rank), .operation = kCreate.name});
    }
    std::memcpy(&theirs, messages[rank].data(), sizeof theirs);
    if (rank == 0) first = theirs;
    const char* what = theirs.model != first.model ? "model"
                       : theirs.plan != first.plan ? "plan"
                       : theirs.seed != first.seed ? "option SEED"
                                                   : nullptr;
    if (what != nullptr) {
      core::fail(SHARDREC_MISMATCH,
                 core::sentence("rank ", rank, " gave ", kCreate.name, " another ", what,
                                " than rank 0: replicas must start alike"),
                 {.rank = static_cast<int64_t>(rank), .operation = kCreate.name});
    }
  }
}

void refuse_replicated_tables(const plan::Model& model, const plan::Plan& plan) {
  for (size_t t = 0; t < plan.tables.size() && t < model.tables.size(); ++t) {
    if (!plan.tables[t].replicated) continue;
    core::fail(SHARDREC_UNSUPPORTED,
               core::sentence("table \"", model.tables[t].name,
                              "\" is replicated: on a mesh, tables are cut over the sharding group "
                              "or live on one of its ranks"),
               {.table = model.tables[t].name});
  }
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
          .patience = comm::Patience::kSetup};
      use->collectives.barrier(create);
      auto object = std::make_shared<MeshObject>(use->membership);
      object->mesh =
          replica::make_mesh(use->membership->communicator(), sharding_group_size, placement);
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
    const replica::Mesh& groups = use->mesh;
    if (out_sharding_rank != nullptr) *out_sharding_rank = groups.sharding->rank();
    if (out_sharding_size != nullptr) *out_sharding_size = groups.sharding->size();
    if (out_replica_rank != nullptr) *out_replica_rank = groups.replicas->rank();
    if (out_replica_size != nullptr) *out_replica_size = groups.replicas->size();
  });
}

shardrec_status shardrec_collection_create_on_mesh(shardrec_mesh* mesh, const shardrec_model* model,
                                                   const shardrec_plan* plan,
                                                   const shardrec_options* options,
                                                   shardrec_collection** out) {
  return guard([&] {
    require_out(out, "out");
    const embedding::CollectionOptions settings = collection_options(options);
    const plan::Model tables = *enter(model, Access::kExclusive);
    const plan::Plan boxes = enter(plan, Access::kExclusive)->plan;
    const auto use = enter(mesh, Access::kExclusive);
    use->world->require_open();
    Reserved<shardrec_collection> reserved;
    auto object = std::make_shared<CollectionObject>();
    object->membership = use->world;
    object->sync = std::make_unique<replica::ReplicaSync>(use->mesh.replicas);
    comm::agree(use->collectives, kCreate, [&] { refuse_replicated_tables(tables, boxes); });
    compare(use->collectives, {.model = plan::model_fingerprint(tables),
                               .plan = plan::plan_fingerprint(boxes, tables),
                               .seed = settings.seed});
    object->collection =
        std::make_shared<embedding::Collection>(use->mesh.sharding, tables, boxes, settings);
    object->number_it();
    reserved.publish(out, std::move(object));
  });
}

shardrec_status shardrec_collection_sync(shardrec_collection* collection) {
  return guard([&] {
    const auto use = enter(collection, Access::kExclusive);
    use->membership->require_open();
    if (use->sync != nullptr) use->sync->average(*use->collection);
  });
}
