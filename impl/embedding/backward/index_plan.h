// Step 4 of the exchange: the occurrences of the rows of this rank's parts in one batch, grouped by
// row (compute/row_groups.h).
//
// It knows bags, not where their gradients lie: it is built while the gradients travel or, where the back end can
// do that beside its other operations, as soon as the ids are there.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compute/backend.h"
#include "compute/row_groups.h"
#include "embedding/exchange/inbox.h"
#include "embedding/tables/layout.h"

namespace shardrec::embedding {

class IndexPlan {
 public:
  // Of the rank's own parts, in the order of Layout::parts_of().
  IndexPlan(const Layout& layout, compute::Backend& backend);

  // The batch has arrived. True: its plan may be built beside operations that are called from now on.
  [[nodiscard]] bool fork() { return groups_->fork(); }
  // Of the batch in the inbox, unless it was built so. wanted: by part, does it take part? Throws UNSUPPORTED for
  // 2^32 ids of a part and more.
  void build(const Inbox& inbox, std::span<const uint8_t> wanted);
  // Before operations that read the plan.
  void join() { groups_->join(); }
  // The batch is over: operations from now on may write where its ids are.
  void end() noexcept;
  // As RowGroups says: how many rows a part has at most, how many in the memory of the back end, and whether
  // the host knows without a wait.
  int64_t most_rows(size_t part) const { return groups_->most_rows(part); }
  const int64_t* row_count(size_t part) const { return groups_->row_count(part); }
  bool counted() const { return groups_->counted(); }
  // These wait where it does not.
  std::span<const int64_t> rows(size_t part) const { return groups_->rows(part); }  // ascending
  std::span<const int64_t> run(size_t part) const { return groups_->run(part); }    // [rows + 1]
  // Of a part: its bags that are not empty (of a sequence, its ids) are numbered feature after
  // feature, source after source, in the order of the batch.
  int64_t bags(size_t part) const { return bags_[part]; }
  // Fills in the fields of a job that say which bags go to which row, and the block of each bag.
  void describe(size_t part, compute::RowUpdate& job) const { groups_->describe(part, job); }

 private:
  const Layout& layout_;
  std::unique_ptr<compute::RowGroups> groups_;
  bool is_built_ = false;           // of the batch that has arrived,
  std::vector<uint8_t> built_for_;  // with these parts, as build() was told
  std::vector<int64_t> bags_;       // by part
  std::vector<compute::GroupedBlock> blocks_;
  std::vector<compute::GroupedPart> parts_;
};

}  // namespace shardrec::embedding
