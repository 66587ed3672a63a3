// The promises of the numbers, exactly as the design words them, over random models, boxes, ranks
// and batches.
#include <gtest/gtest.h>

#include "compute/cpu/kernels/dispatch.h"
#include "compute/kernels.h"
#include "embedding/comparison.h"
#include "embedding/variations.h"
#include "support/meeting.h"
#include "support/ranks.h"
#include "support/structs.h"

namespace shardrec::test {
namespace {

class Promises : public ::testing::TestWithParam<int> {};

TEST_P(Promises, RandomTilingsGiveTheOneRankBits) {
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()));
  const Scenario scenario = random_scenario(random, 10);
  expect_all_promises(scenario, random);
}

TEST_P(Promises, NamedKindsGiveTheOneRankBits) {
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()) + 1000);
  const Scenario scenario = random_scenario(random, 10);
  expect_promises_of_named_kinds(scenario, random, GetParam());
}

TEST_P(Promises, ShardStatisticsFollowTheirBoxes) {
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()) + 2000);
  Scenario scenario = random_scenario(random, 10);
  scenario.optimizer.kind = SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD;
  scenario.optimizer.shard_statistics = true;
  for (const int ranks : {1, 2, 4}) {
    const Deal deal = random_deal(scenario, random, ranks);
    const Outcome run = train(scenario, deal);
    if (HasFatalFailure()) return;
    expect_reference(scenario, run, reference_train(scenario, run.initial, deal.plan));
  }
}

TEST_P(Promises, ThreadsAndInstructionSetsGiveTheSameBits) {
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()) + 3000);
  Scenario scenario = random_scenario(random, 10);
  vary_optimizers(scenario, random, static_cast<shardrec_optimizer>(1 + GetParam() % 8));
  if (GetParam() % 2 == 0) add_sequences(scenario, random);
  if (GetParam() % 3 == 0) add_stray_ids(scenario, random);
  Deal deal = random_deal(scenario, random, 2);
  deal.threads = 1;
  compute::force_cpu_kernels(&compute::cpu_kernels_at(0));
  const Outcome first = train(scenario, deal);
  for (int set = 0; set < compute::cpu_kernel_count(); ++set) {
    compute::force_cpu_kernels(&compute::cpu_kernels_at(set));
    for (const int threads : {1, 2, 4}) {
      deal.threads = threads;
      const Outcome other = train(scenario, deal);
      if (HasFatalFailure()) break;
      EXPECT_LE(other.threads_seen, threads);
      expect_same_run(first, other);
    }
  }
  compute::force_cpu_kernels(nullptr);
}

// Where the threads of a step wait for each other.
Meeting& of_lookups() {
  static Meeting meeting;
  return meeting;
}
Meeting& of_updates() {
  static Meeting meeting;
  return meeting;
}

TEST(PromisesOfThreads, AsManyThreadsWorkAsWereAskedFor) {
  Scenario scenario;
  scenario.tables.assign(4, {3000, 64});
  for (int32_t t = 0; t < 4; ++t) scenario.features.push_back({t, t % 2 == 1});
  const Sample sample = [&] {
    Sample made;
    for (const FeatureSpec& feature : scenario.features) {
      const int64_t rows = scenario.tables[static_cast<size_t>(feature.table)].rows;
      made.bags.emplace_back();
      for (int64_t i = 0; i < 20; ++i) made.bags.back().push_back(i * 7919 % rows);
      made.weights.emplace_back(20, 1.0F);
    }
    made.gradient.assign(static_cast<size_t>(scenario.width()), 0.5F);
    return made;
  }();
  scenario.steps.assign(1, std::vector<Sample>(4000, sample));
  Deal deal = one_rank(scenario);
  // Nobody finishes a piece before the others have begun one.
  compute::Kernels waiting = compute::cpu_kernels_at(0);
  waiting.pooled_lookup = [](const compute::PooledLookup& job, int64_t first,
                             int64_t last) noexcept {
    of_lookups().join();
    compute::cpu_kernels_at(0).pooled_lookup(job, first, last);
  };
  waiting.row_update = [](const compute::RowUpdate& job, int64_t first, int64_t last,
                          std::byte* scratch) noexcept {
    of_updates().join();
    compute::cpu_kernels_at(0).row_update(job, first, last, scratch);
  };
  compute::force_cpu_kernels(&waiting);
  for (const int threads : {1, 2, 4}) {
    of_lookups().expect(threads);
    of_updates().expect(threads);
    deal.threads = threads;
    EXPECT_EQ(train(scenario, deal).threads_seen, threads);
    EXPECT_EQ(of_lookups().seen(), threads);
    EXPECT_EQ(of_updates().seen(), threads);
  }
  compute::force_cpu_kernels(nullptr);
}

TEST(Outputs, MayBeAskedForAgainUntilTheNextExchange) {
  run_ranks(2, 2, [](int rank, shardrec_comm* comm) {
    shardrec_model* model = nullptr;
    SR_OK(shardrec_model_create(nullptr, &model));
    SR_OK(shardrec_model_add_table(model, "t", 10, 4, nullptr, nullptr));
    SR_OK(shardrec_model_add_feature(model, 0, "f", SHARDREC_POOLING_SUM));
    shardrec_plan* plan = nullptr;
    SR_OK(shardrec_plan_collective(comm, nullptr, model, nullptr, &plan));
    shardrec_collection* tables = nullptr;
    SR_OK(shardrec_collection_create(comm, nullptr, model, plan, nullptr, &tables));
    shardrec_lookup* lookup = nullptr;
    SR_OK(shardrec_lookup_create(tables, nullptr, &lookup));
    std::vector<int64_t> values = {rank, 9};
    std::vector<int64_t> lengths = {2};
    const shardrec_tensor values_tensor = vector_of(values);
    const shardrec_tensor lengths_tensor = vector_of(lengths);
    SR_OK(begin_batch(lookup,
                      {.batch_size = 1, .values = &values_tensor, .lengths = &lengths_tensor}));
    std::vector<float> first(4, -1);
    std::vector<float> second(4, -2);
    const shardrec_tensor first_tensor = matrix(first.data(), 1, 4);
    const shardrec_tensor second_tensor = matrix(second.data(), 1, 4);
    SR_OK(shardrec_lookup_forward(lookup, 0, &first_tensor));
    SR_OK(shardrec_lookup_forward(lookup, 0, &second_tensor));
    EXPECT_EQ(first, second);
    SR_OK(shardrec_collection_read_range(tables, 0, SHARDREC_TABLE_WEIGHTS, 0, 0, nullptr));
    EXPECT_EQ(shardrec_lookup_forward(lookup, 0, &second_tensor), SHARDREC_INVALID_STATE);
    shardrec_lookup_destroy(&lookup);
    shardrec_collection_destroy(&tables);
    shardrec_plan_destroy(&plan);
    shardrec_model_destroy(&model);
  });
}

INSTANTIATE_TEST_SUITE_P(Seeds, Promises, ::testing::Range(0, seeds(12)));

}  // namespace
}  // namespace shardrec::test
