// The exchanges of a collection that are not reclaimed: as many as the largest step needs, and not one
// more.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "comm/local/local_group.h"
#include "core/error.h"
#include "embedding/collection.h"
#include "embedding/lookup.h"
#include "planner/planner.h"
#include "support/plan_boxes.h"
#include "support/ranks.h"

namespace shardrec::embedding {
namespace {

constexpr int64_t kExchangedRows = 10;
constexpr int64_t kExchangedDim = 8;

// A table cut by columns whose optimizer sums over whole rows and whose rows have a largest norm, and one that is
// replicated by rows, on a mesh whose replicas share states: with the gradients of weights, a step exchanges all there is.
std::shared_ptr<Collection> everything(const std::shared_ptr<comm::local::Group>& group, int rank) {
  plan::Model model;
  plan::set_optimizer(model, {.kind = SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD, .max_norm = 0.01});
  for (const char* name : {"cut", "replicated"}) {
    const int32_t table =
        plan::add_table(model, {.name = name, .rows = kExchangedRows, .dim = kExchangedDim});
    plan::add_feature(model, {.name = name, .table = table, .pooling = SHARDREC_POOLING_SUM});
  }
  plan::Plan plan{.topology = {.ranks = 2, .ranks_per_node = 2},
                  .tables = std::vector<plan::TablePlan>(2)};
  plan::add_box(plan, model, 0,
                {.rank = 0,
                 .cells = {.row = 0, .rows = kExchangedRows, .col = 0, .cols = kExchangedDim / 2}});
  plan::add_box(
      plan, model, 0,
      {.rank = 1,
       .cells = {
           .row = 0, .rows = kExchangedRows, .col = kExchangedDim / 2, .cols = kExchangedDim / 2}});
  plan::replicate(plan, model, 1, SHARDREC_REPLICATION_ROWS);
  return std::make_shared<Collection>(
      comm::local::join(group, rank),
      ShardingGroups{.count = 2, .size = 2, .exact = true, .share_states = true}, model, plan,
      CollectionOptions{.threads = 1});
}

TEST(Exchanges, OfTheLargestStepAreAsManyAsMayBeHeld) {
  const auto group = comm::local::make_group(4, 4);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    ranks.emplace_back([&group, rank] {
      const auto collection = everything(group, rank);
      Lookup lookups[] = {Lookup(collection, {.weight_gradient = true}),
                          Lookup(collection, {.weight_gradient = true})};
      for (int step = 0; step < 3; ++step) {
        std::vector<int64_t> ids = {rank, 3, 5, 9};
        std::vector<int64_t> lengths = {2, 2};
        const shardrec_tensor values = test::vector_of(ids);
        const shardrec_tensor counts = test::vector_of(lengths);
        std::vector<float> out(2 * kExchangedDim);
        std::vector<float> gradient(2 * kExchangedDim, 0.5F);
        const shardrec_tensor outputs = test::matrix(out.data(), 1, 2 * kExchangedDim);
        const shardrec_tensor gradients = test::matrix(gradient.data(), 1, 2 * kExchangedDim);
        for (Lookup& lookup : lookups) {
          lookup.begin({.batch_size = 1, .values = &values, .lengths = &counts});
          lookup.forward(0, &outputs);
          lookup.set_gradient(0, &gradients);
        }
        // The second one's first exchange comes while those of the first one are held.
        for (Lookup& lookup : lookups) {
          lookup.backward();
          EXPECT_EQ(collection->ordered().held() + 1, OrderedChannel::kMostHeld);
        }
      }
      EXPECT_EQ(collection->step(), 6);
      collection->ordered().settle();
      EXPECT_EQ(collection->ordered().held(), 0U);
      collection->communicator().leave();
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

TEST(Exchanges, BeyondTheMostThatMayBeHeldAreRefused) {
  plan::Model model;
  plan::add_table(model, {.name = "t", .rows = kExchangedRows, .dim = kExchangedDim});
  const plan::Plan plan =
      planner::make_plan(model, {.ranks = 1, .ranks_per_node = 1}, SHARDREC_SHARDING_TABLE_WISE);
  Collection collection(comm::local::join(comm::local::make_group(1, 1), 0), model, plan,
                        {.threads = 1});
  const std::vector<comm::ConstBytes> nothing(1);
  const auto exchange = [&] {
    (void)collection.ordered().exchange(ExchangeKind::kSync, "test", 0, nothing, nullptr);
  };
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < OrderedChannel::kMostHeld; ++i) exchange();
    try {
      exchange();
      ADD_FAILURE() << "one more was exchanged";
    } catch (const core::Error& error) {
      EXPECT_EQ(error.status(), SHARDREC_INTERNAL);
    }
    EXPECT_EQ(collection.ordered().held(), OrderedChannel::kMostHeld);
    collection.ordered().settle();  // and goes on
  }
}

}  // namespace
}  // namespace shardrec::embedding
