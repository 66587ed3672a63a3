#include "training/mesh.h"

#include "core/error.h"

namespace shardrec::training {
namespace {

embedding::ShardingGroups groups_of(int ranks, int sharding_group_size,
                                    shardrec_placement placement) {
  return {.count = ranks / sharding_group_size,
          .size = sharding_group_size,
          .interleaved = placement == SHARDREC_PLACEMENT_INTRA_NODE_SYNC};
}

}  // namespace

MeshPlace mesh_place_of(int rank, int ranks, int sharding_group_size,
                        shardrec_placement placement) {
  const embedding::ShardingGroups groups = groups_of(ranks, sharding_group_size, placement);
  return {.sharding_group = groups.group_of(rank), .replica_group = groups.number_of(rank)};
}

Mesh make_mesh(comm::Communicator& world, int sharding_group_size, shardrec_placement placement) {
  const int ranks = world.size();
  if (sharding_group_size < 1 || sharding_group_size > ranks || ranks % sharding_group_size != 0) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("sharding_group_size is ", sharding_group_size,
                              "; a divisor of the communicator's ", ranks, " ranks is accepted"),
               {.value = int64_t{sharding_group_size}, .limit = int64_t{ranks}});
  }
  Mesh mesh;
  mesh.groups = groups_of(ranks, sharding_group_size, placement);
  mesh.place = mesh_place_of(world.rank(), ranks, sharding_group_size, placement);
  mesh.sharding = world.split(mesh.place.sharding_group, world.rank());
  mesh.replicas = world.split(mesh.place.replica_group, world.rank());
  return mesh;
}

}  // namespace shardrec::training
