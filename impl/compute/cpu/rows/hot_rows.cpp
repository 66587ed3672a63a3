#include "compute/cpu/rows/hot_rows.h"

#include <algorithm>
#include <numeric>

#include "compute/cpu/tasks/shares.h"

namespace shardrec::compute::cpu {
namespace {

// Blocks that a thread sums at once.
constexpr int64_t kBlocks = 8;

}  // namespace

void HotRows::clear() {
  rows_.clear();
  runs_.clear();
}

int HotRows::add(const RowUpdate& job, int64_t u) {
  Row row{.job = job, .u = u, .first_run = runs_.size()};
  if (!rows_.empty()) {
    const Row& before = rows_.back();
    row.first_block = before.first_block + static_cast<size_t>(before.blocks);
    row.first_float = before.first_float + static_cast<size_t>(before.blocks * before.job.width);
  }
  const int64_t end = job.run[u + 1];
  for (int64_t o = job.run[u]; o < end; ++o) {
    const bool first = o == job.run[u];
    if (first || job.blocks[job.bags[o]] != job.blocks[job.bags[o - 1]]) runs_.push_back(o);
  }
  row.blocks = static_cast<int64_t>(runs_.size() - row.first_run);
  runs_.push_back(end);
  rows_.push_back(row);
  return static_cast<int>(rows_.size()) - 1;
}

void HotRows::sum(const Context& context) {
  if (rows_.empty()) return;
  const Row& last = rows_.back();
  const size_t blocks = last.first_block + static_cast<size_t>(last.blocks);
  float* const sums =
      sums_.resize_as<float>(last.first_float + static_cast<size_t>(last.blocks * last.job.width))
          .data();
  int64_t most_blocks = 0;
  size_t scratch_bytes = 0;
  gradients_.resize(blocks);
  one_row_.clear();
  tasks_.clear();
  for (size_t r = 0; r < rows_.size(); ++r) {
    Row& row = rows_[r];
    row.job.run = runs_.data() + row.first_run;
    scratch_bytes = std::max(scratch_bytes, row_update_scratch_bytes(row.job.width));
    most_blocks = std::max(most_blocks, row.blocks);
    one_row_.insert(one_row_.end(), {0, row.blocks});
    for (int64_t b = 0; b < row.blocks; ++b) {
      gradients_[row.first_block + static_cast<size_t>(b)] =
          sums + row.first_float + static_cast<size_t>(b * row.job.width);
    }
    for (int64_t b = 0; b < row.blocks; b += kBlocks) {
      tasks_.push_back({r, b, std::min(b + kBlocks, row.blocks)});
    }
  }
  numbers_.resize(static_cast<size_t>(most_blocks));
  std::iota(numbers_.begin(), numbers_.end(), 0U);
  for_each_with_scratch(std::ssize(tasks_), scratch_bytes, context,
                        [&](int64_t t, std::byte* scratch) {
                          const Task& task = tasks_[static_cast<size_t>(t)];
                          const Row& row = rows_[task.row];
                          context.kernels.row_gradients(row.job, sums + row.first_float, task.first,
                                                        task.last, scratch);
                        });
}

RowUpdate HotRows::job(int number, RowUpdate job) const {
  const Row& row = rows_[static_cast<size_t>(number)];
  job.rows += row.u;
  job.run = one_row_.data() + 2 * static_cast<size_t>(number);
  job.bags = numbers_.data();
  job.blocks = numbers_.data();
  job.gradients = gradients_.data() + row.first_block;
  job.weights = nullptr;
  job.gradient_scale = 1;
  job.block_start = RowUpdate::kUnchanged;
  return job;
}

}  // namespace shardrec::compute::cpu
