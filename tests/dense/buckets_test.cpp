#include "dense/ddp/buckets.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

namespace shardrec::dense {
namespace {

using Parameters = std::vector<int32_t>;

std::vector<Parameters> members(const std::vector<Bucket>& buckets) {
  std::vector<Parameters> all;
  for (const Bucket& bucket : buckets) all.push_back(bucket.parameters);
  return all;
}

Parameters reversed(int32_t count) {
  Parameters order(static_cast<size_t>(count));
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

TEST(Buckets, TheParameterThatReachesTheLimitIsTheLastOfItsBucket) {
  const std::vector<BucketItem> items(6, {.dtype = SHARDREC_FLOAT32, .elements = 10});
  const auto buckets = cut_buckets(items, reversed(6), {.first = 40, .others = 100});
  EXPECT_EQ(members(buckets), (std::vector<Parameters>{{5}, {2, 3, 4}, {0, 1}}));
  EXPECT_EQ(buckets[1].offsets, (std::vector<int64_t>{0, 10, 20}));
  EXPECT_EQ(buckets[1].elements, 30);
}

TEST(Buckets, AnEmptyParameterIsInABucketToo) {
  const std::vector<BucketItem> items = {
      {.elements = 0}, {.elements = 100}, {.elements = 0}, {.elements = 7}};
  const auto buckets = cut_buckets(items, reversed(4), {.first = 4, .others = 4});
  EXPECT_EQ(members(buckets), (std::vector<Parameters>{{3}, {1, 2}, {0}}));
  EXPECT_EQ(buckets[1].offsets, (std::vector<int64_t>{0, 100}));
  EXPECT_EQ(buckets[2].elements, 0);
}

// Each type has its own first bucket; a bucket comes where its last parameter does.
TEST(Buckets, TypesDoNotMixAndBucketsComeInTheOrderOfTheirLastParameters) {
  const std::vector<BucketItem> items = {{SHARDREC_FLOAT64, 4}, {SHARDREC_FLOAT32, 4},
                                         {SHARDREC_FLOAT64, 4}, {SHARDREC_FLOAT32, 4},
                                         {SHARDREC_FLOAT16, 4}, {SHARDREC_FLOAT32, 4}};
  const auto buckets = cut_buckets(items, reversed(6), {.first = 32, .others = 1 << 20});
  EXPECT_EQ(members(buckets), (std::vector<Parameters>{{3, 5}, {2}, {4}, {1}, {0}}));
  EXPECT_EQ(buckets[2].dtype, SHARDREC_FLOAT16);
}

TEST(Buckets, AnyOrderHasEachParameterOnce) {
  const std::vector<BucketItem> items(5, {.dtype = SHARDREC_FLOAT32, .elements = 3});
  const Parameters order = {2, 0, 4, 1, 3};
  const auto buckets = cut_buckets(items, order, {.first = 24, .others = 24});
  EXPECT_EQ(members(buckets), (std::vector<Parameters>{{0, 2}, {1, 4}, {3}}));
}

}  // namespace
}  // namespace shardrec::dense
