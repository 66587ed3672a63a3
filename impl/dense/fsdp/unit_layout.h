// Where the parameters of a unit lie in its flat buffer, and which part of each parameter every rank
// has (Zhao et al., VLDB 2023): one behind the other, each from a multiple of kGrain elements on, the
// buffer padded to a multiple of kGrain elements for each rank and cut into equal shards, one a rank.
// A shard may hold padding only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardrec::dense {

// The elements of a parameter that a shard holds.
struct ParameterPart {
  int64_t offset = 0;  // of the first one in the parameter
  int64_t count = 0;
  int64_t at = 0;  // of the first one in the shard
};

class UnitLayout {
 public:
  static constexpr int64_t kGrain = 32;  // a cache line of 16-bit elements

  explicit UnitLayout(int ranks) : ranks_(ranks) {}

  // Appends a parameter.
  void add(int64_t elements) {
    sizes_.push_back(elements);
    offsets_.push_back(end_);
    end_ += padded(elements);
  }

  // Elements that a parameter takes.
  static int64_t padded(int64_t elements, int64_t grain = kGrain) noexcept {
    return (elements + grain - 1) / grain * grain;
  }

  size_t parameters() const noexcept { return sizes_.size(); }
  int64_t size(size_t parameter) const noexcept { return sizes_[parameter]; }
  // Of a parameter's first element in the flat buffer.
  int64_t offset(size_t parameter) const noexcept { return offsets_[parameter]; }
  // At least kGrain, so that the message with a shard is never empty.
  int64_t shard_elements() const noexcept {
    return padded(std::max(end_, int64_t{1}), kGrain * ranks_) / ranks_;
  }
  int64_t elements() const noexcept { return shard_elements() * ranks_; }
  ParameterPart part(size_t parameter, int rank) const noexcept {
    const int64_t shard = rank * shard_elements();
    const int64_t begin = std::max(offsets_[parameter], shard);
    const int64_t end = std::min(offsets_[parameter] + sizes_[parameter], shard + shard_elements());
    if (begin >= end) return {};
    return {.offset = begin - offsets_[parameter], .count = end - begin, .at = begin - shard};
  }

 private:
  int ranks_;
  int64_t end_ = 0;
  std::vector<int64_t> sizes_;
  std::vector<int64_t> offsets_;
};

}  // namespace shardrec::dense
