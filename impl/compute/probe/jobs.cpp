#include "compute/probe/jobs.h"

#include <algorithm>
#include <numeric>

#include "compute/probe/kernels.h"
#include "core/align.h"
#include "core/memory.h"

namespace shardrec::compute::probe {
namespace {

constexpr size_t kBatch = 4096;  // gradients
constexpr auto kMostColumns = static_cast<size_t>(kProbeRowBytes.back()) / sizeof(float);

size_t lane_bytes() {
  return core::align_up(row_update_scratch_bytes(static_cast<int64_t>(kMostColumns)), 64);
}

}  // namespace

ProbeJobs::ProbeJobs(int64_t most_rows, int64_t threads) : rows_(kBatch) {
  const auto rows = static_cast<size_t>(most_rows);
  numbers_ = number_memory_.resize_as<int64_t>(rows + 1);
  offsets_ = offset_memory_.resize_as<int64_t>(rows + 1);
  bags_ = bag_memory_.resize_as<uint32_t>(rows);
  blocks_ = block_memory_.resize_as<uint32_t>(kBatch);
  gradients_ = gradient_memory_.resize_as<float>(kBatch * kMostColumns);
  scratch_.resize(lane_bytes() * static_cast<size_t>(threads));
  std::iota(numbers_.begin(), numbers_.end(), 0);
  std::fill(offsets_.begin(), offsets_.end(), 0);  // lookup() asks what they are
  std::fill(blocks_.begin(), blocks_.end(), 0U);
  std::fill(gradients_.begin(), gradients_.end(), 0.01F);
  uint32_t random = 1;
  for (uint32_t& bag : bags_) {
    random = random * 1664525U + 1013904223U;  // as in Numerical Recipes; its upper half is random
    bag = (random >> 16) % kBatch;
  }
}

PooledLookup ProbeJobs::lookup(const float* table, int64_t row_bytes, const int64_t* ids,
                               int64_t bag_length, float* out, const Prefetch& way) {
  if (bag_length > 1 && offsets_[1] != bag_length) {
    for (size_t i = 0; i < offsets_.size(); ++i) {
      offsets_[i] = static_cast<int64_t>(i) * bag_length;
    }
  }
  const int64_t columns = row_bytes / static_cast<int64_t>(sizeof(float));
  return {.table = table,
          .stride = static_cast<size_t>(columns),
          .width = columns,
          .ids = {.data = ids, .is_64 = true},
          .offsets = bag_length > 1 ? offsets_.data() : numbers_.data(),
          .out = out,
          .out_stride = static_cast<size_t>(columns),
          .prefetch = &way};
}

RowUpdate ProbeJobs::update(float* table, float* state, int64_t row_bytes, const int64_t* rows,
                            const Prefetch& way) {
  const int64_t columns = row_bytes / static_cast<int64_t>(sizeof(float));
  for (size_t bag = 0; bag < kBatch; ++bag) {
    rows_[bag] = gradients_.data() + bag * static_cast<size_t>(columns);
  }
  state_ = state;
  columns_ = {0, columns};
  return {.table = table,
          .stride = static_cast<size_t>(columns),
          .width = columns,
          .rows = rows,
          .run = numbers_.data(),
          .bags = bags_.data(),
          .gradients = rows_.data(),
          .blocks = blocks_.data(),
          .step = {.kind = OptimizerKind::kRowwiseAdagrad, .learning_rate = 0.01F, .eps = 1e-8F},
          .state = &state_,
          .columns = &columns_,
          .statistics = 1,
          .prefetch = &way};
}

std::byte* ProbeJobs::scratch(int64_t thread) {
  return scratch_.data() + lane_bytes() * static_cast<size_t>(thread);
}

}  // namespace shardrec::compute::probe
