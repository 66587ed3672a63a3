// The layout of a collection as one rank sees it: what is the same on all of them (common_layout.h), and where the
// rank's own replicas stand. Immutable, shared by everything made from the collection.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "embedding/tables/common_layout.h"

namespace shardrec::embedding {

class Layout {
 public:
  // As CommonLayout.
  Layout(const plan::Model& model, const plan::Plan& plan, const ShardingGroups& groups, int rank,
         bool sums_on_nodes = false);
  // Of the one group of the plan's ranks.
  Layout(const plan::Model& model, const plan::Plan& plan, int rank, bool sums_on_nodes = false)
      : Layout(model, plan, {.size = plan.topology.ranks}, rank, sums_on_nodes) {}
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;

  const plan::Model& model() const { return common_->model(); }
  const plan::Plan& plan() const { return common_->plan(); }
  const plan::OutputLayout& output() const { return common_->output(); }
  int rank() const { return rank_; }
  int ranks() const { return common_->ranks(); }
  const ShardingGroups& groups() const { return common_->groups(); }

  std::span<const Part> parts() const { return common_->parts(); }
  std::span<const std::span<const ColumnPiece>> column_cuts() const {
    return common_->column_cuts();
  }
  const TableLayout& table(int32_t table) const { return common_->table(table); }
  size_t table_count() const { return common_->table_count(); }
  // Is any table not replicated?
  bool any_cut() const;
  // The parts that this rank's ids may go to.
  PartRange receivers(int32_t number) const {
    if (!table(number).replicated && !groups().exact) return own_group(number);
    return table(number).own_ids_only() ? own_part(number) : table(number).parts;
  }
  // Those that are updated together: sums over the columns of a row are taken over them.
  PartRange updated(int32_t number) const {
    return shares_states(number) ? table(number).update_parts : answering(number);
  }
  // Those that send this rank partial sums.
  PartRange answering(int32_t number) const {
    return table(number).replicated ? own_part(number) : own_group(number);
  }
  // Of the outputs of this rank's samples: of a replicated table it is the own part that they come from.
  std::span<const Segment> segments(int32_t number) const {
    if (!table(number).replicated) return table(number).segments;
    return {&own_replica_[static_cast<size_t>(number)], 1};
  }
  // Where the ids of a feature go.
  const FeatureRoute& route(int32_t feature) const {
    const FeatureRoute& own = own_routes_[static_cast<size_t>(feature)];
    return own.blocks.empty() ? common_->route(feature) : own;
  }
  // Parts of a rank, and the blocks of messages that concern its parts, both in canonical order.
  std::span<const int32_t> parts_of(int rank) const { return common_->parts_of(rank); }
  std::span<const Block> blocks_of(int rank) const { return common_->blocks_of(rank); }
  // Of those of all ranks, the number of its first one; of a rank behind the last, their number.
  size_t first_block_of(int rank) const { return common_->first_block_of(rank); }
  size_t block_count() const { return first_block_of(ranks()); }
  // Number of the block (part, k-th feature of its table) among the blocks of the part's owner.
  int32_t block_of(int32_t part, size_t k) const { return common_->block_of(part, k); }
  // Does the owner of a part send its partial sums to `source`? Replicas serve their own rank only.
  bool answers(const Part& part, int source) const {
    if (part.use == PartUse::kUpdates) return false;
    return part.replicated ? part.owner == source : same_group(part.owner, source);
  }
  // Does its owner take the steps of a part's rows?
  bool updates(const Part& part) const { return part.use != PartUse::kLookups; }
  // ... and tell `source` what its gradients are multiplied with (option WEIGHT_GRADIENT)?
  bool answers_products(const Part& part, int source) const {
    return part.use == PartUse::kUpdates || (updates(part) && answers(part, source));
  }
  // Are the states of a table's rows shared out to the groups?
  bool shares_states(int32_t number) const { return table(number).update_parts.count != 0; }
  // Is a part trained by the batches of all ranks?
  bool takes_from_all(const Part& part) const {
    return part.replicated || (groups().exact && updates(part));
  }
  // Is what a part's rows get of `source` counted among that of the part's ranks? Of a cut table that of the owner's sharding
  // group is, of a replicated one, and in exact groups, that of all ranks.
  bool takes_from(const Part& part, int source) const {
    return takes_from_all(part) || same_group(part.owner, source);
  }
  bool same_group(int rank, int other) const {
    return groups().group_of(rank) == groups().group_of(other);
  }
  // Do the sums of a block travel to `source` by way of its node's sums?
  bool goes_by_node(const Block& block, int source) const {
    const Part& part = parts()[static_cast<size_t>(block.part)];
    return part.summed_on_node && !block.sequence && node_of(part.owner) != node_of(source);
  }
  // Does the n-th node of a segment send its sum of a feature, not its parts theirs, to other
  // nodes?
  bool sums_segment(int32_t feature, const Segment& segment, size_t n) const;
  bool sums_on_nodes() const { return common_->sums_on_nodes(); }
  // In the topology of its sharding group.
  int32_t node_of(int rank) const { return plan().topology.node_of(groups().number_of(rank)); }
  // The rank of a node that adds up what the node has of the bags of `source`, a rank of another.
  int adder(int source, int32_t node) const;
  bool is_sequence(int32_t feature) const { return common_->is_sequence(feature); }
  int64_t dim_of(int32_t feature) const {
    const int32_t table = model().features[static_cast<size_t>(feature)].table;
    return model().tables[static_cast<size_t>(table)].dim;
  }
  // Width of an output: the pooled features side by side, or the rows of one sequence.
  int64_t width_of(int32_t out) const {
    return out == 0 ? output().width : dim_of(output().sequences[static_cast<size_t>(out) - 1]);
  }
  bool ids_are_64(int32_t table) const {
    return model().tables[static_cast<size_t>(table)].rows >= (int64_t{1} << 31);
  }

 private:
  PartRange own_part(int32_t replicated) const {
    return {table(replicated).parts[static_cast<size_t>(rank_)], 1};
  }
  PartRange own_group(int32_t cut) const {
    return table(cut).parts_of_group(groups().group_of(rank_), groups());
  }

  int rank_;
  std::shared_ptr<const CommonLayout> common_;
  std::vector<Segment> own_replica_;      // by table; of replicated ones
  std::vector<FeatureRoute> own_routes_;  // by feature; where the common layout has none
};

}  // namespace shardrec::embedding
