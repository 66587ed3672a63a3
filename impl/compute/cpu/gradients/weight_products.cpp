#include "compute/cpu/gradients/weight_products.h"

#include <algorithm>

#include "compute/cpu/tasks/shares.h"

namespace shardrec::compute::cpu {
namespace {

// Products of about so many numbers are one task.
constexpr int64_t kTaskElements = 32 << 10;

int64_t ids_per_task(const WeightProducts& block) {
  return std::max<int64_t>(1, kTaskElements / block.table.width);
}

// next: room for the position of the next id in each part.
void sum_feature(const WeightGradients& feature, int64_t* next) {
  if (feature.terms.empty()) {
    std::fill_n(feature.out, feature.ids, 0.0F);
    return;
  }
  std::fill_n(next, feature.parts.size(), int64_t{0});
  for (int64_t id = 0; id < feature.ids; ++id) {
    const int32_t interval = feature.intervals == nullptr ? 0 : feature.intervals[id];
    float sum = 0;
    if (interval != kDroppedId) {
      const auto i = static_cast<size_t>(interval);
      const auto first = static_cast<size_t>(feature.first_term[i]);
      const auto count = static_cast<size_t>(feature.first_term[i + 1]) - first;
      const auto terms = feature.terms.subspan(first, count);
      for (const ProductTerm& term : terms) {
        const ProductRows& part = feature.parts[static_cast<size_t>(term.part)];
        sum += part.rows[next[term.part] * part.ranges + term.range];
      }
      // Each part once, however many ranges it has.
      for (const ProductTerm& term : terms) {
        if (term.range == 0) ++next[term.part];
      }
    }
    feature.out[id] = sum;
  }
}

}  // namespace

void WeightProductTasks::run(std::span<const WeightProducts> blocks, const Context& context) {
  size_t offsets = 0;
  size_t most_tasks = 0;
  for (const WeightProducts& block : blocks) {
    offsets += static_cast<size_t>(block.bags->bags) + 1;
    most_tasks += static_cast<size_t>(block.bags->ids / ids_per_task(block)) + 1;
  }
  int64_t* offset = context.work.resize_as<int64_t>(offsets).data();
  tasks_.clear();
  core::reserve_with_slack(tasks_, most_tasks);
  for (const WeightProducts& block : blocks) {
    add_bags(block, offset);
    offset += block.bags->bags + 1;
  }
  for_each_task(tasks_.size(), context, [&](size_t t) { take(tasks_[t], context.kernels); });
}

void WeightProductTasks::add_bags(const WeightProducts& block, int64_t* offsets) {
  Task task{.block = &block, .offsets = offsets};
  const int64_t enough = ids_per_task(block);
  int64_t end = 0;
  int64_t task_ids = 0;
  offsets[0] = 0;
  for_each_bag(*block.bags, [&](int64_t bag, int64_t, uint32_t length) {
    end += length;
    offsets[bag + 1] = end;
    if (end - task_ids >= enough || bag + 1 == block.bags->bags) {
      task.last = bag + 1;
      tasks_.push_back(task);
      task.first = bag + 1;
      task_ids = end;
    }
  });
}

void WeightProductTasks::take(const Task& task, const Kernels& kernels) {
  const WeightProducts& block = *task.block;
  const size_t bytes = element_bytes(block.table.element);
  const size_t row_bytes = block.table.stride * bytes;
  const auto* table = static_cast<const std::byte*>(block.table.data);
  const auto* ids32 = static_cast<const int32_t*>(block.ids.data);
  const auto* ids64 = static_cast<const int64_t*>(block.ids.data);
  const auto row_of = [&](int64_t id) {
    const int64_t row = block.ids.is_64 ? ids64[id] : ids32[id];
    return table + static_cast<size_t>(row) * row_bytes;
  };
  const int64_t end = task.offsets[task.last];
  for (int64_t bag = task.first; bag < task.last; ++bag) {
    const float* gradient = block.gradients + bag * block.table.width;
    for (int64_t id = task.offsets[bag]; id < task.offsets[bag + 1]; ++id) {
      constexpr int64_t kAhead = 8;
      if (id + kAhead < end) __builtin_prefetch(row_of(id + kAhead));
      const std::byte* row = row_of(id);
      float* out = block.out + id * std::ssize(block.ranges);
      for (const ColumnRange& range : block.ranges) {
        *out++ = kernels.dot(row + static_cast<size_t>(range.begin) * bytes, block.table.element,
                             gradient + range.begin, range.end - range.begin);
      }
    }
  }
}

void sum_weight_products(std::span<const WeightGradients> features, const Context& context) {
  size_t most_parts = 0;
  for (const WeightGradients& feature : features) {
    most_parts = std::max(most_parts, feature.parts.size());
  }
  int64_t* next = context.work.resize_as<int64_t>(features.size() * most_parts).data();
  for_each_task(features.size(), context,
                [&](size_t f) { sum_feature(features[f], next + f * most_parts); });
}

}  // namespace shardrec::compute::cpu
