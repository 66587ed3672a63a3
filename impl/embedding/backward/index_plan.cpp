#include "embedding/backward/index_plan.h"

#include <algorithm>

#include "core/error.h"
#include "core/memory.h"

namespace shardrec::embedding {

IndexPlan::IndexPlan(const Layout& layout, compute::Backend& backend)
    : layout_(layout),
      groups_(backend.rows().make_row_groups()),
      bags_(layout.parts_of(layout.rank()).size()) {
  parts_.reserve(bags_.size());
  built_for_.reserve(bags_.size());
}

void IndexPlan::end() noexcept {
  is_built_ = false;
  try {
    join();
  } catch (...) {  // the device has failed: no operation takes place any more
    return;
  }
}

void IndexPlan::build(const Inbox& inbox, std::span<const uint8_t> wanted) {
  if (is_built_ && std::ranges::equal(built_for_, wanted)) return;
  is_built_ = false;
  blocks_.clear();
  parts_.clear();
  core::reserve_with_slack(blocks_, inbox.blocks_with_ids());  // the parts keep spans of it
  const auto own_blocks = layout_.blocks_of(layout_.rank());
  size_t block = 0;
  for (size_t p = 0; p < bags_.size(); ++p) {
    const int32_t part = layout_.parts_of(layout_.rank())[p];
    const size_t first_block = block;
    const size_t first = blocks_.size();
    int64_t ids = 0;
    int64_t bags = 0;
    for (; block < own_blocks.size() && own_blocks[block].part == part; ++block) {
      for (int source = 0; source < layout_.ranks(); ++source) {
        const ReceivedBlock& received = inbox.blocks(source)[block];
        if (received.ids == 0) continue;
        ids += received.ids;
        bags += received.rows;
        blocks_.push_back({.bags = &received,
                           .ids = received.id_data,
                           .weights = received.weights,
                           .first_sample = received.first_sample,
                           .feature = block - first_block,
                           .sequence = own_blocks[block].sequence});
      }
    }
    if (wanted[p] != 0 && ids >= compute::RowGroups::kMostIds) {
      core::fail(
          SHARDREC_UNSUPPORTED,
          core::sentence("a step has ", ids, " ids of one box, at most ",
                         compute::RowGroups::kMostIds - 1, " are supported: use smaller batches"));
    }
    bags_[p] = wanted[p] != 0 ? bags : 0;
    parts_.push_back({.rows = layout_.parts()[static_cast<size_t>(part)].rows, .blocks = {}});
    if (wanted[p] != 0) {
      parts_.back().blocks = {blocks_.begin() + static_cast<ptrdiff_t>(first), blocks_.end()};
    }
  }
  groups_->build(parts_, inbox.weighted(), inbox.most_samples());
  built_for_.assign(wanted.begin(), wanted.end());
  is_built_ = true;
}

}  // namespace shardrec::embedding
