// A table in as many ranges of rows as are routed as streams, and in one more, which are routed
// like any cut: the same tables and, where sums are exact, the same outputs as in one range.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "comm/local/local_group.h"
#include "embedding/collection.h"
#include "embedding/lookup.h"
#include "planner/planner.h"
#include "support/ranks.h"

namespace shardrec::embedding {
namespace {

constexpr int64_t kRows = 200;
constexpr int64_t kDim = 4;
constexpr int64_t kBatch = 600;  // more than a chunk

struct Result {
  std::vector<float> outputs;
  std::vector<float> rows;
};

// A step on one rank, with weights and gradients whose sums are exact.
Result step_in(int64_t ranges) {
  plan::Model model;
  plan::add_table(model, {.name = "a", .rows = kRows, .dim = kDim});
  plan::add_feature(model, {.name = "a", .table = 0, .pooling = SHARDREC_POOLING_SUM});
  plan::Plan cut =
      planner::make_plan(model, {.ranks = 1, .ranks_per_node = 1}, SHARDREC_SHARDING_TABLE_WISE);
  cut.tables[0].boxes.clear();
  for (int64_t i = 0; i < ranges; ++i) {
    const int64_t row = kRows * i / ranges;
    cut.tables[0].boxes.push_back({0, {row, kRows * (i + 1) / ranges - row, 0, kDim}});
  }
  const auto group = comm::local::make_group(1, 1);
  const auto collection =
      std::make_shared<Collection>(comm::local::join(group, 0), model, cut, CollectionOptions{});
  for (Shard& shard : collection->shards()) {
    std::vector<float> weights(static_cast<size_t>(shard.rows() * kDim));
    const Part& part = collection->layout().parts()[static_cast<size_t>(shard.part())];
    for (int64_t i = 0; i < std::ssize(weights); ++i) {
      weights[static_cast<size_t>(i)] = static_cast<float>((part.row * kDim + i) % 61);
    }
    const auto bytes = std::as_bytes(std::span(weights));
    collection->backend().transfer().copy(shard.weights(), bytes.data(), bytes.size());
    collection->backend().wait();
  }
  Lookup lookup(collection, {});
  std::mt19937_64 random(7);
  std::vector<int64_t> lengths;
  std::vector<int64_t> values;
  for (int64_t b = 0; b < kBatch; ++b) {
    lengths.push_back(static_cast<int64_t>(random() % 5));
    for (int64_t i = 0; i < lengths.back(); ++i) {
      values.push_back(static_cast<int64_t>(random() % kRows));
    }
  }
  Result result;
  result.outputs.resize(static_cast<size_t>(kBatch * kDim));
  std::vector<float> gradient(result.outputs.size());
  for (float& g : gradient) g = static_cast<float>(random() % 8);
  const shardrec_tensor values_tensor = test::vector_of(values);
  const shardrec_tensor lengths_tensor = test::vector_of(lengths);
  const shardrec_tensor out = test::matrix(result.outputs.data(), kBatch, kDim);
  const shardrec_tensor given = test::matrix(gradient.data(), kBatch, kDim);
  lookup.begin({.batch_size = kBatch, .values = &values_tensor, .lengths = &lengths_tensor});
  lookup.forward(0, &out);
  lookup.set_gradient(0, &given);
  lookup.backward();
  for (const Shard& shard : collection->shards()) {
    const size_t before = result.rows.size();
    result.rows.resize(before + static_cast<size_t>(shard.rows() * kDim));
    const auto bytes = std::as_writable_bytes(std::span(result.rows).subspan(before));
    collection->backend().transfer().copy(bytes.data(), shard.weights(), bytes.size());
    collection->backend().wait();
  }
  return result;
}

TEST(ManyRanges, ChangeNoBit) {
  const Result whole = step_in(1);
  constexpr auto kMost = static_cast<int64_t>(Routing::kMostStreams);
  for (const int64_t ranges : {int64_t{2}, kMost - 1, kMost, kMost + 1, kRows}) {
    const Result cut = step_in(ranges);
    EXPECT_EQ(cut.outputs, whole.outputs) << ranges;
    EXPECT_EQ(cut.rows, whole.rows) << ranges;
  }
}

}  // namespace
}  // namespace shardrec::embedding
