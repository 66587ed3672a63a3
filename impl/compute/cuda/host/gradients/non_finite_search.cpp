#include "compute/cuda/host/gradients/non_finite_search.h"

namespace shardrec::compute::cuda::host {

void FirstNonFinite::begin(const GivenNumbers& numbers) {
  shardrec_cuda_given_numbers job{.data = numbers.data,
                                  .rows = numbers.rows,
                                  .columns = numbers.columns,
                                  .stride = numbers.stride,
                                  .element = static_cast<int32_t>(numbers.element),
                                  .first = results_.begin<uint64_t>(1, 0)};
  require(table().search_non_finite(stream_->handle(), &job),
          "look for a NaN or an infinity on device ", stream_->device());
  sent_at_ = stream_->next_place();
  results_.send();
}

int64_t FirstNonFinite::first() {
  if (stream_->is_known_over(sent_at_)) results_.know();
  // ~i of number i, 0 where there is none.
  return static_cast<int64_t>(~results_.get<uint64_t>().front());
}

}  // namespace shardrec::compute::cuda::host
