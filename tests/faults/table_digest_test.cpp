// The digest by which the tests of this folder tell whole tables from half-updated ones.
#include "faults/table_digest.h"

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/local/local_group.h"
#include "plan/model/model.h"
#include "plan/plan.h"
#include "support/plan_boxes.h"

namespace shardrec::test {
namespace {

std::span<std::byte> bytes_of(float* values, int64_t count) {
  return std::as_writable_bytes(std::span(values, static_cast<size_t>(count)));
}

// The memory of a shard as its own accessors show it: weights, then states.
std::vector<std::span<std::byte>> memory_of(embedding::Shard& shard, shardrec_optimizer optimizer) {
  std::vector<std::span<std::byte>> all;
  all.emplace_back(shard.weights(), static_cast<size_t>(shard.rows()) * shard.row_bytes());
  const auto states = plan::states_of(optimizer);
  for (size_t k = 0; k < states.size(); ++k) {
    if (!states[k].by_row) {
      all.push_back(bytes_of(shard.matrix(k), shard.rows() * shard.width()));
      continue;
    }
    for (size_t range = 0; range < shard.columns().size(); ++range) {
      all.push_back(bytes_of(shard.row_values(k, range), shard.rows()));
    }
  }
  return all;
}

class TableDigest : public ::testing::TestWithParam<shardrec_optimizer> {};

TEST_P(TableDigest, ChangesWithEveryByteOfWeightsAndStates) {
  plan::Model model;
  plan::set_optimizer(model, {.kind = GetParam()});
  for (const shardrec_dtype dtype : {SHARDREC_FLOAT32, SHARDREC_BFLOAT16}) {
    plan::add_table(model, {.name = "table " + std::to_string(static_cast<int>(dtype)),
                            .rows = 3,
                            .dim = 8,
                            .dtype = dtype});
  }
  // Two boxes side by side on one rank: pieces of a stride that is not their width.
  plan::Plan plan{.topology = {}, .tables = std::vector<plan::TablePlan>(model.tables.size())};
  for (int32_t table = 0; table < std::ssize(model.tables); ++table) {
    plan::add_box(plan, model, table,
                  {.rank = 0, .cells = {.row = 0, .rows = 3, .col = 0, .cols = 5}});
    plan::add_box(plan, model, table,
                  {.rank = 0, .cells = {.row = 0, .rows = 3, .col = 5, .cols = 3}});
  }
  embedding::Collection collection(comm::local::join(comm::local::make_group(1, 1), 0), model, plan,
                                   {.threads = 1});
  const uint64_t whole = digest(collection);
  int64_t bytes = 0;
  for (embedding::Shard& shard : collection.shards()) {
    for (const std::span<std::byte> memory : memory_of(shard, GetParam())) {
      for (std::byte& byte : memory) {
        byte ^= std::byte{1};
        EXPECT_NE(digest(collection), whole) << "byte " << &byte - memory.data();
        byte ^= std::byte{1};
        ++bytes;
      }
    }
  }
  EXPECT_EQ(digest(collection), whole);
  EXPECT_GE(bytes, 3 * 8 * (4 + 2));
}

INSTANTIATE_TEST_SUITE_P(Optimizers, TableDigest,
                         ::testing::Values(SHARDREC_OPTIMIZER_SGD,
                                           SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD,
                                           SHARDREC_OPTIMIZER_ADAGRAD, SHARDREC_OPTIMIZER_ADAM,
                                           SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_ADAM));

}  // namespace
}  // namespace shardrec::test
