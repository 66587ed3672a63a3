// How gradients are put into buckets, each of which is one exchange: a function of the parameters'
// types and sizes, their order and the limits alone, hence the same on all ranks. After Li et al.,
// "PyTorch Distributed: Experiences on Accelerating Data Parallel Training" (VLDB 2020), 3.2.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shardrec/tensor.h"

namespace shardrec::dense {

struct BucketItem {
  shardrec_dtype dtype = SHARDREC_FLOAT32;
  int64_t elements = 0;
};

// Gradients of one type, one behind the other.
struct Bucket {
  shardrec_dtype dtype = SHARDREC_FLOAT32;
  std::vector<int32_t> parameters{};
  std::vector<int64_t> offsets{};  // of each parameter, in elements
  int64_t elements = 0;
};

// Bytes from which on a bucket is full; the parameter that fills it is its last one.
struct BucketLimits {
  int64_t first = int64_t{1} << 20;  // of the first bucket of each type
  int64_t others = int64_t{4} << 20;
};

// Walks the parameters in this order, which has each of items once. Buckets are in the order in
// which their last parameters come, so that one whose parameters are ready waits for no later one.
std::vector<Bucket> cut_buckets(std::span<const BucketItem> items, std::span<const int32_t> order,
                                const BucketLimits& limits);

}  // namespace shardrec::dense
