#include "dense/device/gradients.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "dense/extents.h"

static_assert(shardrec::dense::kBlockElements == SHARDREC_CUDA_NORM_BLOCK);

namespace shardrec::dense::device {

namespace host = compute::cuda::host;

Gradients::Gradients(std::shared_ptr<Stream> stream)
    : stream_(std::move(stream)), results_(stream_) {}

void Gradients::add(const core::FlatView& gradient) {
  const auto dtype = static_cast<shardrec_dtype>(gradient.dtype);
  auto of = std::find_if(dtypes_.begin(), dtypes_.end(),
                         [&](const auto& known) { return known->dtype == dtype; });
  if (of == dtypes_.end()) {
    of = dtypes_.insert(of, std::make_unique<OfDtype>(stream_, dtype));
  }
  constexpr int64_t kTile = SHARDREC_CUDA_BUCKET_TILE;
  shardrec_cuda_gradient job{
      .elements = gradient.data, .count = gradient.size, .first_result = block_count_};
  (*of)->blocks.add(job, Extents::blocks_of(gradient.size));
  job.first_result = count_;
  (*of)->tiles.add(job, (gradient.size + kTile - 1) / kTile);
  (*of)->gradients.push_back(gradient);
  block_count_ += Extents::blocks_of(gradient.size);
  ++count_;
}

shardrec_cuda_gradient_list Gradients::send(OfDtype& of,
                                            host::LaunchList<shardrec_cuda_gradient>& list) {
  of.lists.begin(list.bytes());
  list.send(of.lists);
  of.lists.send();
  return {.gradients = list.jobs_there(),
          .first_unit = list.first_unit_there(),
          .count = list.count(),
          .element = element_of(of.dtype),
          .units = list.units()};
}

std::span<const double> Gradients::norm_blocks(double scale, bool largest) {
  if (block_count_ == 0) return {};
  auto* const results = results_.begin<double>(static_cast<size_t>(block_count_), 0);
  for (const auto& of : dtypes_) {
    if (of->blocks.empty()) continue;
    const shardrec_cuda_norm_blocks job{.list = send(*of, of->blocks),
                                        .scale = of->dtype == SHARDREC_FLOAT64 ? scale : 1,
                                        .largest = largest ? 1 : 0,
                                        .results = results};
    host::require(host::table().sum_norm_blocks(stream_->handle(), &job),
                  "take the norm of gradients on device ", stream_->device());
  }
  const std::span<const double> there = results_.fetch<double>();
  blocks_.assign(there.begin(), there.end());
  return blocks_;
}

std::span<const double> Gradients::square_sums(double scale) {
  norm_blocks(scale, false);
  if (scale == 1) return blocks_;
  for (const auto& of : dtypes_) {
    if (of->dtype == SHARDREC_FLOAT64) continue;
    for (const shardrec_cuda_gradient& gradient : of->blocks.jobs()) {
      const auto first = static_cast<size_t>(gradient.first_result);
      const auto count = static_cast<size_t>(Extents::blocks_of(gradient.count));
      for (double& sum : std::span(blocks_).subspan(first, count)) sum = sum * scale * scale;
    }
  }
  return blocks_;
}

std::span<const double> Gradients::largest() { return norm_blocks(1, true); }

std::span<const int64_t> Gradients::non_finite() {
  if (count_ == 0) return {};
  // Beyond all positions, and -1 as int64_t.
  auto* const results = results_.begin<uint64_t>(static_cast<size_t>(count_), 0xFF);
  for (const auto& of : dtypes_) {
    if (of->tiles.empty()) continue;
    const shardrec_cuda_non_finite job{.list = send(*of, of->tiles), .results = results};
    host::require(host::table().find_non_finite(stream_->handle(), &job),
                  "look through gradients on device ", stream_->device());
  }
  return results_.fetch<int64_t>();
}

void Gradients::change(const shardrec_cuda_rank_sum& job, bool clears) {
  for (const auto& of : dtypes_) {
    of->runs.begin(1);
    for (const core::FlatView& gradient : of->gradients) {
      auto* const elements = static_cast<std::byte*>(gradient.data);
      const std::byte* const input = clears ? nullptr : elements;
      of->runs.add(std::span(&input, 1), elements, gradient.size);
    }
    shardrec_cuda_rank_sum of_dtype = job;
    of_dtype.from = of_dtype.to = element_of(of->dtype);
    of->runs.launch(of_dtype);
  }
}

void Gradients::clear() {
  change({.through = SHARDREC_CUDA_NO_ELEMENT, .scale = 1, .factor = 1, .bound = -1}, true);
}

void Gradients::scale(double factor) {
  change({.through = SHARDREC_CUDA_NO_ELEMENT, .scale = 1, .factor = factor, .bound = -1}, false);
}

void Gradients::bound(double bound) {
  change({.through = SHARDREC_CUDA_NO_ELEMENT, .scale = 1, .factor = 1, .bound = bound}, false);
}

}  // namespace shardrec::dense::device
