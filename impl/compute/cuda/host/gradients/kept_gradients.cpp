#include "compute/cuda/host/gradients/kept_gradients.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "compute/cuda/host/gradients/gradient_rows.h"

namespace shardrec::compute::cuda::host {
namespace {

constexpr int64_t kVectorFloats = 4;
constexpr uint64_t kWarp = 32;

// A list of so many rows, carved from one piece of memory.
shardrec_cuda_kept_rows list_in(Buffer& memory, int64_t count) {
  static_assert(sizeof(float*) == sizeof(int64_t));
  const auto rows = static_cast<size_t>(count);
  std::byte* at = memory.resize(rows * (2 * sizeof(int64_t) + sizeof(uint32_t)));
  shardrec_cuda_kept_rows list{.count = count};
  list.rows = static_cast<int64_t*>(static_cast<void*>(at));
  at += rows * sizeof(int64_t);
  list.gradients = static_cast<float**>(static_cast<void*>(at));
  at += rows * sizeof(float*);
  list.entries = static_cast<uint32_t*>(static_cast<void*>(at));
  return list;
}

}  // namespace

IndexedGradients::IndexedGradients(int64_t width, std::shared_ptr<Stream> stream)
    : width_(width),
      stream_(std::move(stream)),
      memory_(make_memory(stream_)),
      results_(stream_),
      lists_{List(memory_), List(memory_)},
      places_(memory_),
      new_before_(memory_),
      room_(memory_),
      run_(memory_),
      blocks_(memory_) {}

void IndexedGradients::add(std::span<const int64_t> rows, const float* gradients) {
  if (rows.empty()) return;
  const bool vectors = width_ % kVectorFloats == 0 &&
                       std::bit_cast<uintptr_t>(gradients) % (kVectorFloats * sizeof(float)) == 0;
  const auto loads = static_cast<uint64_t>(vectors ? width_ / kVectorFloats : width_);
  shardrec_cuda_kept_addition job{
      .kept = kept(),
      .rows = rows.data(),
      .gradients = gradients,
      .count = std::ssize(rows),
      .width = width_,
      .places = places_.resize_as<uint32_t>(rows.size()).data(),
      .new_before = new_before_.resize_as<uint32_t>(rows.size() + 1).data(),
      .vectors = vectors,
      .lane_bits = std::countr_zero(std::min(std::bit_ceil(loads), kWarp))};
  const int64_t new_rows = count_new_rows(job);
  if (additions_ == pool_.size()) pool_.emplace_back(memory_);
  job.new_gradients =
      pool_[additions_].resize_as<float>(static_cast<size_t>(new_rows * width_)).data();
  List& merged = lists_[1 - current_];
  merged.rows = {};
  merged.rows = list_in(merged.memory, kept().count + new_rows);
  job.merged = merged.rows;
  require(table().add_kept(stream_->handle(), &job), "add gradients of rows on device ",
          stream_->device());
  current_ = 1 - current_;
  ++additions_;
}

int64_t IndexedGradients::count_new_rows(shardrec_cuda_kept_addition& job) {
  const auto find = [&] {
    require(table().find_new_rows(stream_->handle(), &job), "find rows on device ",
            stream_->device());
  };
  find();  // how much room it takes
  job.room = room_.resize(job.room_bytes);
  find();
  if (kept().count == 0) return job.count;
  stream_->copy_kept(results_.begin<uint32_t>(1, 0), job.new_before + job.count, sizeof(uint32_t));
  return results_.fetch<uint32_t>()[0];
}

void IndexedGradients::clear() noexcept {
  lists_[current_].rows = {};
  additions_ = 0;
}

void IndexedGradients::finish() {
  const auto count = static_cast<size_t>(kept().count);
  number_occurrences({.rows = kept().count,
                      .run = run_.resize_as<int64_t>(count + 1).data(),
                      .blocks = blocks_.resize_as<uint32_t>(count).data()},
                     *stream_);
}

void IndexedGradients::describe(RowUpdate& job) const {
  job.rows = kept().rows;
  job.run = static_cast<const int64_t*>(static_cast<const void*>(run_.data()));
  job.bags = kept().entries;
  job.weights = nullptr;
  job.gradients = kept().gradients;
  job.blocks = static_cast<const uint32_t*>(static_cast<const void*>(blocks_.data()));
  job.block_start = RowUpdate::kUnchanged;
}

}  // namespace shardrec::compute::cuda::host
