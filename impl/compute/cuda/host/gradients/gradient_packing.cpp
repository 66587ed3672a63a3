#include "compute/cuda/host/gradients/gradient_packing.h"

#include <algorithm>
#include <utility>

#include "compute/cuda/host/vectors.h"

namespace shardrec::compute::cuda::host {
namespace {

bool all_in_vectors(const shardrec_cuda_gradients& job, const OutputGradient& gradient,
                    std::span<const ColumnMap> columns) {
  if (!in_vectors(gradient.rows, gradient.stride, 0, gradient.element) ||
      !in_vectors(job.out, 0, job.width, Element::kFloat32) ||
      !in_vectors(job.unscaled, 0, job.width, Element::kFloat32)) {
    return false;
  }
  const auto numbers = static_cast<int64_t>(kVectorBytes / element_bytes(gradient.element));
  constexpr auto kFloats = static_cast<int64_t>(kVectorBytes / sizeof(float));
  return std::all_of(columns.begin(), columns.end(), [&](const ColumnMap& map) {
    return map.column % numbers == 0 && map.count % numbers == 0 && map.offset % kFloats == 0;
  });
}

}  // namespace

GradientPacking::GradientPacking(std::shared_ptr<Stream> stream)
    : stream_(std::move(stream)), arguments_(stream_) {}

void GradientPacking::run(std::span<const BagGradients> blocks) {
  clear();
  for (const BagGradients& block : blocks) {
    if (block.bags->bags == 0) continue;
    add(block, {.bags = {.dense_lengths = block.bags->dense_lengths,
                         .sparse_lengths = static_cast<const shardrec_cuda_sparse_length*>(
                             static_cast<const void*>(block.bags->sparse_lengths)),
                         .chunk_rows = block.bags->chunk_rows},
                .items = block.bags->samples,
                .lengths = block.lengths,
                .sample_starts = block.samples.starts,
                .samples = block.samples.samples,
                .unscaled = block.unscaled});
  }
  run_kinds();
}

void GradientPacking::run(std::span<const SequenceGradients> blocks) {
  clear();
  for (const SequenceGradients& block : blocks) {
    add(block, {.bags = {.chunk_rows = block.chunk_rows},
                .of_sequence = 1,
                .intervals = block.intervals,
                .first_interval = block.first_interval,
                .end_interval = block.end_interval,
                .items = block.ids});
  }
  run_kinds();
}

void GradientPacking::clear() {
  maps_.clear();
  for (auto& of_element : kinds_) {
    for (Kind& kind : of_element) {
      kind.launch.clear();
      kind.first_map.clear();
    }
  }
}

// job: what is not the same for both kinds of blocks.
template <class Gradients>
void GradientPacking::add(const Gradients& block, shardrec_cuda_gradients job) {
  if (job.items == 0) return;
  job.gradient = block.gradient.rows;
  job.stride = static_cast<int64_t>(block.gradient.stride);
  job.width = block.width;
  job.divisor = block.divisor;
  job.max_gradient = block.max_gradient;
  job.out = block.out;
  job.column_count = std::ssize(block.columns);
  int64_t widest = 0;
  const size_t first_map = maps_.size();
  for (const ColumnMap& map : block.columns) {
    maps_.push_back({.offset = map.offset, .column = map.column, .count = map.count});
    widest = std::max(widest, map.count);
  }
  const bool vectors = all_in_vectors(job, block.gradient, block.columns);
  const size_t numbers = vectors ? kVectorBytes / element_bytes(block.gradient.element) : 1;
  job.lanes = lanes_for(widest, static_cast<int64_t>(numbers));
  Kind& kind = kinds_[static_cast<size_t>(block.gradient.element)][vectors ? 1 : 0];
  kind.launch.add(job, chunks_of(job.items) * SHARDREC_CUDA_GRADIENT_SLICES);
  kind.first_map.push_back(first_map);
}

void GradientPacking::run_kinds() {
  size_t bytes = Arguments::bytes_of<shardrec_cuda_column_map>(maps_.size());
  for (const auto& of_element : kinds_) {
    for (const Kind& kind : of_element) bytes += kind.launch.bytes();
  }
  arguments_.begin(bytes);
  const auto* const maps = arguments_.add(std::span<const shardrec_cuda_column_map>(maps_));
  for (auto& of_element : kinds_) {
    for (Kind& kind : of_element) {
      const std::span<shardrec_cuda_gradients> jobs = kind.launch.jobs();
      for (size_t j = 0; j < jobs.size(); ++j) jobs[j].columns = maps + kind.first_map[j];
      kind.launch.send(arguments_);
    }
  }
  arguments_.send();
  for (size_t element = 0; element < kinds_.size(); ++element) {
    for (size_t vectors = 0; vectors < 2; ++vectors) {
      const auto& launch = kinds_[element][vectors].launch;
      require(table().pack_output_gradients(
                  stream_->handle(), static_cast<int32_t>(element), static_cast<int32_t>(vectors),
                  launch.jobs_there(), launch.first_unit_there(), launch.count(), launch.units()),
              "pack gradients on device ", stream_->device());
    }
  }
}

}  // namespace shardrec::compute::cuda::host
