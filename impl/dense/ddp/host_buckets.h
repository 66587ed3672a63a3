// Buckets in the host's memory.
#pragma once

#include <memory>
#include <vector>

#include "compute/backend.h"
#include "core/threads.h"
#include "dense/ddp/bucket_memory.h"

namespace shardrec::dense {

class HostBuckets final : public BucketMemory {
 public:
  explicit HostBuckets(int ranks);

  comm::BodyCarrier& bodies() override { return *bodies_; }
  void set_buckets(size_t buckets) override { saturated_.assign(buckets, 0); }
  std::unique_ptr<BucketAdder> make_adder(size_t bucket, shardrec_dtype wire) override;
  int64_t saturated(size_t bucket) override { return saturated_[bucket]; }
  size_t source_of(int64_t /*parameter*/) const noexcept override { return 0; }
  void mark_ready(size_t /*bucket*/, size_t /*source*/,
                  compute::cuda::host::Stream* /*given*/) override {}
  void follow_marks(size_t /*bucket*/) override {}
  void follow_sources() override {}
  bool has_one_order() const noexcept override { return false; }
  void submit() override {}
  void wait() override {}

 private:
  class Adder;

  // Returns how many numbers were beyond the range of the dtype of the way.
  int64_t add_up(const BucketSum& sum, size_t run);

  core::Threads threads_{1};
  std::unique_ptr<compute::Backend> backend_;
  std::unique_ptr<comm::BodyCarrier> bodies_;
  RankSums sums_;
  std::vector<int64_t> saturated_;  // by bucket
};

}  // namespace shardrec::dense
