#include "dense/ddp/host_buckets.h"

#include <cstring>

#include "compute/backends/registry.h"
#include "core/tensor.h"
#include "dense/kernels.h"

namespace shardrec::dense {

class HostBuckets::Adder final : public BucketAdder {
 public:
  Adder(HostBuckets& buckets, size_t bucket) : buckets_(buckets), bucket_(bucket) {}

  void add_up(const BucketSum& sum) override {
    for (size_t run = 0; run < sum.runs.size(); ++run) {
      buckets_.saturated_[bucket_] += buckets_.add_up(sum, run);
    }
  }

 private:
  HostBuckets& buckets_;
  size_t bucket_;
};

HostBuckets::HostBuckets(int ranks)
    : backend_(compute::backend_named("cpu").make({.threads = threads_})),
      bodies_(comm::make_carrier(*backend_)),
      sums_(ranks) {}

std::unique_ptr<BucketAdder> HostBuckets::make_adder(size_t bucket, shardrec_dtype wire) {
  sums_.make_room(wire);
  return std::make_unique<Adder>(*this, bucket);
}

int64_t HostBuckets::add_up(const BucketSum& sum, size_t run) {
  const auto inputs = sum.inputs.subspan(run * sum.addends, sum.addends);
  const auto [out, count] = sum.runs[run];
  if (sum.addends != 1) {
    return sums_.add_up(inputs, sum.from, 0, count, sum.scale, out, sum.to, sum.for_way);
  }
  if (inputs[0] == nullptr) {
    std::memset(out, 0, static_cast<size_t>(count) * core::dtype_size(sum.to));
    return 0;
  }
  if (inputs[0] == out) {
    return sums_.rescale(out, sum.from, sum.through.value_or(sum.from), count, sum.scale);
  }
  int64_t saturated = 0;
  if (sum.for_way) {
    saturated = convert_for_way(inputs[0], out, sum.to, count);
  } else {
    convert(inputs[0], sum.from, out, sum.to, count);
  }
  if (sum.scale.factor != 1) {
    kernels().scale(static_cast<float*>(static_cast<void*>(out)),
                    static_cast<float>(sum.scale.factor), count);
  }
  return saturated;
}

}  // namespace shardrec::dense
