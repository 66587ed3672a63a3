// Partial sums that are added up on their node before they cross: the same bits, one sum per node.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>

#include "embedding/comparison.h"
#include "embedding/exchange/wire.h"
#include "embedding/forward/node_sums.h"
#include "embedding/step_tools.h"
#include "embedding/variations.h"
#include "support/plan_boxes.h"
#include "support/ranks.h"

namespace shardrec::test {
namespace {

class Hierarchical : public ::testing::TestWithParam<int> {};

TEST_P(Hierarchical, ChangesNoBit) {
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()) + 70000);
  Scenario scenario = random_scenario(random, 6);
  add_sequences(scenario, random);
  add_stray_ids(scenario, random);
  for (const int ranks : {3, 4, 8}) {
    for (const int per_node : {2, 3, 4}) {
      SCOPED_TRACE("ranks " + std::to_string(ranks) + ", of a node " + std::to_string(per_node));
      Deal deal = random_deal(scenario, random, ranks);
      deal.ranks_per_node = std::min(per_node, ranks);
      deal.form = per_node == 3 ? BatchForm::kVariableUnique : BatchForm::kPlain;
      deal.deduplicate = per_node == 4;
      const Outcome flat = train(scenario, deal);
      deal.hierarchical = true;
      const Outcome staged = train(scenario, deal);
      if (HasFatalFailure()) return;
      expect_same_run(flat, staged);
      EXPECT_EQ(flat.bytes_gradient, staged.bytes_gradient);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Hierarchical, ::testing::Range(0, seeds(8)));

// Two nodes of two ranks, a table cut over the four of them; rank 1 adds up what ranks 0 and 1 have
// of rank 3's bags.
class NodeSumsOfFour : public ::testing::Test {
 protected:
  NodeSumsOfFour() {
    plan::add_table(model_, {.name = "t", .rows = 8, .dim = 4});
    plan::add_feature(model_, {.name = "f", .table = 0});
    for (int r = 0; r < 4; ++r) plan::add_box(plan_, model_, 0, {r, {2 * r, 2, 0, 4}});
  }

  // What an owner's message begins with: for samples 0 to 69, rows for those of `samples`.
  static void append(std::vector<std::byte>& message, const std::vector<int>& samples,
                     float value) {
    constexpr int kSamples = 70;
    const size_t head = embedding::partial_head_bytes(1);
    const auto count = static_cast<int64_t>(samples.size());
    const size_t presence = embedding::presence_bytes(kSamples);
    message.resize(head + presence + embedding::rows_bytes(count, 4));
    std::byte* at = message.data() + head;
    const embedding::PartialHeader header{kSamples, static_cast<uint32_t>(count)};
    std::memcpy(message.data(), &header, sizeof header);
    uint64_t words[2] = {};
    for (const int sample : samples) words[sample / 64] |= uint64_t{1} << (sample % 64);
    std::memcpy(at, words, sizeof words);
    for (int64_t i = 0; i < 4 * count; ++i) {
      const float x = value + static_cast<float>(i);
      std::memcpy(at + presence + static_cast<size_t>(i) * sizeof x, &x, sizeof x);
    }
  }

  plan::Model model_;
  plan::Plan plan_{{4, 2}, std::vector<plan::TablePlan>(1)};
  embedding::StepTools tools_{2};
  // The rest of the bodies, for OutputAssembly.
  std::span<const comm::ConstBytes> open(embedding::NodeSums& node_sums,
                                         std::span<const comm::ConstBytes> messages) {
    return node_sums.open(messages, bodies_->open(messages, node_sums.heads(messages)),
                          tools_.backend());
  }

  std::unique_ptr<comm::MessageBuffer> sums_ = tools_.bodies().make_buffer();
  std::unique_ptr<comm::ReceivedBodies> bodies_ = tools_.bodies().make_received();
};

TEST_F(NodeSumsOfFour, AddsWhatPartsHaveAndLeavesTheRest) {
  const embedding::Layout layout(model_, plan_, 1, true);
  ASSERT_TRUE(layout.sums_on_nodes());
  EXPECT_EQ(layout.adder(3, 0), 1);
  EXPECT_EQ(layout.adder(2, 0), 0);
  embedding::NodeSums node_sums(layout);
  std::vector<std::byte> of_0, of_1;
  append(of_0, {2, 65}, 100);
  append(of_1, {2, 3, 69}, 1000);
  of_0.resize(of_0.size() + 64, std::byte{7});
  const std::vector<comm::ConstBytes> messages = {of_0, of_1, {}, {}};
  const auto rests = open(node_sums, messages);
  EXPECT_EQ(rests[0].size(), 64U);
  EXPECT_EQ(rests[1].size(), 0U);
  node_sums.compute(tools_.backend(), *sums_);
  for (const size_t r : {0U, 1U, 2U}) EXPECT_EQ(node_sums.messages()[r].size(), 0U);
  const comm::ConstBytes message = node_sums.messages()[3];
  ASSERT_EQ(message.size(), embedding::rows_bytes(4, 4));
  std::vector<float> values(16);
  std::memcpy(values.data(), message.data(), 16 * sizeof(float));
  EXPECT_EQ(values, (std::vector<float>{1100, 1102, 1104, 1106,     // sample 2 of both
                                        1004, 1005, 1006, 1007,     // 3
                                        104, 105, 106, 107,         // 65
                                        1008, 1009, 1010, 1011}));  // 69
}

TEST_F(NodeSumsOfFour, RefusesWhatIsNotAsLongAsItSays) {
  const embedding::Layout layout(model_, plan_, 1, true);
  embedding::NodeSums node_sums(layout);
  std::vector<std::byte> good;
  append(good, {2, 65}, 100);
  const auto refused = [&](const std::vector<std::byte>& bad) {
    const std::vector<comm::ConstBytes> messages = {good, bad, {}, {}};
    try {
      open(node_sums, messages);
    } catch (const core::Error& error) {
      EXPECT_EQ(error.status(), SHARDREC_CORRUPT_DATA);
      return true;
    }
    return false;
  };
  EXPECT_FALSE(refused(good));
  for (const size_t size :
       {size_t{0}, size_t{7}, size_t{8}, size_t{63}, size_t{64}, good.size() - 1}) {
    EXPECT_TRUE(refused({good.begin(), good.begin() + static_cast<ptrdiff_t>(size)})) << size;
  }
  for (const size_t byte : {0U, 4U, 7U, 64U}) {  // samples, rows, presence
    std::vector<std::byte> bad = good;
    bad[byte] ^= std::byte{0x40};
    EXPECT_TRUE(refused(bad)) << byte;
  }
}

// What every rank is told when it makes a collection with such options.
void expect_options_refused(
    shardrec_status status, const std::string& words,
    const std::function<void(int rank, shardrec_options* options)>& choose) {
  run_ranks(3, 3, [&](int rank, shardrec_comm* comm) {
    shardrec_model* model = nullptr;
    SR_OK(shardrec_model_create(nullptr, &model));
    SR_OK(shardrec_model_add_table(model, "t", 10, 4, nullptr, nullptr));
    SR_OK(shardrec_model_add_feature(model, 0, "f", SHARDREC_POOLING_SUM));
    shardrec_plan* plan = nullptr;
    SR_OK(shardrec_plan_collective(comm, nullptr, model, nullptr, &plan));
    shardrec_options* options = nullptr;
    SR_OK(shardrec_options_create(SHARDREC_OPTIONS_COLLECTION, &options));
    choose(rank, options);
    shardrec_collection* tables = nullptr;
    EXPECT_EQ(shardrec_collection_create(comm, nullptr, model, plan, options, &tables), status);
    const std::string sentence = shardrec_last_error();
    EXPECT_NE(sentence.find("HIERARCHICAL"), std::string::npos) << sentence;
    EXPECT_NE(sentence.find(words), std::string::npos) << sentence;
    shardrec_options_destroy(&options);
    shardrec_plan_destroy(&plan);
    shardrec_model_destroy(&model);
  });
}

TEST(HierarchicalOption, DoesNotGoWithCompression) {
  expect_options_refused(
      SHARDREC_UNSUPPORTED, "FORWARD_COMPRESSION", [](int, shardrec_options* options) {
        SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_HIERARCHICAL, 1));
        SR_OK(shardrec_options_set_text(options, SHARDREC_OPTION_FORWARD_COMPRESSION, "float16"));
      });
}

TEST(HierarchicalOption, MustBeTheSameOnAllRanks) {
  expect_options_refused(SHARDREC_DISAGREEMENT, "rank 2", [](int rank, shardrec_options* options) {
    SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_HIERARCHICAL, rank == 2 ? 1 : 0));
  });
}

}  // namespace
}  // namespace shardrec::test
