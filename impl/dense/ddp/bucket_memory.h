// Where the gradients of a set lie, and what is done to their elements there: on the host (host_buckets.h), where all
// is over when a call returns, or on a device (device_buckets.h), in the order of a stream.
//
// Thread rule: source_of() and mark_ready() by any thread; the others, and what is made here, by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "comm/bodies/carrier.h"
#include "comm/nccl/all_reduce.h"
#include "compute/cuda/host/stream.h"
#include "dense/ddp/rank_sums.h"
#include "shardrec/tensor.h"

namespace shardrec::dense {

// out[i] is the sum of element i of each input. out may be the only input, else it overlaps none.
struct BucketRun {
  std::byte* out = nullptr;
  int64_t count = 0;
};

// Sums over the ranks (rank_sums.h) of runs of elements. One input: they are converted.
struct BucketSum {
  std::span<const BucketRun> runs{};
  std::span<const std::byte* const> inputs{};  // [runs, addends]; null: zeros
  size_t addends = 1;
  shardrec_dtype from = SHARDREC_FLOAT32;
  shardrec_dtype to = SHARDREC_FLOAT32;
  // Of one input, which is float32: what its numbers are rounded to first, as if they had travelled so.
  std::optional<shardrec_dtype> through{};
  GradientScale scale{};
  // Finite numbers that become float16 stay finite, and are counted.
  bool for_way = false;
};

// One place of a bucket's way where sums are taken, step after step.
class BucketAdder {
 public:
  virtual ~BucketAdder() = default;
  BucketAdder(const BucketAdder&) = delete;
  BucketAdder& operator=(const BucketAdder&) = delete;

  // The list is copied. Throws what the memory does.
  virtual void add_up(const BucketSum& sum) = 0;

 protected:
  BucketAdder() = default;
};

class BucketMemory {
 public:
  virtual ~BucketMemory() = default;
  BucketMemory(const BucketMemory&) = delete;
  BucketMemory& operator=(const BucketMemory&) = delete;

  // How messages go from rank to rank.
  virtual comm::BodyCarrier& bodies() = 0;

  // There are so many buckets from now on; nothing is counted yet.
  virtual void set_buckets(size_t buckets) = 0;
  // wire: of the messages of the bucket.
  virtual std::unique_ptr<BucketAdder> make_adder(size_t bucket, shardrec_dtype wire) = 0;
  // A vector of a bucket's elements in the dtype of the way, which NCCL adds up. Null: no NCCL is between the ranks.
  virtual std::unique_ptr<comm::nccl::AllReduce> make_all_reduce(shardrec_dtype /*wire*/,
                                                                 int64_t /*elements*/) {
    return nullptr;
  }
  // Finite numbers beyond the range of the dtype of the way, of a bucket. Waits for what is enqueued.
  virtual int64_t saturated(size_t bucket) = 0;

  // Which of the streams that gradients are computed in a parameter's is; all are one on the host.
  virtual size_t source_of(int64_t parameter) const noexcept = 0;
  // Gradients of the bucket are what the source's stream has there now. given: that stream, by the thread that uses it;
  // null: it is looked for.
  virtual void mark_ready(size_t bucket, size_t source, compute::cuda::host::Stream* given) = 0;
  // Operations from now on follow the marks of the bucket.
  virtual void follow_marks(size_t bucket) = 0;
  // Operations from now on follow all that the sources' streams hold, where parameters are not marked too.
  virtual void follow_sources() = 0;

  // Must all ranks take up what has come in one order, whatever has come first?
  virtual bool has_one_order() const noexcept = 0;
  // What was called so far begins.
  virtual void submit() = 0;
  // Returns when it is over. Throws what it came to.
  virtual void wait() = 0;

 protected:
  BucketMemory() = default;
};

}  // namespace shardrec::dense
