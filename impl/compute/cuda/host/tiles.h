// How an operation's lists are shared out to blocks of threads (jobs/tiles.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "compute/cuda/host/arguments.h"

namespace shardrec::compute::cuda::host {

class Tiles {
 public:
  void clear() { first_.assign(1, 0); }
  // The next list, of so many items, has at least `least` tiles.
  void add(int64_t items, int64_t least = 0) {
    const int64_t tiles = (items + SHARDREC_CUDA_TILE - 1) / SHARDREC_CUDA_TILE;
    first_.push_back(first_.back() + std::max(tiles, least));
  }

  int64_t count() const { return first_.back(); }  // of all lists

  size_t bytes() const { return Arguments::bytes_of<int64_t>(first_.size()); }  // of arguments
  shardrec_cuda_tiles add_to(Arguments& arguments) const {
    return {.first = arguments.add(std::span<const int64_t>(first_)),
            .count = count(),
            .lists = static_cast<int32_t>(first_.size() - 1)};
  }

 private:
  std::vector<int64_t> first_{0};
};

}  // namespace shardrec::compute::cuda::host
