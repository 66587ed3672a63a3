#include "planner/kinds.h"

#include <array>

#include "core/error.h"
#include "core/tensor.h"
#include "plan/model/names.h"

namespace shardrec::planner {
namespace {

using core::fail;
using core::sentence;

constexpr int64_t kReplicateUpTo = 64 << 10;
constexpr int kKinds = SHARDREC_SHARDING_DATA_PARALLEL;

int64_t bytes_of(const Table& table) {
  return table.rows * table.dim * static_cast<int64_t>(core::dtype_size(table.dtype));
}

[[noreturn]] void refuse_copies(const Table& table, std::string_view why,
                                const plan::RankPool& pool) {
  fail(SHARDREC_INVALID_ARGUMENT,
       sentence("table \"", table.name, "\" ", why, ", on every rank, and is allowed on ranks ",
                table.limits.ranks.text(), " only (ALLOWED_RANKS), ", pool.ranks().size(),
                " of the plan's; another kind of sharding, or all ranks, is needed"),
       {.table = table.name});
}

// What the table leaves; never empty.
plan::ShardingKinds possible_kinds(const Table& table, const plan::RankPool& pool) {
  plan::ShardingKinds kinds = table.limits.sharding;
  if (!pool.has_all()) kinds.remove(SHARDREC_SHARDING_DATA_PARALLEL);
  if (kinds.empty()) {
    refuse_copies(table, "may only be data_parallel (ALLOWED_SHARDING)", pool);
  }
  return kinds;
}

// What AUTO and MIXED take on a mesh, where replicated tables make all sharding groups wait for each other at every step.
plan::ShardingKinds cut_if_possible(plan::ShardingKinds kinds) {
  const plan::ShardingKinds all = kinds;
  kinds.remove(SHARDREC_SHARDING_DATA_PARALLEL);
  return kinds.empty() ? all : kinds;
}

shardrec_sharding named_kind(const Table& table, const plan::RankPool& pool,
                             const PlanOptions& options, const plan::ShardingKinds& kinds) {
  const shardrec_sharding kind = options.sharding;
  if (kinds.has(kind)) return kind;
  if (table.limits.sharding.has(kind)) {
    refuse_copies(table, "is to be data_parallel", pool);
  }
  fail(SHARDREC_INVALID_ARGUMENT,
       sentence("table \"", table.name, "\" allows ", table.limits.sharding.text(),
                " (ALLOWED_SHARDING), not ", plan::name_of(kind),
                ", which the plan asks for (SHARDING); auto and mixed choose what it allows"),
       {.value = kind, .table = table.name});
}

shardrec_sharding mixed_kind(size_t table, const plan::ShardingKinds& kinds) {
  auto kind = static_cast<int>(1 + table % kKinds);
  while (!kinds.has(static_cast<shardrec_sharding>(kind))) kind = kind % kKinds + 1;
  return static_cast<shardrec_sharding>(kind);
}

shardrec_sharding auto_kind(const Table& table, const plan::ShardingKinds& kinds,
                            bool fits_a_rank) {
  if (bytes_of(table) <= kReplicateUpTo && kinds.has(SHARDREC_SHARDING_DATA_PARALLEL)) {
    return SHARDREC_SHARDING_DATA_PARALLEL;
  }
  constexpr std::array<shardrec_sharding, kKinds - 1> kWhole = {
      SHARDREC_SHARDING_TABLE_WISE,        SHARDREC_SHARDING_ROW_WISE,
      SHARDREC_SHARDING_TABLE_ROW_WISE,    SHARDREC_SHARDING_COLUMN_WISE,
      SHARDREC_SHARDING_TABLE_COLUMN_WISE, SHARDREC_SHARDING_GRID};
  constexpr std::array<shardrec_sharding, kKinds - 1> kCut = {SHARDREC_SHARDING_ROW_WISE,
                                                              SHARDREC_SHARDING_TABLE_ROW_WISE,
                                                              SHARDREC_SHARDING_GRID,
                                                              SHARDREC_SHARDING_COLUMN_WISE,
                                                              SHARDREC_SHARDING_TABLE_COLUMN_WISE,
                                                              SHARDREC_SHARDING_TABLE_WISE};
  for (const shardrec_sharding kind : fits_a_rank ? kWhole : kCut) {
    if (kinds.has(kind)) return kind;
  }
  return SHARDREC_SHARDING_DATA_PARALLEL;
}

}  // namespace

void require_ranks(const Table& table, const Topology& topology, const plan::RankPool& pool) {
  if (!pool.ranks().empty()) return;
  fail(SHARDREC_INVALID_ARGUMENT,
       sentence("table \"", table.name, "\" is allowed on ranks ", table.limits.ranks.text(),
                " only (ALLOWED_RANKS); the plan is for ranks 0 to ", topology.ranks - 1),
       {.limit = topology.ranks, .table = table.name});
}

shardrec_sharding choose_kind(const Model& model, size_t table, const plan::RankPool& pool,
                              const PlanOptions& options, bool fits_a_rank) {
  const Table& own = model.tables[table];
  const plan::ShardingKinds kinds = possible_kinds(own, pool);
  const plan::ShardingKinds chosen = options.mesh_ranks != 0 ? cut_if_possible(kinds) : kinds;
  switch (options.sharding) {
    case SHARDREC_SHARDING_AUTO:
      return auto_kind(own, chosen, fits_a_rank);
    case SHARDREC_SHARDING_MIXED:
      return mixed_kind(table, chosen);
    default:
      return named_kind(own, pool, options, kinds);
  }
}

}  // namespace shardrec::planner
