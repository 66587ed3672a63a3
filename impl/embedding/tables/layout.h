// The layout of a collection: a plan read once into the tables that every step walks. The same on
// all ranks, immutable, shared by everything made from the collection.
//
// The boxes of one row range of a table on one rank are a **part**: they receive the same ids once,
// share one index plan and are stored as one matrix, their columns side by side. A replicated table
// has one part per rank, each the whole table. Every message between two ranks lists the blocks of
// the receiving (input, gradient) or sending (output) rank's parts in one canonical order: parts by
// (table, row, first column), within a part the features of its table in model order.
#pragma once

#include <compare>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

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

struct Part {
  int32_t table = 0;
  int32_t owner = 0;
  int64_t row = 0;
  int64_t rows = 0;
  int64_t width = 0;                     // sum of the pieces' cols
  std::span<const ColumnPiece> columns;  // ascending; the layout's, as most parts are cut alike
  bool replicated = false;
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
// targets[first_target[i] .. first_target[i + 1]), indices into TableLayout::receivers.
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

// One addend of an output: columns [offset, ...) of a part's partial sums.
struct Addend {
  int32_t part = 0;    // index into TableLayout::parts
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

struct TableLayout {
  std::vector<int32_t> parts;      // indices into Layout::parts, by (row, col); replicas by rank
  std::vector<int32_t> receivers;  // those that this rank's ids may go to
  std::vector<int32_t> features;   // of the model, ascending
  Routing routing;
  std::vector<Segment> segments;  // ascending columns
  // Does every receiver get all ids of a feature?
  bool whole = false;
  // Can owners divide gradients by a power of two as they add them up? It is the same then, bit for
  // bit: nothing is done to them between the division and the sum.
  bool owner_applies_divisor = false;
  bool replicated = false;
  shardrec_replication replication = SHARDREC_REPLICATION_SAMPLES;
  // Do ranks look up their own ids only, in their own replica?
  bool own_ids_only() const { return replicated && replication != SHARDREC_REPLICATION_SAMPLES; }
  bool cut_by_columns = false;  // some row has more than one column owner
};

class Layout {
 public:
  // The plan must tile the model (plan::check_tiling). sums_on_nodes: are partial sums added up on
  // their node before they cross to another?
  Layout(const plan::Model& model, const plan::Plan& plan, int rank, bool sums_on_nodes = false);
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;

  const plan::Model& model() const { return model_; }
  const plan::OutputLayout& output() const { return output_; }
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  std::span<const Part> parts() const { return parts_; }
  const TableLayout& table(int32_t table) const { return tables_[static_cast<size_t>(table)]; }
  size_t table_count() const { return tables_.size(); }
  // Parts of a rank, and the blocks of messages that concern its parts, both in canonical order.
  std::span<const int32_t> parts_of(int rank) const { return parts_of_[static_cast<size_t>(rank)]; }
  std::span<const Block> blocks_of(int rank) const { return blocks_of_[static_cast<size_t>(rank)]; }
  // Number of the block (part, k-th feature of its table) among the blocks of the part's owner.
  int32_t block_of(int32_t part, size_t k) const {
    return first_block_[static_cast<size_t>(part)] + static_cast<int32_t>(k);
  }
  // Does the owner of a part send its partial sums to `source`? Replicas serve their own rank only.
  bool answers(const Part& part, int source) const {
    return !part.replicated || part.owner == source;
  }
  // Do the sums of a block travel to `source` by way of its node's sums?
  bool goes_by_node(const Block& block, int source) const {
    const Part& part = parts_[static_cast<size_t>(block.part)];
    return part.summed_on_node && !block.sequence && node_of(part.owner) != node_of(source);
  }
  // Does the n-th node of a segment send its sum of a feature, not its parts theirs, to other
  // nodes?
  bool sums_segment(int32_t feature, const Segment& segment, size_t n) const;
  bool sums_on_nodes() const { return sums_on_nodes_; }
  int32_t node_of(int rank) const { return topology_.node_of(rank); }
  // The rank of a node that adds up what the node has of the bags of `source`, a rank of another.
  int adder(int source, int32_t node) const;
  bool is_sequence(int32_t feature) const {
    return output_.output[static_cast<size_t>(feature)] != 0;
  }
  int64_t dim_of(int32_t feature) const {
    const int32_t table = model_.features[static_cast<size_t>(feature)].table;
    return model_.tables[static_cast<size_t>(table)].dim;
  }
  // Width of an output: the pooled features side by side, or the rows of one sequence.
  int64_t width_of(int32_t output) const {
    return output == 0 ? output_.width : dim_of(output_.sequences[static_cast<size_t>(output) - 1]);
  }
  bool ids_are_64(int32_t table) const {
    return model_.tables[static_cast<size_t>(table)].rows >= (int64_t{1} << 31);
  }

 private:
  std::span<const ColumnPiece> keep(std::vector<ColumnPiece> columns);
  void add_parts(const plan::Plan& plan, int32_t table);
  void build_routing(TableLayout& layout, int32_t table);
  void build_segments(TableLayout& layout, const plan::Plan& plan, int32_t table);
  void find_node_sums(const TableLayout& layout);

  plan::Model model_;
  plan::OutputLayout output_;
  plan::Topology topology_;
  bool sums_on_nodes_ = false;  // is there anything to add?
  int rank_ = 0;
  int ranks_ = 1;
  std::set<std::vector<ColumnPiece>> columns_;  // of the parts
  std::vector<Part> parts_;
  std::vector<TableLayout> tables_;
  std::vector<std::vector<int32_t>> parts_of_;
  std::vector<std::vector<Block>> blocks_of_;
  std::vector<int32_t> first_block_;  // by part
};

}  // namespace shardrec::embedding
