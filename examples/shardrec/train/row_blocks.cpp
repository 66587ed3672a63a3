// Blocks that come back when the last of those who share them lets go.
#include "train/row_blocks.h"

#include <utility>

namespace shardrec::cli {

std::shared_ptr<RowBlock> RowBlocks::take() {
  std::unique_ptr<RowBlock> block;
  {
    const std::scoped_lock lock(mutex_);
    if (free_.empty()) {
      block = std::make_unique<RowBlock>();
      free_.reserve(++blocks_);
    } else {
      block = std::move(free_.back());
      free_.pop_back();
    }
  }
  return {block.release(),
          [this](RowBlock* shared) { give_back(std::unique_ptr<RowBlock>(shared)); }};
}

void RowBlocks::give_back(std::unique_ptr<RowBlock> block) noexcept {
  block->rows.clear();
  block->order.clear();
  block->error = nullptr;
  block->complete = false;
  const std::scoped_lock lock(mutex_);
  free_.push_back(std::move(block));
}

}  // namespace shardrec::cli
