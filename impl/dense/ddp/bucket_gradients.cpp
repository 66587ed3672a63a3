#include "dense/ddp/bucket_gradients.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/tensor.h"
#include "dense/ddp/rank_sums.h"
#include "dense/kernels.h"

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

int64_t BucketGradients::read(const comm::OwnedRange& range, std::span<const char> used,
                              shardrec_dtype wire, std::byte* out) const {
  int64_t saturated = 0;
  const size_t size = core::dtype_size(wire);
  for_each_run(range, [&](const Run& run) {
    std::byte* const to = out + static_cast<size_t>(run.begin - range.begin) * size;
    if (used[run.parameter] == 0) {
      std::memset(to, 0, static_cast<size_t>(run.count) * size);
    } else if (dtype_ != wire) {
      saturated += convert_for_way(run.gradient, to, wire, run.count);
    } else {
      convert(run.gradient, dtype_, to, wire, run.count);
    }
  });
  return saturated;
}

void BucketGradients::write(const comm::OwnedRange& range, const std::byte* sums,
                            shardrec_dtype wire, std::span<const char> written,
                            float factor) const {
  const size_t size = core::dtype_size(wire);
  for_each_run(range, [&](const Run& run) {
    if (written[run.parameter] == 0) return;
    void* const gradient = run.gradient;
    convert(sums + static_cast<size_t>(run.begin - range.begin) * size, wire, gradient, dtype_,
            run.count);
    if (factor != 1) kernels().scale(static_cast<float*>(gradient), factor, run.count);
  });
}

}  // namespace shardrec::dense
