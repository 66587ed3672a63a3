// A plan as data: which box of which table lives on which rank.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/model/model.h"
#include "plan/model/rectangle.h"
#include "shardrec/options.h"

namespace shardrec::plan {

// ranks_per_node consecutive ranks are one node; the last node may be smaller.
struct Topology {
  int32_t ranks = 1;
  int32_t ranks_per_node = 1;

  bool operator==(const Topology&) const = default;
  int32_t nodes() const { return (ranks + ranks_per_node - 1) / ranks_per_node; }
  int32_t node_of(int32_t rank) const { return rank / ranks_per_node; }
  int32_t ranks_of_node(int32_t node) const {
    return std::min(ranks_per_node, ranks - node * ranks_per_node);
  }
};

// Cells of a table, owned by one rank.
struct Box {
  int32_t rank = 0;
  Rectangle cells = {};

  bool operator==(const Box&) const = default;
};

struct TablePlan {
  bool replicated = false;  // on every rank; then no boxes
  std::vector<Box> boxes;   // in the order of before(); pairwise disjoint
  // How a replicated table keeps in step; never AUTO.
  shardrec_replication replication = SHARDREC_REPLICATION_SAMPLES;

  bool operator==(const TablePlan&) const = default;
};

struct Plan {
  Topology topology;
  std::vector<TablePlan> tables;  // as in the model

  bool operator==(const Plan&) const = default;
};

// Throws INVALID_ARGUMENT: ranks in [1, 2^20], ranks_per_node in [1, ranks].
void check_topology(const Topology& topology);
std::string topology_to_json(const Topology& topology);
Topology topology_from_json(const std::string& json);  // INVALID_ARGUMENT

// Proves that the boxes tile every table exactly once; throws INVALID_ARGUMENT naming table and
// cell.
void check_tiling(const Plan& plan, const Model& model);

// A replicated table that is kept in step by its rows is dealt out in slots, one per rank, and the rows
// of a slot are numbered in 32 bits.
constexpr int64_t kMostSlotRows = int64_t{1} << 32;
constexpr bool fits_slots(int64_t rows, int32_t ranks) {
  return (rows - 1) / ranks < kMostSlotRows;
}

// A plan with the model that it was made for.
struct PlannedModel {
  Model model;
  Plan plan;
};

std::string plan_to_json(const Plan& plan, const Model& model);
Plan plan_from_json(const Model& model, const std::string& json);
std::string plan_to_text(const Plan& plan, const Model& model);
uint64_t plan_fingerprint(const Plan& plan, const Model& model);

}  // namespace shardrec::plan
