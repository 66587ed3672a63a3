// Ids that repeat travel once: fewer bytes, the same results.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "embedding/comparison.h"
#include "embedding/exchange/inbox.h"
#include "embedding/exchange/route.h"
#include "embedding/step_tools.h"
#include "embedding/variations.h"
#include "support/plan_boxes.h"

namespace shardrec::test {
namespace {

class Deduplicate : public ::testing::TestWithParam<int> {};

TEST_P(Deduplicate, ChangesNoBitAndAddsNoByte) {
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()) + 20000);
  Scenario scenario = random_scenario(random, 10);
  add_sequences(scenario, random);
  add_stray_ids(scenario, random);
  for (const int ranks : {2, 3, 8}) {
    SCOPED_TRACE("ranks " + std::to_string(ranks));
    Deal deal = random_deal(scenario, random, ranks);
    const Outcome plain = train(scenario, deal);
    deal.deduplicate = true;
    const Outcome spared = train(scenario, deal);
    if (HasFatalFailure()) return;
    expect_same_run(plain, spared);
    EXPECT_LE(spared.bytes_input, plain.bytes_input);
    EXPECT_LE(spared.bytes_output, plain.bytes_output);
    EXPECT_EQ(spared.bytes_gradient, plain.bytes_gradient);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Deduplicate, ::testing::Range(0, seeds(8)));

// A pooled feature and a sequence on one table of many rows, with frequencies like 1 / rank.
Scenario skewed() {
  Scenario scenario;
  scenario.tables = {{100000, 16}};
  scenario.features = {{0, false, false}, {0, false, true}};
  std::mt19937_64 random(7);
  scenario.steps.resize(2);
  for (auto& step : scenario.steps) {
    for (int s = 0; s < 256; ++s) {
      Sample sample;
      sample.bags.resize(2);
      sample.weights.resize(2);
      sample.sequence_gradients.resize(2);
      for (size_t f = 0; f < 2; ++f) {
        for (int i = 0; i < 20; ++i) {
          const double uniform = std::uniform_real_distribution<>(0, 1)(random);
          sample.bags[f].push_back(50 * (static_cast<int64_t>(std::pow(2000.0, uniform)) - 1));
          sample.weights[f].push_back(1);
        }
      }
      sample.gradient.assign(16, 0.25F);
      sample.sequence_gradients[1].assign(20 * 16, 0.5F);
      step.push_back(std::move(sample));
    }
  }
  return scenario;
}

TEST(DeduplicateBytes, AreSparedWhereIdsAreSkewed) {
  const Scenario scenario = skewed();
  std::mt19937_64 random(1);
  Deal deal = named_deal(scenario, random, 2, 2, SHARDREC_SHARDING_ROW_WISE);
  deal.share.assign(2, {128, 128});
  const Outcome plain = train(scenario, deal);
  deal.deduplicate = true;
  const Outcome spared = train(scenario, deal);
  EXPECT_EQ(plain.outputs, spared.outputs);
  EXPECT_EQ(plain.sequences, spared.sequences);
  EXPECT_EQ(plain.tables, spared.tables);
  EXPECT_LT(static_cast<double>(spared.bytes_input), 0.95 * static_cast<double>(plain.bytes_input));
  EXPECT_LT(static_cast<double>(spared.bytes_output),
            0.8 * static_cast<double>(plain.bytes_output));
}

// Messages as they travel, without a table behind them: every width of codes.
struct Width {
  int64_t rows;
  int64_t unique;
  int64_t ids;
  bool coded;
};

class DeduplicatedMessage : public ::testing::TestWithParam<Width> {};

TEST_P(DeduplicatedMessage, ReadsAsThePlainOneAndIsNotLonger) {
  const Width width = GetParam();
  plan::Model model;
  plan::add_table(model, {.name = "t", .rows = width.rows, .dim = 4});
  plan::add_feature(model, {.name = "f", .table = 0});
  plan::Plan plan{{2, 2}, std::vector<plan::TablePlan>(1)};
  plan::add_box(plan, model, 0, {1, {0, width.rows, 0, 4}});
  const embedding::Layout source(model, plan, 0);
  const embedding::Layout owner(model, plan, 1);

  std::vector<int64_t> values;
  for (int64_t i = 0; i < width.ids; ++i) {
    values.push_back((i * 7919) % width.unique * (width.rows / width.unique));
  }
  std::vector<int64_t> lengths = {width.ids - 3, 0, 3};
  std::vector<float> weights;
  for (int64_t i = 0; i < width.ids; ++i) weights.push_back(static_cast<float>(i));
  shardrec_tensor ids{};
  shardrec_tensor bags{};
  shardrec_tensor factors{};
  ASSERT_EQ(shardrec_tensor_vector(values.data(), SHARDREC_INT64, width.ids, &ids), SHARDREC_OK);
  ASSERT_EQ(shardrec_tensor_vector(lengths.data(), SHARDREC_INT64, 3, &bags), SHARDREC_OK);
  ASSERT_EQ(shardrec_tensor_vector(weights.data(), SHARDREC_FLOAT32, width.ids, &factors),
            SHARDREC_OK);
  embedding::StepTools tools(1);
  embedding::CheckedBatch batch{compute::cpu_memory()};
  const embedding::BatchArguments arguments{
      .batch_size = 3, .values = &ids, .lengths = &bags, .weights = &factors};

  size_t bytes[2] = {};
  for (const bool deduplicates : {false, true}) {
    embedding::RoutedBatch routed(source, false, tools.scratch(), compute::cpu_memory());
    routed.set_deduplicates(deduplicates);
    const auto buffer = tools.bodies().make_buffer();
    ASSERT_TRUE(routed.route(batch, arguments, tools.backend(), *buffer).good());
    bytes[deduplicates] = routed.messages()[1].size();
    EXPECT_EQ(routed.blocks(1)[0].unique, deduplicates && width.coded ? width.unique : 0);
    // Rank 1's own message says that it has nothing.
    embedding::InputHeader none;
    std::vector<comm::ConstBytes> received = {routed.messages()[1],
                                              std::as_bytes(std::span(&none, 1))};
    embedding::Inbox inbox(owner, tools.bodies(), tools.scratch());
    inbox.open(received);
    const embedding::ReceivedBlock& block = inbox.blocks(0)[0];
    ASSERT_EQ(block.ids, width.ids);
    EXPECT_EQ(block.bags, 2);
    EXPECT_EQ(block.id_data.is_64, width.rows >= int64_t{1} << 31);
    for (int64_t i = 0; i < width.ids; ++i) {
      const auto n = static_cast<size_t>(i);
      const int64_t id = block.id_data.is_64 ? static_cast<const int64_t*>(block.id_data.data)[i]
                                             : static_cast<const int32_t*>(block.id_data.data)[i];
      ASSERT_EQ(id, values[n]) << i;
      ASSERT_EQ(block.weights[i], weights[n]) << i;
    }
  }
  if (width.coded) {
    EXPECT_LT(bytes[1], bytes[0]);
  } else {
    EXPECT_EQ(bytes[1], bytes[0]);
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, DeduplicatedMessage,
                         ::testing::Values(Width{1000, 1, 100, true}, Width{1000, 256, 1000, true},
                                           Width{1000, 257, 1000, true},
                                           Width{1000, 1000, 1000, false}, Width{1000, 1, 8, false},
                                           Width{1000000, 70000, 150000, false},
                                           Width{int64_t{1} << 31, 256, 1000, true},
                                           Width{int64_t{1} << 31, 60000, 100000, true},
                                           Width{int64_t{1} << 31, 70000, 150000, true},
                                           Width{int64_t{1} << 31, 100000, 150000, false}));

TEST(DeduplicatedMessage, CodesBeyondTheDictionaryAreCorruptData) {
  plan::Model model;
  plan::add_table(model, {.name = "t", .rows = 1000, .dim = 4});
  plan::add_feature(model, {.name = "f", .table = 0});
  plan::Plan plan{{2, 2}, std::vector<plan::TablePlan>(1)};
  plan::add_box(plan, model, 0, {1, {0, 1000, 0, 4}});
  const embedding::Layout source(model, plan, 0);
  const embedding::Layout owner(model, plan, 1);
  std::vector<int64_t> values(100, 5);
  std::vector<int64_t> lengths = {100};
  shardrec_tensor ids{};
  shardrec_tensor bags{};
  ASSERT_EQ(shardrec_tensor_vector(values.data(), SHARDREC_INT64, 100, &ids), SHARDREC_OK);
  ASSERT_EQ(shardrec_tensor_vector(lengths.data(), SHARDREC_INT64, 1, &bags), SHARDREC_OK);
  embedding::StepTools tools(1);
  embedding::CheckedBatch batch{compute::cpu_memory()};
  embedding::RoutedBatch routed(source, false, tools.scratch(), compute::cpu_memory());
  routed.set_deduplicates(true);
  const auto buffer = tools.bodies().make_buffer();
  const embedding::BatchArguments arguments{.batch_size = 1, .values = &ids, .lengths = &bags};
  ASSERT_TRUE(routed.route(batch, arguments, tools.backend(), *buffer).good());
  std::vector<std::byte> message(routed.messages()[1].begin(), routed.messages()[1].end());
  message[message.size() - 8] = std::byte{9};  // a code; the last ones are padding
  embedding::InputHeader none;
  std::vector<comm::ConstBytes> received = {message, std::as_bytes(std::span(&none, 1))};
  embedding::Inbox inbox(owner, tools.bodies(), tools.scratch());
  EXPECT_THROW(inbox.open(received), core::Error);
}

}  // namespace
}  // namespace shardrec::test
