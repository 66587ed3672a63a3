#include "compute/cpu/gradients/kept_gradients.h"

#include <algorithm>
#include <numeric>

namespace shardrec::compute::cpu {

namespace {

constexpr int64_t kGrainFloats = 16384;

}  // namespace

void IndexedGradients::add(std::span<const int64_t> rows, const float* gradients) {
  const size_t old = rows_.size();
  size_t fresh = 0;  // rows that are not here yet
  auto known = rows_.begin();
  for (const int64_t row : rows) {
    known = std::lower_bound(known, rows_.end(), row);
    fresh += known == rows_.end() || *known != row ? 1 : 0;
  }
  if (adds_ == pool_.size()) pool_.emplace_back(context_.memory);
  float* at = pool_[adds_].resize_as<float>(fresh * static_cast<size_t>(width_)).data();
  core::reserve_with_slack(merged_rows_, old + fresh);
  core::reserve_with_slack(merged_entries_, old + fresh);
  core::reserve_with_slack(targets_, rows.size());
  core::reserve_with_slack(gradients_, old + fresh);
  ++adds_;

  merged_rows_.clear();
  merged_entries_.clear();
  targets_.clear();
  size_t taken = 0;
  const auto keep_until = [&](int64_t row) {
    for (; taken < old && rows_[taken] < row; ++taken) {
      merged_rows_.push_back(rows_[taken]);
      merged_entries_.push_back(entries_[taken]);
    }
  };
  for (const int64_t row : rows) {
    keep_until(row);
    auto entry = static_cast<uint32_t>(gradients_.size());
    if (taken < old && rows_[taken] == row) {
      entry = entries_[taken++];
    } else {
      gradients_.push_back(at);
      at += width_;
    }
    merged_rows_.push_back(row);
    merged_entries_.push_back(entry);
    targets_.push_back(entry);
  }
  keep_until(INT64_MAX);
  rows_.swap(merged_rows_);
  entries_.swap(merged_entries_);

  const int64_t grain = std::max<int64_t>(1, kGrainFloats / width_);
  context_.threads.parallel_for(std::ssize(rows), grain, [&](int64_t first, int64_t last) {
    for (int64_t u = first; u < last; ++u) {
      const uint32_t entry = targets_[static_cast<size_t>(u)];
      const float* gradient = gradients + u * width_;
      if (entry < old) {
        context_.kernels.add(gradient, gradients_[entry], width_);
      } else {
        std::copy_n(gradient, width_, gradients_[entry]);
      }
    }
  });
}

void IndexedGradients::clear() noexcept {
  rows_.clear();
  entries_.clear();
  gradients_.clear();
  adds_ = 0;
}

void IndexedGradients::finish() {
  core::reserve_with_slack(run_, rows_.size() + 1);
  core::reserve_with_slack(blocks_, rows_.size());
  run_.resize(rows_.size() + 1);
  std::iota(run_.begin(), run_.end(), int64_t{0});
  blocks_.assign(rows_.size(), 0);
}

void IndexedGradients::describe(RowUpdate& job) const {
  job.rows = rows_.data();
  job.run = run_.data();
  job.bags = entries_.data();
  job.weights = nullptr;
  job.gradients = gradients_.data();
  job.blocks = blocks_.data();
  job.block_start = RowUpdate::kUnchanged;
}

}  // namespace shardrec::compute::cpu
