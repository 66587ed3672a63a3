// What of a collection's layout is the same on all ranks: a plan read once into the tables that every step walks.
// Immutable; ranks of one process that have the same plan share it, which of many ranks is most of what a rank
// would keep.
//
// The boxes of one row range of a table on one rank are a **part**: they receive the same ids once,
// share one index plan and are stored as one matrix, their columns side by side. A replicated table
// has one part per rank, each the whole table; a cut one has its parts once in each sharding group. Where groups share
// the optimizer states, these parts are for lookups, and each has a part for updates beside it: a range of its rows on one
// of the ranks that have them, with their states. Its weights are those of the part for lookups there.
// Every message between two ranks lists the blocks of the receiving (input, gradient) or sending (output)
// rank's parts in one canonical order: parts by (table, row, first column), within a part the features of
// its table in model order.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <ranges>
#include <span>
#include <vector>

#include "compute/routing_operations.h"
#include "embedding/tables/sharding_groups.h"
#include "plan/model/model.h"
#include "plan/plan.h"

namespace shardrec::embedding {

// Columns [col, col + cols) of the table stand at [offset, offset + cols) of a part's rows.
struct ColumnPiece {
  int64_t col = 0;
  int64_t cols = 0;
  int64_t offset = 0;

  auto operator<=>(const ColumnPiece&) const = default;
};

enum class PartUse : uint8_t { kAll, kLookups, kUpdates };

struct Part {
  int32_t table = 0;
  int32_t owner = 0;
  int64_t row = 0;
  int64_t rows = 0;
  int64_t width = 0;                     // sum of the pieces' cols
  std::span<const ColumnPiece> columns;  // ascending; the layout's, as most parts are cut alike
  int32_t column_cut = 0;                // which of CommonLayout::column_cuts() they are
  bool replicated = false;
  PartUse use = PartUse::kAll;
  // Are its partial sums of other nodes' bags added to those of its own node's other parts before
  // they leave the node (node_sums.h)?
  bool summed_on_node = false;
  int32_t first_interval = 0;  // of the table's routing: [first_interval, end_interval)
  int32_t end_interval = 1;
};

// A block of a message: the ids of one feature that fall into one part. Output and gradient
// messages hold a row per bag that is not empty; of a sequence, a row per id.
struct Block {
  int32_t part = 0;
  int32_t feature = 0;
  bool sequence = false;
};

// Where the ids of a table go: interval i is rows [cuts[i], cuts[i + 1]) and goes to
// targets[first_target[i] .. first_target[i + 1]), indices into Layout::receivers(table).
struct Routing {
  std::vector<int64_t> cuts;
  std::vector<int32_t> first_target;
  std::vector<int32_t> targets;
  int64_t even = 0;  // length of all intervals but the last, 0: uneven; spares the search
  // Upper half of row * reciprocal = row / even: above 2^64 / even by at most 1, which is exact for
  // rows below 2^32. 0: divide.
  uint64_t reciprocal = 0;
  // Has every target one interval, and are there at most so many of them?
  static constexpr size_t kMostStreams = 64;
  bool streams = false;

  size_t intervals() const { return cuts.size() - 1; }
};

// The blocks that the ids of one feature go to. Their numbers count those of all owners, as first_block_of() does.
struct FeatureRoute {
  std::vector<uint32_t> blocks;               // by receiver
  std::vector<compute::BlockTarget> targets;  // as Routing::targets of its table
};

// One addend of an output: columns [offset, ...) of a part's partial sums.
struct Addend {
  int32_t part = 0;    // index into Layout::answering(table)
  int64_t offset = 0;  // first column inside the part's row
};

// Columns [col, col + cols) of the table: the partial sums that make them up, grouped by node. Sums
// are taken inside a node in ascending row order, then over nodes by first row.
struct Segment {
  int64_t col = 0;
  int64_t cols = 0;
  std::vector<Addend> addends;
  std::vector<int32_t> node_ends;  // addends of node n: [node_ends[n - 1], node_ends[n])
  std::vector<int32_t> nodes;      // their numbers in the topology
  std::vector<int32_t> addend_of;  // by interval of the routing: the only addend of one of its rows

  size_t node_begin(size_t n) const { return n == 0 ? 0 : node_end(n - 1); }
  size_t node_end(size_t n) const { return static_cast<size_t>(node_ends[n]); }
};

// Numbers of parts that stand one behind another, as those of a table do.
struct PartRange {
  int32_t first = 0;
  int32_t count = 0;

  size_t size() const { return static_cast<size_t>(count); }
  int32_t operator[](size_t k) const { return first + static_cast<int32_t>(k); }
  size_t index_of(int32_t part) const { return static_cast<size_t>(part - first); }
  auto begin() const { return std::views::iota(first, first + count).begin(); }
  auto end() const { return std::views::iota(first, first + count).end(); }
};

struct TableLayout {
  // Of Layout::parts: by sharding group, then (row, col); replicas by rank. Those for updates are the last ones.
  PartRange parts;
  PartRange update_parts;         // none: those of `parts` are updated
  std::vector<int32_t> features;  // of the model, ascending
  Routing routing;
  // Ascending columns; of a replicated table none, see Layout::segments.
  std::vector<Segment> segments;
  // Does every receiver get all ids of a feature?
  bool whole = false;
  // Can owners divide gradients by a power of two as they add them up? It is the same then, bit for
  // bit: nothing is done to them between the division and the sum.
  bool owner_applies_divisor = false;
  bool replicated = false;
  shardrec_replication replication = SHARDREC_REPLICATION_SAMPLES;
  // Of a cut table: those of a sharding group that answer lookups.
  PartRange parts_of_group(int group, const ShardingGroups& groups) const {
    const int32_t each = (parts.count - update_parts.count) / groups.count;
    return {parts.first + group * each, each};
  }
  // Where ids may go to, of a rank of the first group.
  PartRange receivers_of_first_group(const ShardingGroups& groups) const {
    if (own_ids_only()) return {parts.first, 1};
    return replicated || groups.exact ? parts : parts_of_group(0, groups);
  }
  // Do ranks look up their own ids only, in their own replica?
  bool own_ids_only() const { return replicated && replication != SHARDREC_REPLICATION_SAMPLES; }
  bool cut_by_columns = false;  // some row has more than one column owner
};

class CommonLayout {
 public:
  // The plan, of a sharding group's ranks, must tile the model (plan::check_tiling). sums_on_nodes: are partial sums added
  // up on their node before they cross to another? Not where there are several groups.
  CommonLayout(const plan::Model& model, const plan::Plan& plan, const ShardingGroups& groups,
               bool sums_on_nodes);
  CommonLayout(const CommonLayout&) = delete;
  CommonLayout& operator=(const CommonLayout&) = delete;

  // Was it made from these?
  bool is_of(const plan::Model& model, const plan::Plan& plan, const ShardingGroups& groups,
             bool sums_on_nodes) const {
    return may_sum_on_nodes_ == sums_on_nodes && groups_ == groups && plan_ == plan &&
           model_ == model;
  }
  const plan::Model& model() const { return model_; }
  const plan::Plan& plan() const { return plan_; }
  const plan::OutputLayout& output() const { return output_; }
  const ShardingGroups& groups() const { return groups_; }
  int ranks() const { return groups_.ranks(); }
  std::span<const Part> parts() const { return parts_; }
  // The different columns that parts have.
  std::span<const std::span<const ColumnPiece>> column_cuts() const { return column_cuts_; }
  const TableLayout& table(int32_t table) const { return tables_[static_cast<size_t>(table)]; }
  size_t table_count() const { return tables_.size(); }
  std::span<const int32_t> parts_of(int rank) const { return parts_of_[static_cast<size_t>(rank)]; }
  std::span<const Block> blocks_of(int rank) const { return blocks_of_[static_cast<size_t>(rank)]; }
  // Blocks of the ranks below.
  size_t first_block_of(int rank) const { return first_block_of_[static_cast<size_t>(rank)]; }
  // Number of the block (part, k-th feature of its table) among the blocks of the part's owner.
  int32_t block_of(int32_t part, size_t k) const {
    return first_block_[static_cast<size_t>(part)] + static_cast<int32_t>(k);
  }
  // Of the k-th feature of a table to some of its parts.
  FeatureRoute route_to(PartRange receivers, const TableLayout& table, size_t k) const;
  // The same of a table with parts for updates: to these, and to those for lookups of a group.
  FeatureRoute route_to_group(int group, const TableLayout& table, size_t k) const;
  // To all of them; nothing where ids of some ranks go to some parts only.
  const FeatureRoute& route(int32_t feature) const { return routes_[static_cast<size_t>(feature)]; }
  bool sums_on_nodes() const { return sums_on_nodes_; }
  bool is_sequence(int32_t feature) const {
    return output_.output[static_cast<size_t>(feature)] != 0;
  }

 private:
  void keep(std::vector<ColumnPiece> columns, Part& part);
  void add_parts(int32_t table);
  // The rows of each of these parts, of the first group, are dealt out to the groups.
  void add_update_parts(std::span<const Part> parts, TableLayout& layout);
  uint32_t block_number(int32_t part, size_t k) const {
    return static_cast<uint32_t>(first_block_of(parts_[static_cast<size_t>(part)].owner) +
                                 static_cast<size_t>(block_of(part, k)));
  }
  void build_routing(TableLayout& layout, int32_t table);
  void build_segments(TableLayout& layout, int32_t table);
  void find_node_sums(const TableLayout& layout);

  plan::Model model_;
  plan::Plan plan_;
  ShardingGroups groups_;
  plan::OutputLayout output_;
  bool may_sum_on_nodes_;
  bool sums_on_nodes_ = false;                           // is there anything to add?
  std::map<std::vector<ColumnPiece>, int32_t> columns_;  // of the parts
  std::vector<std::span<const ColumnPiece>> column_cuts_;
  std::vector<Part> parts_;
  std::vector<TableLayout> tables_;
  std::vector<std::vector<int32_t>> parts_of_;
  std::vector<std::vector<Block>> blocks_of_;
  std::vector<size_t> first_block_of_;  // by rank, and one more
  std::vector<int32_t> first_block_;    // by part
  std::vector<FeatureRoute> routes_;    // by feature
};

// The one of this process that is in use, else a new one. Any thread.
std::shared_ptr<const CommonLayout> common_layout(const plan::Model& model, const plan::Plan& plan,
                                                  const ShardingGroups& groups, bool sums_on_nodes);

}  // namespace shardrec::embedding
