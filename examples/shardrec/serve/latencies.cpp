// Buckets: 64 for each power of two, so that the widest of them is a 64th of what it holds.
#include "serve/latencies.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace shardrec::cli {
namespace {

constexpr int kBits = 6;  // of a length that tell its bucket, behind the leading one
constexpr uint64_t kPerPower = uint64_t{1} << kBits;
constexpr size_t kBuckets = (64 - kBits) * kPerPower;

size_t bucket_of(uint64_t length) {
  if (length < kPerPower) return length;
  const int shift = static_cast<int>(std::bit_width(length)) - 1 - kBits;
  return static_cast<size_t>(shift) * kPerPower + (length >> shift);
}

// The longest length of a bucket.
uint64_t end_of(size_t bucket) {
  if (bucket < 2 * kPerPower) return bucket;
  const uint64_t shift = bucket / kPerPower - 1;
  return ((kPerPower + bucket % kPerPower + 1) << shift) - 1;
}

}  // namespace

Latencies::Latencies() : buckets_(kBuckets, 0) {}

void Latencies::add(int64_t nanoseconds) {
  ++buckets_[bucket_of(static_cast<uint64_t>(nanoseconds))];
  ++count_;
  least_ = std::min(least_, nanoseconds);
  longest_ = std::max(longest_, nanoseconds);
}

void Latencies::add(const Latencies& others) {
  for (size_t b = 0; b < kBuckets; ++b) buckets_[b] += others.buckets_[b];
  count_ += others.count_;
  least_ = std::min(least_, others.least_);
  longest_ = std::max(longest_, others.longest_);
}

double Latencies::seconds(double quantile) const {
  const auto wanted = static_cast<int64_t>(std::ceil(quantile * static_cast<double>(count_)));
  int64_t seen = 0;
  for (size_t b = 0; b < kBuckets; ++b) {
    seen += buckets_[b];
    if (seen > 0 && seen >= wanted) {
      return 1e-9 * static_cast<double>(std::min(static_cast<int64_t>(end_of(b)), longest_));
    }
  }
  return 0;
}

}  // namespace shardrec::cli
