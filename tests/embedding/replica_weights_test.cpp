// Messages with the new weights of rows, of groups that share optimizer states: what is read, and what is refused before a
// row is written.
#include "embedding/backward/replica_weights.h"

#include <gtest/gtest.h>

#include <barrier>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/local/local_group.h"
#include "core/error.h"
#include "embedding/collection.h"
#include "planner/planner.h"
#include "support/plan_boxes.h"

namespace shardrec::embedding {
namespace {

constexpr int64_t kBoxRows = 9;  // of which the first replica updates five
constexpr int64_t kBoxDim = 9;

std::shared_ptr<Collection> replica_that_shares(const std::shared_ptr<comm::local::Group>& group,
                                                int rank) {
  plan::Model model;
  plan::set_optimizer(model, {.kind = SHARDREC_OPTIMIZER_ADAGRAD});
  const int32_t table = plan::add_table(model, {.name = "t", .rows = kBoxRows, .dim = kBoxDim});
  plan::add_feature(model, {.name = "f", .table = table, .pooling = SHARDREC_POOLING_SUM});
  const plan::Plan plan =
      planner::make_plan(model, {.ranks = 1, .ranks_per_node = 1}, SHARDREC_SHARDING_TABLE_WISE);
  return std::make_shared<Collection>(
      comm::local::join(group, rank),
      ShardingGroups{.count = 2, .size = 1, .exact = true, .share_states = true}, model, plan,
      CollectionOptions{.threads = 1});
}

std::vector<float> weights_of(Collection& collection) {
  std::vector<float> weights(kBoxRows * kBoxDim);
  std::memcpy(weights.data(), collection.shards()[0].weights(), weights.size() * sizeof(float));
  return weights;
}

// Words of a message that are wrong: how many rows, and their numbers.
struct Forgery {
  const char* name;
  std::function<void(std::vector<int64_t>& words)> make;
};

TEST(ReplicaWeights, AreWrittenWhereTheirNumbersSayAndRefusedWhereTheseAreNotTheSendersRows) {
  const std::vector<Forgery> forgeries = {
      {"more rows than it updates", [](auto& words) { words[0] = 6; }},
      {"fewer rows than none", [](auto& words) { words[0] = -1; }},
      {"fewer rows than there are", [](auto& words) { words[0] = 1; }},
      {"a row of another replica", [](auto& words) { words[2] = 5; }},
      {"a row before the box", [](auto& words) { words[1] = -1; }},
      {"a row twice", [](auto& words) { words[2] = words[1]; }},
      {"cut off", [](auto& words) { words.pop_back(); }},
      {"nothing", [](auto& words) { words.clear(); }}};
  const auto group = comm::local::make_group(2, 2);
  std::vector<int64_t> sent;
  std::vector<float> of_sender;
  std::barrier<> written(2);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      const auto collection = replica_that_shares(group, rank);
      ASSERT_EQ(collection->shards().size(), 2U);
      ASSERT_FALSE(collection->shards()[0].borrows_weights());
      ReplicaWeights weights(collection->context());
      ASSERT_TRUE(weights.needed());
      const auto buffer = collection->bodies().make_buffer();
      if (rank == 0) {
        auto* const own =
            static_cast<float*>(static_cast<void*>(collection->shards()[1].weights()));
        for (int64_t c = 0; c < kBoxDim; ++c) own[1 * kBoxDim + c] = own[4 * kBoxDim + c] = 7;
        of_sender = weights_of(*collection);
        const std::vector<int64_t> updated = {1, 4};
        const std::vector<std::span<const int64_t>> rows = {{}, updated};
        weights.pack(rows, *buffer);
        EXPECT_TRUE(weights.messages()[0].empty());
        const comm::ConstBytes message = weights.messages()[1];
        sent.resize(message.size() / sizeof(int64_t));
        std::memcpy(sent.data(), message.data(), message.size());
      }
      written.arrive_and_wait();
      if (rank == 1) {
        const std::vector<float> before = weights_of(*collection);
        EXPECT_NE(before, of_sender);
        const auto take = [&](const std::vector<int64_t>& words) {
          const std::vector<comm::ConstBytes> messages = {std::as_bytes(std::span(words)), {}};
          weights.take(messages);
        };
        for (const Forgery& forgery : forgeries) {
          std::vector<int64_t> words = sent;
          forgery.make(words);
          try {
            take(words);
            ADD_FAILURE() << forgery.name << " was taken";
          } catch (const core::Error& error) {
            EXPECT_EQ(error.status(), SHARDREC_CORRUPT_DATA) << forgery.name;
            EXPECT_EQ(error.parts().rank, 0) << forgery.name;
          }
          EXPECT_EQ(weights_of(*collection), before) << forgery.name;
        }
        take(sent);
        EXPECT_EQ(weights.taken(), 2);
        EXPECT_EQ(weights_of(*collection), of_sender);
      }
      collection->communicator().leave();
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

}  // namespace
}  // namespace shardrec::embedding
