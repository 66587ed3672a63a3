#include "compute/cpu/rows/row_updates.h"

#include <algorithm>

#include "compute/cpu/gradients/gradient_rows.h"
#include "compute/cpu/tasks/shares.h"
#include "compute/probe/machine.h"
#include "compute/profile/memory_profile.h"

namespace shardrec::compute::cpu {
namespace {

// Pieces of about this many occurrences: cut at rows, so a row's sum is never split.
constexpr int64_t kPieceOccurrences = 4096;
// Of gradients in a step: beyond them, or what the last cache holds, they come from memory.
constexpr int64_t kLeastFarBytes = int64_t{16} << 20;

int64_t occurrences_of(const TouchedRows& shard) {
  return shard.rows == 0 ? 0 : shard.job.run[shard.rows];
}

}  // namespace

RowUpdates::RowUpdates()
    : far_bytes_(static_cast<size_t>(std::max(this_machine().l3_bytes, kLeastFarBytes))) {}

void RowUpdates::open(std::span<const TouchedRows> shards, const Context& context) {
  shards_.assign(shards.begin(), shards.end());
  scratch_bytes_ = 0;
  size_t gradient_bytes = 0;
  located_.clear();
  for (const TouchedRows& shard : shards_) {
    located_.insert(located_.end(), shard.located.begin(), shard.located.end());
    scratch_bytes_ = std::max(scratch_bytes_, row_update_scratch_bytes(shard.job.width));
    gradient_bytes += static_cast<size_t>(shard.bags * shard.job.width) * sizeof(float);
  }
  for (TouchedRows& shard : shards_) shard.job.far_gradients = gradient_bytes > far_bytes_;
  locate_gradients(located_, context);
  cut(context);
}

void RowUpdates::cut(const Context& context) {
  pieces_.clear();
  hot_.clear();
  size_t most_pieces = 0;
  for (const TouchedRows& shard : shards_) {
    const int64_t occurrences = occurrences_of(shard);
    most_pieces += static_cast<size_t>(occurrences / kPieceOccurrences) + 1;
    most_pieces += static_cast<size_t>(occurrences / kHotOccurrences);
  }
  core::reserve_with_slack(pieces_, most_pieces);
  for (size_t s = 0; s < shards_.size(); ++s) {
    const int64_t* run = shards_[s].job.run;
    const int64_t unique = shards_[s].rows;
    for (int64_t first = 0; first < unique;) {
      const int64_t goal = run[first] + kPieceOccurrences;
      const int64_t last = std::lower_bound(run + first + 1, run + unique, goal) - run;
      add_pieces(s, first, last);
      first = last;
    }
  }
  hot_.sum(context);
}

// Only the last row of a piece can be a hot one.
void RowUpdates::add_pieces(size_t shard, int64_t first, int64_t last) {
  const RowUpdate& job = shards_[shard].job;
  if (job.run[last] - job.run[last - 1] <= kHotOccurrences) {
    pieces_.push_back({shard, first, last});
    return;
  }
  if (first < last - 1) pieces_.push_back({shard, first, last - 1});
  pieces_.push_back({shard, last - 1, last, hot_.add(job, last - 1)});
}

RowUpdates::Share RowUpdates::share_of(const Piece& piece) const {
  const RowUpdate& job = shards_[piece.shard].job;
  if (piece.hot < 0) return {job, piece.first, piece.last, 0};
  return {hot_.job(piece.hot, job), 0, 1, piece.first};
}

// Calls body(shard, share, scratch) for every piece, with the scratch of a kernel call.
template <class Body>
void RowUpdates::for_each_piece(const Context& context, Body body) {
  for_each_with_scratch(std::ssize(pieces_), scratch_bytes_, context,
                        [&](int64_t p, std::byte* scratch) {
                          const Piece& piece = pieces_[static_cast<size_t>(p)];
                          body(piece.shard, share_of(piece), scratch);
                        });
}

void RowUpdates::gradients(std::span<float* const> out, const Context& context) {
  for_each_piece(context, [&](size_t shard, const Share& share, std::byte* scratch) {
    if (out[shard] == nullptr) return;
    context.kernels.row_gradients(share.job, out[shard] + share.base * share.job.width, share.first,
                                  share.last, scratch);
  });
}

void RowUpdates::sums(std::span<const RowSums> shards, const Context& context) {
  for_each_piece(context, [&](size_t shard, const Share& share, std::byte* scratch) {
    const RowSums& sums = shards[shard];
    if (sums.out == nullptr) return;
    const int64_t floats = std::ssize(sums.ranges) * state_needs(share.job.step.kind).sums;
    context.kernels.row_sums(share.job, sums.ranges.data(), static_cast<int>(sums.ranges.size()),
                             sums.out + share.base * floats, share.first, share.last, scratch);
  });
}

void RowUpdates::update(std::span<const RowStep> shards, const Context& context) {
  size_t floats = 0;
  const auto norms_of = [&](size_t shard) {
    const TouchedRows& own = shards_[shard];
    return shards[shard].rescales ? static_cast<size_t>(own.rows * own.job.statistics) : 0;
  };
  for (size_t s = 0; s < shards.size(); ++s) floats += norms_of(s);
  float* at = norms_memory_.resize_as<float>(floats).data();
  norms_.resize(shards.size());
  for (size_t s = 0; s < shards.size(); ++s) {
    norms_[s] = at;
    at += norms_of(s);
  }
  for_each_piece(context, [&](size_t shard, Share share, std::byte* scratch) {
    RowUpdate& job = share.job;
    if (RowWord* const changed = shards_[shard].changed; changed != nullptr) {
      set_row_bits(changed, job.rows + share.first, share.last - share.first);
    }
    if (shards[shard].sums != nullptr) {
      job.sums = shards[shard].sums + share.base * state_needs(job.step.kind).sums;
      job.statistic_columns = shards[shard].statistic_columns;
    }
    context.kernels.row_update(job, share.first, share.last, scratch);
    if (!shards[shard].rescales) return;
    float* const norms = norms_[shard] + share.base * job.statistics;
    context.kernels.row_norms(job, job.columns, job.statistics, norms, share.first, share.last,
                              scratch);
    context.kernels.row_rescale(job, job.columns, job.statistics, norms, share.first, share.last,
                                scratch);
  });
}

void RowUpdates::norms(std::span<const RowSums> shards, const Context& context) {
  for_each_piece(context, [&](size_t shard, const Share& share, std::byte* scratch) {
    const RowSums& sums = shards[shard];
    if (sums.out == nullptr) return;
    context.kernels.row_norms(share.job, sums.ranges.data(), static_cast<int>(sums.ranges.size()),
                              sums.out + share.base * std::ssize(sums.ranges), share.first,
                              share.last, scratch);
  });
}

void RowUpdates::rescale(std::span<const float* const> norms, const Context& context) {
  for_each_piece(context, [&](size_t shard, const Share& share, std::byte* scratch) {
    if (norms[shard] == nullptr) return;
    const ColumnRange row{0, share.job.width};
    context.kernels.row_rescale(share.job, &row, 1, norms[shard] + share.base, share.first,
                                share.last, scratch);
  });
}

}  // namespace shardrec::compute::cpu
