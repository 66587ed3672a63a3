// Callbacks per bucket, hooks in the place of the exchange, and steps taken inside the backward.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "dense/ddp_api.h"

namespace shardrec::test {
namespace {

struct Calls {
  HostSet* set = nullptr;
  std::vector<int32_t> buckets;
  std::vector<shardrec_status> statuses;
  std::vector<float> seen;  // the first gradient of each bucket's parameter
};

void record(void* context, int32_t bucket) {
  auto& calls = *static_cast<Calls*>(context);
  shardrec_ddp* ddp = calls.set->ddp;
  calls.buckets.push_back(bucket);
  const auto parameter = static_cast<int64_t>(calls.set->values.size()) - 1 - bucket;
  shardrec_tensor view{};
  int32_t of = -1;
  char* text = nullptr;
  EXPECT_OK(shardrec_ddp_gradient(ddp, parameter, &view));
  EXPECT_OK(shardrec_ddp_bucket_of(ddp, parameter, &of));
  EXPECT_EQ(of, bucket);
  calls.seen.push_back(*static_cast<const float*>(view.data));
  for (const shardrec_status status :
       {shardrec_ddp_step(ddp), shardrec_ddp_end(ddp), shardrec_ddp_wait(ddp),
        shardrec_ddp_begin(ddp, 1), shardrec_ddp_zero_gradients(ddp),
        shardrec_ddp_clip_gradients(ddp, SHARDREC_CLIP_L2, 1, nullptr),
        shardrec_ddp_set_learning_rate(ddp, 1), shardrec_ddp_check_equal(ddp),
        shardrec_ddp_statistics_json(ddp, &text)}) {
    calls.statuses.push_back(status);
  }
}

TEST(DdpCallback, ComesPerBucketInTheirOrderAndCallsInsideItAreRefused) {
  run_ranks(2, [](shardrec_comm* comm, int rank) {
    HostSet set(comm, small_buckets(), {3, 2, 4, 1});
    Calls calls;
    calls.set = &set;
    ASSERT_OK(shardrec_ddp_set_optimizer(set.ddp, nullptr));
    ASSERT_OK(shardrec_ddp_set_callback(set.ddp, record, &calls));
    ASSERT_OK(shardrec_ddp_commit(set.ddp));
    EXPECT_EQ(shardrec_ddp_set_callback(set.ddp, nullptr, nullptr), SHARDREC_INVALID_STATE);
    for (int step = 0; step < 5; ++step) {
      for (size_t p = 0; p < 4; ++p) set.gradients[p][0] = static_cast<float>(p * 10 + 2 * rank);
      ASSERT_OK(shardrec_ddp_begin(set.ddp, 1));
      for (const int64_t p : {2, 0, 3, 1}) ASSERT_OK(shardrec_ddp_mark_ready(set.ddp, p, 1));
      ASSERT_OK(shardrec_ddp_end(set.ddp));
      ASSERT_OK(shardrec_ddp_wait(set.ddp));
      EXPECT_EQ(calls.buckets, (std::vector<int32_t>{0, 1, 2, 3}));
      EXPECT_EQ(calls.seen, (std::vector<float>{31, 21, 11, 1})) << "reduced already";
      for (const shardrec_status status : calls.statuses) {
        EXPECT_EQ(status, SHARDREC_INVALID_STATE);
      }
      calls.buckets.clear();
      calls.seen.clear();
    }
    ASSERT_OK(shardrec_ddp_begin(set.ddp, 0));
    ASSERT_OK(shardrec_ddp_end(set.ddp));
    ASSERT_OK(shardrec_ddp_wait(set.ddp));
    EXPECT_TRUE(calls.buckets.empty()) << "without sync nothing is reduced";
    EXPECT_OK(shardrec_comm_close(comm));
  });
}

struct Exchange {
  shardrec_ddp* ddp = nullptr;
  std::vector<float> got;
  shardrec_status answer = SHARDREC_OK;
};

// Instead of a mean: minus what this rank has, for the test to tell who has written.
shardrec_status negate(void* context, int32_t bucket, const shardrec_tensor* buffer) {
  auto& exchange = *static_cast<Exchange*>(context);
  auto* data = static_cast<float*>(buffer->data);
  for (int64_t i = 0; i < buffer->shape[0]; ++i) {
    exchange.got.push_back(data[i]);
    data[i] = -100 - static_cast<float>(bucket);
  }
  EXPECT_EQ(shardrec_ddp_wait(exchange.ddp), SHARDREC_INVALID_STATE) << "inside a hook";
  return bucket == 1 ? exchange.answer : SHARDREC_OK;
}

TEST(DdpHook, TakesThePlaceOfTheExchange) {
  run_ranks(2, [](shardrec_comm* comm, int rank) {
    HostSet set(comm, small_buckets(), {2, 3});
    Exchange exchange{.ddp = set.ddp};
    ASSERT_OK(shardrec_ddp_set_hook(set.ddp, negate, &exchange));
    ASSERT_OK(shardrec_ddp_commit(set.ddp));
    const auto own = static_cast<float>(rank);
    for (int step = 0; step < 3; ++step) {
      exchange.got.clear();
      set.gradients[0] = {own, 1};
      set.gradients[1] = {own, 2, 3};
      ASSERT_OK(shardrec_ddp_all_reduce(set.ddp));
      EXPECT_EQ(exchange.got, (std::vector<float>{own, 2, 3, own, 1})) << "this rank's own";
      EXPECT_EQ(set.gradients[1], (std::vector<float>{-100, -100, -100}));
      EXPECT_EQ(set.gradients[0], (std::vector<float>{-101, -101}));
    }
    EXPECT_OK(shardrec_comm_close(comm));
  });
}

TEST(DdpHook, AnotherStatusEndsTheStepAndTheCommunicator) {
  run_ranks(2, [](shardrec_comm* comm, int) {
    HostSet set(comm, small_buckets(), {2, 3});
    Exchange exchange{.ddp = set.ddp, .got = {}, .answer = SHARDREC_IO_ERROR};
    ASSERT_OK(shardrec_ddp_set_hook(set.ddp, negate, &exchange));
    ASSERT_OK(shardrec_ddp_commit(set.ddp));
    // What a hook returned; or a peer's failure, where that was faster.
    const shardrec_status status = shardrec_ddp_all_reduce(set.ddp);
    EXPECT_TRUE(status == SHARDREC_IO_ERROR || status == SHARDREC_PEER_FAILED) << status;
    EXPECT_NE(shardrec_comm_status(comm), SHARDREC_OK);
    EXPECT_NE(shardrec_ddp_begin(set.ddp, 1), SHARDREC_OK);
  });
}

TEST(DdpHook, IsSetOnAllRanksOrOnNone) {
  run_ranks(2, [](shardrec_comm* comm, int rank) {
    HostSet set(comm, nullptr, {2});
    Exchange exchange{.ddp = set.ddp};
    ASSERT_OK(shardrec_ddp_set_hook(set.ddp, rank == 1 ? negate : nullptr, &exchange));
    EXPECT_EQ(shardrec_ddp_commit(set.ddp), SHARDREC_DISAGREEMENT);
    EXPECT_TRUE(contains(shardrec_last_error(), "hook")) << shardrec_last_error();
    EXPECT_OK(shardrec_comm_close(comm));
  });
}

// After some steps: the values, one parameter behind the other.
std::vector<float> trained(const char* optimizer, bool in_backward, int ranks) {
  std::vector<float> result;
  run_ranks(ranks, [&](shardrec_comm* comm, int rank) {
    Options options = small_buckets();
    ASSERT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_DDP_STEP_IN_BACKWARD, in_backward));
    Options its;
    ASSERT_OK(shardrec_options_create(SHARDREC_OPTIONS_OPTIMIZER, its.out()));
    ASSERT_OK(shardrec_options_set_text(its, SHARDREC_OPTION_OPTIMIZER, optimizer));
    ASSERT_OK(shardrec_options_set_f64(its, SHARDREC_OPTION_LEARNING_RATE, 0.05));
    HostSet set(comm, options, {300, 1, 77});
    for (size_t p = 0; p < 3; ++p) {
      for (size_t i = 0; i < set.values[p].size(); ++i) {
        set.values[p][i] = std::cos(static_cast<float>(i * 3 + p));
      }
    }
    ASSERT_OK(shardrec_ddp_set_optimizer(set.ddp, its));
    ASSERT_OK(shardrec_ddp_commit(set.ddp));
    for (int step = 0; step < 6; ++step) {
      ASSERT_OK(shardrec_ddp_begin(set.ddp, 1));
      for (const size_t p : {2U, 0U, 1U}) {
        for (size_t i = 0; i < set.values[p].size(); ++i) {
          set.gradients[p][i] = std::sin(static_cast<float>(i + p * 7) + static_cast<float>(rank) +
                                         static_cast<float>(step));
        }
        ASSERT_OK(shardrec_ddp_mark_ready(set.ddp, static_cast<int64_t>(p), 1));
      }
      ASSERT_OK(shardrec_ddp_end(set.ddp));
      ASSERT_OK(shardrec_ddp_wait(set.ddp));
      if (!in_backward) {
        ASSERT_OK(shardrec_ddp_step(set.ddp));
        continue;
      }
      EXPECT_EQ(shardrec_ddp_step(set.ddp), SHARDREC_INVALID_STATE);
      EXPECT_EQ(shardrec_ddp_clip_gradients(set.ddp, SHARDREC_CLIP_L2, 1, nullptr),
                SHARDREC_INVALID_STATE);
    }
    EXPECT_OK(shardrec_ddp_check_equal(set.ddp));
    if (rank == 0) {
      for (const auto& values : set.values)
        result.insert(result.end(), values.begin(), values.end());
    }
    EXPECT_OK(shardrec_comm_close(comm));
  });
  return result;
}

TEST(DdpStepInBackward, HasTheBitsOfAStepAfterIt) {
  for (const int ranks : {1, 2}) {
    for (const char* optimizer : {"sgd", "momentum_sgd", "adagrad", "adam", "lamb"}) {
      const std::vector<float> after = trained(optimizer, false, ranks);
      ASSERT_EQ(after.size(), 378U);
      EXPECT_NE(after[0], 1.0F) << "cos 0: nothing was stepped";
      EXPECT_EQ(trained(optimizer, true, ranks), after) << optimizer << ", ranks " << ranks;
    }
  }
}

TEST(DdpStepInBackward, NeedsAnOptimizer) {
  run_ranks(1, [](shardrec_comm* comm, int) {
    Options options = small_buckets();
    ASSERT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_DDP_STEP_IN_BACKWARD, 1));
    HostSet set(comm, options, {2});
    EXPECT_EQ(shardrec_ddp_commit(set.ddp), SHARDREC_INVALID_STATE);
    EXPECT_TRUE(contains(shardrec_last_error(), "optimizer")) << shardrec_last_error();
  });
}

}  // namespace
}  // namespace shardrec::test
