// Sets of DDP parameters whose gradients NCCL adds up (DDP_REDUCTION), and what becomes of a job when NCCL, or a peer,
// fails: every rank is told a status, a rank and an operation in time, and no parameter was stepped by what did not come.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "nccl/ranks.h"
#include "shardrec/shardrec.hpp"

namespace shardrec::test {
namespace {

constexpr int64_t kWidth = 300;  // elements of a parameter, which is a bucket by itself
constexpr int kParameters = 3;
constexpr int kDdpSteps = 3;

using Numbers = std::vector<float>;
using State = std::vector<Numbers>;  // by parameter

struct DdpJob {
  int ranks = 3;
  bool in_backward = false;
  double step_seconds = 60;
  // What a rank does in place of waiting for a step; false: it waits.
  std::function<bool(int rank, int step)> leaves_in{};
};

struct DdpOutcome {
  std::optional<Error> error;
  double seconds = 0;         // of the step that failed
  std::vector<State> states;  // before the first step and behind each that was waited for
  State last;
  float least_gradient = 0;  // behind a step that failed; ranks bring none below 0
};

class DdpRank {
 public:
  DdpRank(const DdpJob& job, const Local& group, int rank, DdpOutcome& outcome)
      : job_(job), rank_(rank), outcome_(outcome), comm_(group, rank) {
    comm_.set(SHARDREC_COMM_NCCL, 1);
    comm_.set(SHARDREC_COMM_STEP_SECONDS, job.step_seconds);
    Numbers numbers(static_cast<size_t>(kWidth));
    ddp_ = Ddp(comm_, DdpOptions()
                          .reduction("nccl")
                          .bucket_bytes(1, 1)
                          .step_in_backward(job.in_backward)
                          .thread(rank % 2 == 0));
    for (int p = 0; p < kParameters; ++p) {
      std::iota(numbers.begin(), numbers.end(), static_cast<float>(p));
      copy(values(p), Vector(numbers));
      std::fill(numbers.begin(), numbers.end(), 0.1F * static_cast<float>(p + 3 * rank));
      copy(gradient(p), Vector(numbers));
      ddp_.add("p" + std::to_string(p), values(p), gradient(p));
    }
    // Gradients of zeros would change values too.
    ddp_.set_optimizer(
        OptimizerOptions().optimizer("sgd").learning_rate(0.1).weight_decay(0.25).weight_decay_mode(
            "l2"));
    ddp_.commit();
  }

  void run() {
    outcome_.states.push_back(state());
    for (int step = 0; step < kDdpSteps; ++step) {
      const auto start = std::chrono::steady_clock::now();
      try {
        if (!take_step(step)) return;
      } catch (const Error& error) {
        outcome_.error = error;
        outcome_.seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        ddp_ = Ddp(nullptr);  // which waits for what is enqueued
        outcome_.last = state();
        for (int p = 0; p < kParameters; ++p) {
          for (const float number : read(gradient(p))) {
            outcome_.least_gradient = std::min(outcome_.least_gradient, number);
          }
        }
        return;
      }
      outcome_.states.push_back(state());
    }
    outcome_.last = outcome_.states.back();
    comm_.close();
  }

 private:
  Vector values(int p) const {
    return memory_.vector(SHARDREC_FLOAT32, kWidth, p * kWidth * int64_t{sizeof(float)});
  }
  Vector gradient(int p) const {
    return memory_.vector(SHARDREC_FLOAT32, kWidth,
                          (kParameters + p) * kWidth * int64_t{sizeof(float)});
  }

  // Ranks mark in different orders.
  bool take_step(int step) {
    ddp_.begin();
    for (int i = 0; i < kParameters; ++i) ddp_.mark_ready(rank_ == 1 ? kParameters - 1 - i : i);
    ddp_.end();
    if (job_.leaves_in && job_.leaves_in(rank_, step)) return false;
    ddp_.wait();
    if (!job_.in_backward) ddp_.step();
    return true;
  }

  State state() const {
    State state;
    for (int p = 0; p < kParameters; ++p) state.push_back(read(values(p)));
    return state;
  }
  static Numbers read(const Vector& vector) {
    Numbers numbers(static_cast<size_t>(kWidth));
    copy(Vector(numbers), vector);
    return numbers;
  }

  const DdpJob& job_;
  const int rank_;
  DdpOutcome& outcome_;
  Comm comm_;
  Memory memory_{SHARDREC_DEVICE_CUDA, rank_ % 2, 2 * kParameters* kWidth* int64_t{sizeof(float)}};
  Ddp ddp_{nullptr};
};

std::vector<DdpOutcome> train_dense(const DdpJob& job) {
  std::vector<DdpOutcome> outcomes(static_cast<size_t>(job.ranks));
  const Local group(job.ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < job.ranks; ++rank) {
    threads.emplace_back([&, rank] {
      DdpOutcome& outcome = outcomes[static_cast<size_t>(rank)];
      try {
        DdpRank own(job, group, rank, outcome);
        own.run();
      } catch (const Error& error) {
        outcome.error = error;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

class DdpOverNccl : public ::testing::Test {
 protected:
  ~DdpOverNccl() override {
    OF_FAKE(fake_nccl_set_polls)(0);
    OF_FAKE(fake_nccl_set_hang)(-1, 0);
    OF_FAKE(fake_nccl_set_async_error)(-1, 0);
    EXPECT_EQ(OF_FAKE(fake_nccl_violations)(), 0) << OF_FAKE(fake_nccl_last_violation)();
    EXPECT_EQ(OF_FAKE(fake_nccl_live)(), 0);
    int64_t objects = -1;
    EXPECT_EQ(shardrec_live_objects(&objects), SHARDREC_OK);
    EXPECT_EQ(objects, 0);
  }

  // The states of a job that nothing happens to.
  static std::vector<State> whole(DdpJob job) {
    job.leaves_in = {};
    job.step_seconds = 60;
    const std::vector<DdpOutcome> outcomes = train_dense(job);
    for (const DdpOutcome& outcome : outcomes) {
      EXPECT_FALSE(outcome.error) << outcome.error->what();
      EXPECT_EQ(outcome.states, outcomes[0].states);
    }
    return outcomes[0].states;
  }

  // Every rank failed so, within the time, and has the values of its step; where parameters are stepped in backward,
  // each has those of its step or of the next one.
  static void expect_stopped(const DdpJob& job, const std::vector<DdpOutcome>& outcomes,
                             const std::vector<State>& expected, shardrec_status status,
                             int64_t failed_rank, double seconds) {
    for (size_t rank = 0; rank < outcomes.size(); ++rank) {
      const DdpOutcome& outcome = outcomes[rank];
      ASSERT_TRUE(outcome.error) << "rank " << rank;
      SCOPED_TRACE("rank " + std::to_string(rank) + ": " + outcome.error->what());
      EXPECT_EQ(outcome.error->status(), status);
      EXPECT_EQ(outcome.error->rank(), failed_rank);
      EXPECT_FALSE(outcome.error->operation().empty());
      EXPECT_LT(outcome.seconds, seconds);
      EXPECT_EQ(outcome.least_gradient, 0) << "gradients are garbage";
      const size_t step = outcome.states.size() - 1;
      ASSERT_LT(step, expected.size());
      EXPECT_EQ(outcome.states[step], expected[step]);
      for (size_t p = 0; p < outcome.last.size(); ++p) {
        const Numbers& last = outcome.last[p];
        const bool was_stepped =
            job.in_backward && step + 1 < expected.size() && last == expected[step + 1][p];
        EXPECT_TRUE(was_stepped || last == expected[step][p]) << "parameter " << p;
      }
    }
  }
};

TEST_F(DdpOverNccl, RanksThatMarkInOtherOrdersHaveTheSameParameters) {
  for (const bool in_backward : {false, true}) {
    const DdpJob job{.in_backward = in_backward};
    const std::vector<State> states = whole(job);
    ASSERT_EQ(states.size(), size_t{kDdpSteps} + 1);
    // 0.1 * (1 + 3 * rank) of three ranks is 0.4; the weight is 2.
    EXPECT_NEAR(states[1][1][1], 2 - 0.1 * (0.4 + 0.25 * 2), 1e-6);
    OF_FAKE(fake_nccl_set_polls)(3);
    EXPECT_EQ(whole(job), states);
    OF_FAKE(fake_nccl_set_polls)(0);
  }
}

// Its last sum of step 0 does not end, and the rank leaves: the others hear of that.
TEST_F(DdpOverNccl, ARankThatLeavesWhileItsDeviceOwesASumEndsTheJob) {
  DdpJob job;
  const auto expected = whole(job);
  OF_FAKE(fake_nccl_set_hang)(2, 3);
  job.leaves_in = [](int rank, int) { return rank == 2; };
  std::vector<DdpOutcome> outcomes = train_dense(job);
  outcomes.pop_back();
  expect_stopped(job, outcomes, expected, SHARDREC_PEER_FAILED, 2, 5);
}

// Sums of a step are operations 1 to 3 of the set's communicator of NCCL, and so on.
class DdpFailuresOverNccl : public DdpOverNccl, public ::testing::WithParamInterface<int64_t> {
 protected:
  DdpJob job_{.in_backward = GetParam() % 2 == 0};
};

TEST_P(DdpFailuresOverNccl, AnErrorThatNcclTellsOfLaterEndsTheJobOnAllRanks) {
  const auto expected = whole(job_);
  OF_FAKE(fake_nccl_set_async_error)(1, GetParam());
  const auto outcomes = train_dense(job_);
  expect_stopped(job_, outcomes, expected, SHARDREC_PEER_FAILED, 1, 5);
  EXPECT_NE(std::string(outcomes[0].error->what()).find("ddp: all_reduce of a bucket"),
            std::string::npos)
      << outcomes[0].error->what();
}

TEST_P(DdpFailuresOverNccl, ASumThatIsLateIsATimeoutOnAllRanks) {
  const auto expected = whole(job_);
  OF_FAKE(fake_nccl_set_hang)(2, GetParam());
  job_.step_seconds = 0.3;
  const auto outcomes = train_dense(job_);
  ASSERT_TRUE(outcomes[0].error);
  ASSERT_TRUE(outcomes[0].error->rank());
  expect_stopped(job_, outcomes, expected, SHARDREC_TIMEOUT, *outcomes[0].error->rank(), 5);
}

INSTANTIATE_TEST_SUITE_P(Sums, DdpFailuresOverNccl, ::testing::Values(1, 5, 6));

}  // namespace
}  // namespace shardrec::test
