// The mesh of a run, its plan, and who is in which group.
#include "train/train_mesh.h"

#include <cstdint>

#include "command/text_table.h"
#include "launch/ranks.h"

namespace shardrec::cli {
namespace {

std::string ranks_text(const std::vector<int>& ranks) {
  std::string out;
  for (const int rank : ranks) out += (out.empty() ? "" : ", ") + std::to_string(rank);
  return out;
}

// What becomes of the copies of tables: those that are cut are averaged, unless all ranks train them, those that are
// replicated are equal already.
std::string training_text(const TrainOptions& options, const Model& model, const Plan& plan) {
  const int32_t tables = model.info().tables;
  int32_t replicated = 0;
  for (int32_t table = 0; table < tables; ++table) {
    if (plan.box_count(table) == 0) ++replicated;
  }
  std::string out;
  if (!options.averages()) return ", all ranks train every replica in each step";
  if (replicated < tables) {
    out += ", replicas averaged every " +
           (options.sync_every == 1 ? "step" : std::to_string(options.sync_every) + " steps") +
           (options.sync_overlap ? " while they train on" : "");
  }
  if (replicated > 0) out += "; replicated tables: all ranks train them in every step";
  return out;
}

}  // namespace

Mesh make_mesh(Comm& comm, const TrainOptions& options) {
  return Mesh(comm, options.sharding_group_size, MeshOptions().placement(options.placement));
}

MeshGroups groups_of(Comm& comm, const Mesh& mesh) {
  const shardrec_place own = mesh.place();
  const auto places =
      gather(comm, {static_cast<double>(own.sharding_rank), static_cast<double>(own.replica_rank)});
  const auto shards = static_cast<size_t>(own.sharding_size);
  const auto replicas = static_cast<size_t>(own.replica_size);
  MeshGroups groups{.sharding{replicas, std::vector<int>(shards)},
                    .replica{shards, std::vector<int>(replicas)}};
  for (size_t rank = 0; rank < places.size(); ++rank) {
    const auto shard = static_cast<size_t>(places[rank][0]);
    const auto replica = static_cast<size_t>(places[rank][1]);
    groups.sharding[replica][shard] = static_cast<int>(rank);
    groups.replica[shard][replica] = static_cast<int>(rank);
  }
  return groups;
}

Plan plan_on(Comm& comm, Mesh& mesh, const TrainOptions& options, const Model& model) {
  return Plan::collective(comm, mesh, model, PlanOptions().sharding(options.sharding));
}

std::string mesh_text(const TrainOptions& options, const MeshGroups& groups, const Model& model,
                      const Plan& plan) {
  using Align = TextTable::Align;
  TextTable table({{"group", Align::kLeft}, {"ranks", Align::kLeft}, {"holds", Align::kLeft}});
  for (size_t replica = 0; replica < groups.sharding.size(); ++replica) {
    table.add({"sharding group " + std::to_string(replica), ranks_text(groups.sharding[replica]),
               "replica " + std::to_string(replica) + " of all tables"});
  }
  for (size_t shard = 0; shard < groups.replica.size(); ++shard) {
    table.add({"replica group " + std::to_string(shard), ranks_text(groups.replica[shard]),
               "the boxes of the plan's rank " + std::to_string(shard)});
  }
  return "mesh: " + std::to_string(options.ranks) + " ranks, sharding groups of " +
         std::to_string(options.sharding_group_size) + ", placement " + options.placement +
         training_text(options, model, plan) + "\n" + table.text();
}

}  // namespace shardrec::cli
