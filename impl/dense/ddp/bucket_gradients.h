// The gradients of a bucket's parameters as one vector: where its elements are. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/collective/owned_range.h"
#include "core/function_ref.h"
#include "shardrec/tensor.h"

namespace shardrec::dense {

// The gradient of a parameter of the bucket, in the bucket's order.
struct BucketParameter {
  void* gradient = nullptr;
  int64_t offset = 0;  // in the bucket
  int64_t elements = 0;
};

class BucketGradients {
 public:
  BucketGradients(shardrec_dtype dtype, std::vector<BucketParameter> parameters);

  size_t parameters() const noexcept { return parameters_.size(); }
  shardrec_dtype dtype() const noexcept { return dtype_; }

  // Elements [begin, begin + count) of the bucket, all of one parameter.
  struct Run {
    size_t parameter = 0;
    std::byte* gradient = nullptr;  // of the first of them
    int64_t begin = 0;
    int64_t count = 0;
  };
  // The runs of the range, in their order.
  void for_each_run(const comm::OwnedRange& range, core::FunctionRef<void(const Run&)> body) const;

 private:
  const shardrec_dtype dtype_;
  const std::vector<BucketParameter> parameters_;
};

}  // namespace shardrec::dense
