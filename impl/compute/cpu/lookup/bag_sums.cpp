#include "compute/cpu/lookup/bag_sums.h"

#include <algorithm>
#include <numeric>

#include "compute/cpu/tasks/shares.h"

namespace shardrec::compute::cpu {
namespace {

// A task reads about this many bytes of rows: long enough to hide its start, short enough to
// balance.
constexpr int64_t kTaskBytes = 128 << 10;

int64_t ids_per_task(int64_t width) {
  return std::max<int64_t>(64, kTaskBytes / (width * static_cast<int64_t>(sizeof(float))));
}

PooledLookup job_of(const BagSums& block, const int64_t* offsets) {
  return {.table = block.table.data,
          .element = block.table.element,
          .stride = block.table.stride,
          .width = block.table.width,
          .ids = block.ids,
          .weights = block.weights,
          .offsets = offsets,
          .out = block.out,
          .out_stride = static_cast<size_t>(block.table.width)};
}

void mark_present(const BagSums& block) {
  std::fill(block.present.begin(), block.present.end(), uint64_t{0});
  for_each_bag(*block.bags, [&](int64_t, int64_t sample, uint32_t) {
    block.present[static_cast<size_t>(sample / 64)] |= uint64_t{1} << (sample % 64);
  });
}

}  // namespace

void BagSummation::run(std::span<const BagSums> blocks, const Context& context) {
  size_t offsets = 0;
  size_t longest = 0;  // block without bags
  size_t most_tasks = 0;
  for (const BagSums& block : blocks) {
    const auto rows = static_cast<size_t>(block.rows);
    if (block.bags == nullptr) {
      longest = std::max(longest, rows + 1);
    } else {
      offsets += rows + 1;
    }
    const int64_t ids = block.bags == nullptr ? block.rows : block.bags->ids;
    most_tasks += static_cast<size_t>(ids / ids_per_task(block.table.width)) + 1;
  }
  int64_t* offset = context.work.resize_as<int64_t>(offsets + longest).data();
  // Bags of one id each, for all blocks without bags.
  const std::span<int64_t> count(offset + offsets, longest);
  std::iota(count.begin(), count.end(), int64_t{0});
  tasks_.clear();
  core::reserve_with_slack(tasks_, most_tasks);
  for (const BagSums& block : blocks) {
    if (!block.present.empty()) mark_present(block);
    if (block.bags == nullptr) {
      add_ids(block, count.data());
    } else {
      add_bags(block, offset);
      offset += block.rows + 1;
    }
  }
  for_each_task(tasks_.size(), context, [&](size_t t) {
    const Task& task = tasks_[t];
    context.kernels.pooled_lookup(task.job, task.first, task.last);
  });
}

// Cuts the bags of a block into tasks of about as many ids.
void BagSummation::add_bags(const BagSums& block, int64_t* offset) {
  Task task{.job = job_of(block, offset)};
  const int64_t enough = ids_per_task(block.table.width);
  int64_t end = 0;
  int64_t task_ids = 0;
  offset[0] = 0;
  for_each_bag(*block.bags, [&](int64_t bag, int64_t, uint32_t length) {
    end += length;
    offset[bag + 1] = end;
    if (end - task_ids >= enough) {
      task.last = bag + 1;
      tasks_.push_back(task);
      task.first = bag + 1;
      task_ids = end;
    }
  });
  if (task.first < block.rows) {
    task.last = block.rows;
    tasks_.push_back(task);
  }
}

void BagSummation::add_ids(const BagSums& block, const int64_t* count) {
  Task task{.job = job_of(block, count)};
  const int64_t enough = ids_per_task(block.table.width);
  for (; task.first < block.rows; task.first = task.last) {
    task.last = std::min(task.first + enough, block.rows);
    tasks_.push_back(task);
  }
}

}  // namespace shardrec::compute::cpu
