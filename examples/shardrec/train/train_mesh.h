// Training in two dimensions: the ranks as sharding groups, each with a replica of all tables, and
// as replica groups, whose ranks hold the same boxes and average them now and then.
#pragma once

#include <shardrec/shardrec.hpp>
#include <string>
#include <vector>

#include "train/train_options.h"

namespace shardrec::cli {

// Ranks of the communicator, by group, each in the order of its own numbering.
struct MeshGroups {
  std::vector<std::vector<int>> sharding;  // one per replica of the tables
  std::vector<std::vector<int>> replica;   // one per rank of a sharding group
};

// Is a mesh asked for?
inline bool trains_on_mesh(const TrainOptions& options) { return options.sharding_group_size > 0; }

// Collective over comm.
Mesh make_mesh(Comm& comm, const TrainOptions& options);
// Who is in which group, on all ranks. Collective over comm.
MeshGroups groups_of(Comm& comm, const Mesh& mesh);
// The plan of a sharding group's ranks. Collective over the mesh.
Plan plan_on(Comm& comm, Mesh& mesh, const TrainOptions& options, const Model& model);

// The groups as a table for people, with what the mesh is in a line before it.
std::string mesh_text(const TrainOptions& options, const MeshGroups& groups, const Model& model,
                      const Plan& plan);

}  // namespace shardrec::cli
