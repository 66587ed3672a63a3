#include "dense/device/samples.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "compute/cuda/host/plugin.h"
#include "dense/device/kernels.h"

namespace shardrec::dense::device {
namespace {

namespace host = compute::cuda::host;

constexpr int64_t kLeastPart = int64_t{1} << 16;  // samples
constexpr size_t kPiece = size_t{1} << 20;        // samples that are copied at once

PackedSample* samples_of(compute::Buffer& memory) noexcept {
  return static_cast<PackedSample*>(static_cast<void*>(memory.data()));
}

}  // namespace

DeviceSamples::DeviceSamples(const ContextOptions& options)
    : context_(options), wrong_memory_(context_.memory()), wrong_here_(sizeof(uint64_t)) {
  wrong_memory_.resize(sizeof(uint64_t));
  clear_wrong();
}

void DeviceSamples::clear_wrong() {
  host::require(host::table().fill(context_.stream().handle(), wrong_there(), 0, sizeof(uint64_t)),
                "clear results on device ", context_.device());
}

void DeviceSamples::make_room(int64_t count) {
  int64_t room = 0;
  int64_t all = 0;
  for (const Part& part : parts_) {
    room += part.capacity - part.size;
    all += part.capacity;
  }
  if (room >= count) return;
  const int64_t capacity = std::max({kLeastPart, all, count - room});
  compute::Buffer memory(context_.memory());
  memory.resize(static_cast<size_t>(capacity) * sizeof(PackedSample));
  parts_.push_back({.memory = std::move(memory), .capacity = capacity, .size = 0});
}

void DeviceSamples::add(const CallerMatrix& probabilities, const CallerMatrix& labels) {
  const int64_t count = probabilities.rows.cols;
  make_room(count);
  CallerMatrices given(context_);
  const float* const p = given.read(probabilities, probabilities_).data;
  const float* const y = given.read(labels, labels_).data;
  for (int64_t done = 0; done < count;) {
    Part& part = parts_[filling_];
    const int64_t here = std::min(count - done, part.capacity - part.size);
    if (here == 0) {
      ++filling_;
      continue;
    }
    pack_samples(context_.stream(), {.probabilities = p + done,
                                     .labels = y + done,
                                     .packed = samples_of(part.memory) + part.size,
                                     .wrong = wrong_there(),
                                     .first = position_,
                                     .count = here});
    part.size += here;
    position_ += here;
    done += here;
  }
  given.done();
}

int64_t DeviceSamples::size() const noexcept {
  int64_t size = 0;
  for (const Part& part : parts_) size += part.size;
  return size;
}

void DeviceSamples::move_to(std::vector<PackedSample>& packed) {
  const size_t before = packed.size();
  const auto all = static_cast<size_t>(size());
  packed.resize(before + all);
  try {
    std::byte* const piece =
        pinned_.resize(std::clamp<size_t>(all, 1, kPiece) * sizeof(PackedSample));
    PackedSample* to = packed.data() + before;
    for (Part& part : parts_) {
      const auto samples = static_cast<size_t>(part.size);
      for (size_t at = 0; at < samples; at += kPiece) {
        const size_t count = std::min(kPiece, samples - at);
        context_.stream().copy(piece, samples_of(part.memory) + at, count * sizeof(PackedSample));
        context_.wait();
        std::memcpy(to, piece, count * sizeof(PackedSample));
        to += count;
      }
    }
    context_.stream().copy(wrong_here_.data(), wrong_there(), sizeof(uint64_t));
    context_.wait();
  } catch (...) {
    packed.resize(before);
    throw;
  }
  for (Part& part : parts_) part.size = 0;
  filling_ = 0;
  uint64_t word = 0;
  std::memcpy(&word, wrong_here_.data(), sizeof word);
  if (word == 0) return;
  const uint64_t number = ~word;
  wrong_ = {.position = static_cast<int64_t>(number / 2),
            .is_label = number % 2 == SHARDREC_CUDA_WRONG_LABEL};
}

void DeviceSamples::clear() {
  clear_wrong();
  for (Part& part : parts_) part.size = 0;
  filling_ = 0;
  position_ = 0;
  wrong_.reset();
}

}  // namespace shardrec::dense::device
