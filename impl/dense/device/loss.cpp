#include "dense/device/loss.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include "compute/cuda/host/plugin.h"
#include "core/error.h"
#include "dense/device/kernels.h"
#include "dense/loss.h"

namespace shardrec::dense::device {

namespace host = compute::cuda::host;

namespace {

[[noreturn]] void refuse_label(int64_t position, bool may_be_of_others) {
  core::fail(
      SHARDREC_INVALID_ARGUMENT,
      core::sentence("the label at position ", position,
                     may_be_of_others
                         ? ", of this batch or of one before it whose loss was not asked for,"
                         : "",
                     " is not in 0 .. 1"),
      {.position = position});
}

}  // namespace

DeviceLoss::DeviceLoss(Context& context)
    : context_(context),
      logits_(context),
      labels_(context),
      probabilities_(context),
      gradient_(context),
      sums_(context.memory()),
      results_(context.memory()) {}

void DeviceLoss::clear_wrong() {
  host::require(
      host::table().fill(context_.stream().handle(), &there()->wrong, 0, sizeof(Results::wrong)),
      "clear results on device ", context_.device());
}

void DeviceLoss::compute(const LossVectors& vectors, double* mean) {
  const int64_t count = vectors.logits.rows.cols;
  const int64_t blocks = (count + kLossBlock - 1) / kLossBlock;
  if (!is_clear_) {
    pinned_.resize(sizeof(Results));
    results_.resize(sizeof(Results));
    clear_wrong();
    is_clear_ = true;
  }
  Stream& stream = context_.stream();
  CallerMatrices given(context_);
  double* sums = nullptr;
  if (mean != nullptr) sums = sums_.resize_as<double>(static_cast<size_t>(blocks)).data();
  binary_cross_entropy(stream,
                       {.logits = given.read(vectors.logits, logits_).data,
                        .labels = given.read(vectors.labels, labels_).data,
                        .probabilities = given.write(vectors.probabilities, probabilities_).data,
                        .gradients = given.write(vectors.gradient, gradient_).data,
                        .sums = sums,
                        .wrong = &there()->wrong,
                        .count = count});
  if (mean == nullptr) {
    has_untold_calls_ = true;
    given.done();
    return;
  }
  add_up_losses(stream, sums, blocks, &there()->total);
  stream.copy_kept(pinned_.data(), results_.data(), sizeof(Results));
  clear_wrong();
  given.done();
  context_.wait();
  Results found;
  std::memcpy(&found, pinned_.data(), sizeof found);
  const bool may_be_of_others = std::exchange(has_untold_calls_, false);
  if (found.wrong != 0) refuse_label(static_cast<int64_t>(~found.wrong), may_be_of_others);
  *mean = count == 0 ? 0 : found.total / static_cast<double>(count);
}

}  // namespace shardrec::dense::device
