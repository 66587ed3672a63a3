#include "dense/ddp/buckets.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/tensor.h"

namespace shardrec::dense {

namespace {

// In the order of adding, in which gradients of a stack or of a flat tensor lie in memory.
void place(Bucket& bucket, std::span<const BucketItem> items) {
  std::sort(bucket.parameters.begin(), bucket.parameters.end());
  int64_t offset = 0;
  for (const int32_t parameter : bucket.parameters) {
    bucket.offsets.push_back(offset);
    offset += items[static_cast<size_t>(parameter)].elements;
  }
}

}  // namespace

std::vector<Bucket> cut_buckets(std::span<const BucketItem> items, std::span<const int32_t> order,
                                const BucketLimits& limits) {
  struct Open {
    Bucket bucket;
    int64_t limit = 0;
    size_t last = 0;  // place in `order` of its last parameter
  };
  std::map<shardrec_dtype, Open> open;
  std::vector<Bucket> buckets;
  for (size_t place = 0; place < order.size(); ++place) {
    const BucketItem& item = items[static_cast<size_t>(order[place])];
    const auto [at, is_new] = open.try_emplace(item.dtype);
    Open& its = at->second;
    if (is_new) its.limit = limits.first;
    its.bucket.dtype = item.dtype;
    its.bucket.parameters.push_back(order[place]);
    its.bucket.elements += item.elements;
    its.last = place;
    const auto bytes = its.bucket.elements * static_cast<int64_t>(core::dtype_size(item.dtype));
    if (bytes < its.limit) continue;
    buckets.push_back(std::exchange(its.bucket, {}));
    its.limit = limits.others;
  }
  std::vector<const Open*> rest;
  for (const auto& [dtype, its] : open) {
    if (!its.bucket.parameters.empty()) rest.push_back(&its);
  }
  std::sort(rest.begin(), rest.end(),
            [](const Open* a, const Open* b) { return a->last < b->last; });
  for (const Open* its : rest) buckets.push_back(its->bucket);
  for (Bucket& bucket : buckets) place(bucket, items);
  return buckets;
}

}  // namespace shardrec::dense
