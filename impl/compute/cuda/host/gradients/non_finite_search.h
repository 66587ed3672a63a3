// compute::NonFiniteSearch on a device.
//
// Thread rule: that of the stream.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "compute/cuda/host/results.h"
#include "compute/non_finite_search.h"

namespace shardrec::compute::cuda::host {

class FirstNonFinite final : public NonFiniteSearch {
 public:
  explicit FirstNonFinite(std::shared_ptr<Stream> stream)
      : stream_(std::move(stream)), results_(stream_) {}

  void begin(const GivenNumbers& numbers) override;
  int64_t first() override;

 private:
  std::shared_ptr<Stream> stream_;
  Results results_;
  uint64_t sent_at_ = 0;  // the place of the results in the stream
};

}  // namespace shardrec::compute::cuda::host
