#include "dense/ddp/bucket_gradients.h"

#include <algorithm>
#include <utility>

#include "core/tensor.h"

namespace shardrec::dense {

BucketGradients::BucketGradients(shardrec_dtype dtype, std::vector<BucketParameter> parameters)
    : dtype_(dtype), parameters_(std::move(parameters)) {}

void BucketGradients::for_each_run(const comm::OwnedRange& range,
                                   core::FunctionRef<void(const Run&)> body) const {
  const size_t size = core::dtype_size(dtype_);
  for (size_t s = 0; s < parameters_.size(); ++s) {
    const BucketParameter& parameter = parameters_[s];
    const int64_t begin = std::max(parameter.offset, range.begin);
    const int64_t end = std::min(parameter.offset + parameter.elements, range.begin + range.count);
    if (begin >= end) continue;
    body({.parameter = s,
          .gradient = static_cast<std::byte*>(parameter.gradient) +
                      static_cast<size_t>(begin - parameter.offset) * size,
          .begin = begin,
          .count = end - begin});
  }
}

}  // namespace shardrec::dense
