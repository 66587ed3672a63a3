#include "compute/cuda/host/rows/row_updates.h"

#include <algorithm>
#include <utility>

#include "compute/cuda/host/launch_list.h"
#include "compute/cuda/host/optimizer_steps.h"
#include "compute/cuda/host/vectors.h"

namespace shardrec::compute::cuda::host {
namespace {

constexpr int64_t kMapColumns = 4;  // that share random words
constexpr int64_t kMostHotRows = 4096;
constexpr int64_t kSumsOfARow = 64;  // room for so many, where rows are few
constexpr size_t kMostHotBytes = size_t{64} << 20;
constexpr size_t kCounts = 2;  // of hot rows, and of their sums

std::span<const ColumnMap> maps_of(const RowUpdate& job) {
  return {job.column_map, static_cast<size_t>(job.column_maps)};
}

// Nothing that changes from step to step where no number is random.
shardrec_cuda_rounding rounding_of(const RowUpdate& job, math::RoundingUse use) {
  if (job.element == Element::kFloat32 || !job.rounding.stochastic) return {};
  const math::PhiloxKey key = math::rounding_key(job.rounding, use);
  return {.stochastic = job.rounding.stochastic,
          .key = {key[0], key[1]},
          .step = static_cast<uint32_t>(job.rounding.step),
          .first_row = job.first_row,
          .map_count = job.column_maps};
}

// May a kernel load 16 bytes of these columns at once?
bool takes_vectors(const RowUpdate& job, ColumnRange range) {
  const int64_t columns = range.end - range.begin;
  const auto* const table = static_cast<const std::byte*>(job.table) +
                            static_cast<size_t>(range.begin) * element_bytes(job.element);
  bool vectors = static_cast<size_t>(range.begin) * sizeof(float) % kVectorBytes == 0 &&
                 in_vectors(table, job.stride, columns, job.element);
  for (int m = 0; m < state_needs(job.step.kind).matrices; ++m) {
    vectors = vectors && in_vectors(job.matrices[m], static_cast<size_t>(job.width), columns,
                                    Element::kFloat32);
  }
  if (job.element != Element::kFloat32 && job.rounding.stochastic) {
    for (const ColumnMap& map : maps_of(job)) {
      vectors = vectors && map.offset % kMapColumns == 0 && map.column % kMapColumns == 0;
    }
  }
  return vectors;
}

}  // namespace

RowUpdates::RowUpdates(std::shared_ptr<Stream> stream)
    : stream_(std::move(stream)),
      opened_(stream_),
      gradient_rows_(stream_),
      found_(make_memory(stream_)),
      hot_sums_(make_memory(stream_)),
      guard_(stream_),
      launches_(stream_),
      norms_(make_memory(stream_)) {}

void RowUpdates::open(std::span<const TouchedRows> shards) {
  shards_.assign(shards.begin(), shards.end());
  guard_.open(shards);
  touched_.clear();
  first_block_.assign(1, 0);
  for (const TouchedRows& shard : shards_) {
    const RowUpdate& job = shard.job;
    const bool located_before = shard.rows != 0 && shard.located.empty();
    const int64_t bags = located_before ? shard.bags : 0;
    touched_.push_back({.rows = job.rows,
                        .run = job.run,
                        .bags = job.bags,
                        .weights = job.weights,
                        .gradients = job.gradients,
                        .blocks = job.blocks,
                        .count = shard.rows,
                        .there = guard_.there(touched_.size(), shard.counted),
                        .bag_count = bags,
                        .width = job.width,
                        .gradient_scale = job.gradient_scale,
                        .block_start = job.block_start,
                        .changed = shard.changed});
    const int64_t threads = std::max(shard.rows, bags);
    first_block_.push_back(first_block_.back() + (threads + kThreads - 1) / kThreads);
  }
  const bool locates =
      std::ranges::any_of(shards, [](const TouchedRows& shard) { return !shard.located.empty(); });
  if (first_block_.back() == 0 && !locates) return;
  uint32_t* const unaligned = make_room();
  gradient_rows_.list(shards, unaligned);
  enqueue_opening();
}

// For what is found: two counts and a word per shard, which begin as zeros, the list of hot rows, that of
// their sums, and the index of the hot row for each row. Returns the words of the shards.
uint32_t* RowUpdates::make_room() {
  const int64_t rows = count_rows();
  const int64_t stride = (widest_ + 3) / 4 * 4;
  const auto places = static_cast<int64_t>(kMostHotBytes / sizeof(float)) / stride;
  most_hot_sums_ = static_cast<uint32_t>(std::min(most_sums_, places));
  most_hot_rows_ = static_cast<uint32_t>(std::min({rows, kMostHotRows, int64_t{most_hot_sums_}}));

  const size_t words = touched_.size() + kCounts;
  const size_t zeros = Arguments::bytes_of<uint32_t>(words);
  const size_t list = Arguments::bytes_of<shardrec_cuda_hot_row>(most_hot_rows_);
  const size_t of_sums = Arguments::bytes_of<int32_t>(most_hot_sums_);
  std::byte* const found =
      found_.resize(zeros + list + of_sums + static_cast<size_t>(rows) * sizeof(int32_t));
  auto* const unaligned = static_cast<uint32_t*>(static_cast<void*>(found)) + kCounts;
  hot_rows_ = static_cast<shardrec_cuda_hot_row*>(static_cast<void*>(found + zeros));
  row_of_sum_ = static_cast<int32_t*>(static_cast<void*>(found + zeros + list));
  auto* indices = static_cast<int32_t*>(static_cast<void*>(found + zeros + list + of_sums));
  float* const sums =
      hot_sums_.resize_as<float>(most_hot_sums_ * static_cast<size_t>(stride)).data();
  for (size_t s = 0; s < touched_.size(); ++s) {
    touched_[s].hot_row = indices;
    touched_[s].hot_rows = hot_rows_;
    touched_[s].hot_sums = sums;
    touched_[s].hot_stride = stride;
    touched_[s].unaligned = unaligned + s;
    indices += touched_[s].count;
  }
  require(table().fill(stream_->handle(), found, 0, zeros), "open touched rows on device ",
          stream_->device());
  return unaligned;
}

// All rows, and how many sums hot ones can have. Where the host knows the most rows only, these are as
// many as there are occurrences.
int64_t RowUpdates::count_rows() {
  int64_t rows = 0;
  widest_ = 1;
  most_sums_ = 0;
  for (const TouchedRows& shard : shards_) {
    if (shard.rows == 0) continue;
    rows += shard.rows;
    widest_ = std::max(widest_, shard.job.width);
    if (shard.counted == nullptr) {
      most_sums_ += shard.rows * kSumsOfARow;
    } else if (shard.rows > SHARDREC_CUDA_HOT_OCCURRENCES) {
      most_sums_ += shard.rows / SHARDREC_CUDA_OCCURRENCES_OF_A_SUM;
    }
  }
  return rows;
}

void RowUpdates::enqueue_opening() {
  opened_.begin(gradient_rows_.bytes() +
                Arguments::bytes_of<shardrec_cuda_touched_rows>(touched_.size()) +
                Arguments::bytes_of<int64_t>(first_block_.size()));
  auto* const counts = static_cast<uint32_t*>(static_cast<void*>(found_.data()));
  const shardrec_cuda_row_opening opening{
      .located = gradient_rows_.add_to(opened_),
      .shards = opened_.add(std::span<const shardrec_cuda_touched_rows>(touched_)),
      .first_block = opened_.add(std::span<const int64_t>(first_block_)),
      .count = static_cast<int32_t>(touched_.size()),
      .blocks = first_block_.back(),
      .widest = widest_,
      .hot_rows = hot_rows_,
      .row_of_sum = row_of_sum_,
      .most_hot_rows = most_hot_rows_,
      .most_hot_sums = most_hot_sums_,
      .hot_count = counts,
      .hot_sum_count = counts + 1};
  opened_.send();
  require(table().open_rows(stream_->handle(), &opening), "open touched rows on device ",
          stream_->device());
}

void RowUpdates::gradients(std::span<float* const> out) {
  launches_.clear();
  for (size_t s = 0; s < shards_.size(); ++s) {
    if (out[s] == nullptr) continue;
    const int64_t width = shards_[s].job.width;
    const bool vectors = in_vectors(out[s], static_cast<size_t>(width), width, Element::kFloat32);
    const shardrec_cuda_row_job job{.touched = touched_[s],
                                    .columns = static_cast<int32_t>(width),
                                    .out = out[s],
                                    .out_stride = width};
    launches_.add({.operation = SHARDREC_CUDA_ROW_GRADIENTS, .vectors = vectors}, job, {});
  }
  launches_.run();
}

shardrec_cuda_row_job RowUpdates::job_of(size_t shard, ColumnRange range,
                                         math::RoundingUse use) const {
  const RowUpdate& from = shards_[shard].job;
  shardrec_cuda_row_job job{.touched = touched_[shard],
                            .first_column = static_cast<int32_t>(range.begin),
                            .columns = static_cast<int32_t>(range.end - range.begin),
                            .table = static_cast<std::byte*>(from.table) +
                                     static_cast<size_t>(range.begin) * element_bytes(from.element),
                            .stride = static_cast<int64_t>(from.stride),
                            .sum_columns = static_cast<float>(range.end - range.begin),
                            .element = static_cast<int32_t>(from.element),
                            .step = on_device(from.step),
                            .rounding = rounding_of(from, use)};
  for (int m = 0; m < state_needs(from.step.kind).matrices; ++m) {
    job.matrices[m] = from.matrices[m] + range.begin;
  }
  return job;
}

void RowUpdates::add(size_t shard, int32_t operation, ColumnRange range,
                     const shardrec_cuda_row_job& job) {
  const RowUpdate& from = shards_[shard].job;
  const bool vectors = takes_vectors(from, range);
  const bool updates = operation == SHARDREC_CUDA_ROW_UPDATE;
  launches_.add({.operation = operation,
                 .optimizer = updates ? static_cast<int32_t>(from.step.kind) : 0,
                 .element = vectors ? static_cast<int32_t>(from.element) : 0,
                 .vectors = vectors},
                job, maps_of(from));
}

void RowUpdates::sums(std::span<const RowSums> shards) {
  launches_.clear();
  for (size_t s = 0; s < shards.size(); ++s) {
    const StateNeeds needs = state_needs(shards_[s].job.step.kind);
    if (shards[s].out == nullptr || needs.sums == 0) continue;
    const auto ranges = shards[s].ranges;
    for (size_t r = 0; r < ranges.size(); ++r) {
      shardrec_cuda_row_job job = job_of(s, ranges[r], math::RoundingUse::kStep);
      job.out = shards[s].out + r * static_cast<size_t>(needs.sums);
      job.out_stride = std::ssize(ranges) * needs.sums;
      add(s, SHARDREC_CUDA_ROW_UPDATE, ranges[r], job);
    }
  }
  launches_.run();
}

void RowUpdates::update(std::span<const RowStep> shards) {
  float* norms = room_for_norms(shards);
  guard_.begin_update();
  launches_.clear();
  for (size_t s = 0; s < shards.size(); ++s) {
    const RowUpdate& from = shards_[s].job;
    if (shards_[s].rows == 0) continue;  // it may have no states
    add_steps(s, shards[s]);
    if (!shards[s].rescales) continue;
    for (int r = 0; r < from.statistics; ++r) {
      shardrec_cuda_row_job job = job_of(s, from.columns[r], math::RoundingUse::kMaxNorm);
      job.out = norms + r;
      job.out_stride = from.statistics;
      add(s, SHARDREC_CUDA_ROW_NORMS, from.columns[r], job);
      job.out = nullptr;
      job.sums = norms + r;
      job.sums_stride = from.statistics;
      add(s, SHARDREC_CUDA_ROW_RESCALE, from.columns[r], job);
    }
    norms += shards_[s].rows * from.statistics;
  }
  launches_.run();
}

float* RowUpdates::room_for_norms(std::span<const RowStep> shards) {
  int64_t floats = 0;
  for (size_t s = 0; s < shards.size(); ++s) {
    if (shards[s].rescales) floats += shards_[s].rows * shards_[s].job.statistics;
  }
  return norms_.resize_as<float>(static_cast<size_t>(floats)).data();
}

void RowUpdates::add_steps(size_t shard, const RowStep& step) {
  const RowUpdate& from = shards_[shard].job;
  const StateNeeds needs = state_needs(from.step.kind);
  const auto add_range = [&](ColumnRange range, int statistic) {
    shardrec_cuda_row_job job = job_of(shard, range, math::RoundingUse::kStep);
    if (needs.row_values != 0) job.state = from.state[statistic];
    if (needs.sums != 0 && step.sums != nullptr) {
      job.sums = step.sums;
      job.sums_stride = needs.sums;
      job.sum_columns = static_cast<float>(step.statistic_columns);
    }
    add(shard, SHARDREC_CUDA_ROW_UPDATE, range, job);
  };
  if (needs.sums == 0 || step.sums != nullptr) {
    add_range({0, from.width}, 0);
    return;
  }
  for (int s = 0; s < from.statistics; ++s) add_range(from.columns[s], s);
}

void RowUpdates::norms(std::span<const RowSums> shards) {
  launches_.clear();
  for (size_t s = 0; s < shards.size(); ++s) {
    if (shards[s].out == nullptr) continue;
    const auto ranges = shards[s].ranges;
    for (size_t r = 0; r < ranges.size(); ++r) {
      shardrec_cuda_row_job job = job_of(s, ranges[r], math::RoundingUse::kMaxNorm);
      job.out = shards[s].out + r;
      job.out_stride = std::ssize(ranges);
      add(s, SHARDREC_CUDA_ROW_NORMS, ranges[r], job);
    }
  }
  launches_.run();
}

void RowUpdates::rescale(std::span<const float* const> norms) {
  launches_.clear();
  for (size_t s = 0; s < norms.size(); ++s) {
    if (norms[s] == nullptr) continue;
    const ColumnRange row{0, shards_[s].job.width};
    shardrec_cuda_row_job job = job_of(s, row, math::RoundingUse::kMaxNorm);
    job.sums = norms[s];
    job.sums_stride = 1;
    add(s, SHARDREC_CUDA_ROW_RESCALE, row, job);
  }
  launches_.run();
}

}  // namespace shardrec::compute::cuda::host
