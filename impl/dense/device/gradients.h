// The gradients of some parameters on a device, of any floating dtypes: their norm and what is not finite, which the
// host waits for, and changes of all of them, which are enqueued. Norms have the bits of dense/gradient_norm.h.
//
// Throws OUT_OF_MEMORY, DEVICE_ERROR. Thread rule: that of the stream.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compute/cuda/host/results.h"
#include "core/tensor.h"
#include "dense/device/elements.h"
#include "dense/gradient_norm.h"

namespace shardrec::dense::device {

class Gradients final : public NormBlocks {
 public:
  explicit Gradients(std::shared_ptr<compute::cuda::host::Stream> stream);

  // FLOAT32, FLOAT64, FLOAT16 or BFLOAT16, in place as long as this object is used.
  void add(const core::FlatView& gradient);

  std::span<const double> square_sums(double scale) override;
  std::span<const double> largest() override;
  // By gradient: the position of the first element that is NaN or infinite, -1: none is.
  std::span<const int64_t> non_finite();

  // x = 0; x = x * factor, as GradientNorm::bound_norm(); x = min(max(x, -bound), bound), as bound_values().
  void clear();
  void scale(double factor);
  void bound(double bound);

 private:
  using Stream = compute::cuda::host::Stream;

  // Those of one dtype.
  struct OfDtype {
    OfDtype(const std::shared_ptr<Stream>& stream, shardrec_dtype its_dtype)
        : dtype(its_dtype), runs(stream), lists(stream) {}
    shardrec_dtype dtype;
    ElementRuns runs;
    compute::cuda::host::Arguments lists;
    compute::cuda::host::LaunchList<shardrec_cuda_gradient> blocks;
    compute::cuda::host::LaunchList<shardrec_cuda_gradient> tiles;
    std::vector<core::FlatView> gradients;
  };

  std::span<const double> norm_blocks(double scale, bool largest);
  shardrec_cuda_gradient_list send(OfDtype& of,
                                   compute::cuda::host::LaunchList<shardrec_cuda_gradient>& list);
  void change(const shardrec_cuda_rank_sum& job, bool clears);

  std::shared_ptr<Stream> stream_;
  std::vector<std::unique_ptr<OfDtype>> dtypes_;
  compute::cuda::host::Results results_;
  std::vector<double> blocks_;
  int64_t block_count_ = 0;
  int64_t count_ = 0;
};

}  // namespace shardrec::dense::device
