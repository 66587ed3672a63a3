// The failure contract between processes, as a host in C sees it: whoever dies or falls silent,
// whenever (contract.h).
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "comm/remote/transport.h"
#include "failures/contract.h"
#include "failures/job.h"

namespace shardrec::failures {
namespace {

constexpr const char* kNotBuilt =
    "the plug-in was not built: its library is not installed, or is not instrumented for the "
    "sanitizer of this build";

// Anything, anywhere, in the middle of a call more often than before it.
Trouble random_trouble(std::mt19937& random) {
  const auto below = [&](int limit) {
    return static_cast<int>(random() % static_cast<unsigned>(limit));
  };
  const std::string phase = phases()[static_cast<size_t>(below(static_cast<int>(phases().size())))];
  constexpr std::array kDelays = {0, 30, 100, 300, 1000, 2000};
  const int delay = phase == "destroy" ? 0 : kDelays[static_cast<size_t>(below(6))];
  Trouble trouble = trouble_in(phase, below(2) == 0 ? SIGSTOP : SIGKILL, below(4), delay);
  if (repeats(phase)) trouble.step = below(4);
  return trouble;
}

void expect_contract_at_random(unsigned seed, int count, int at_once) {
  std::mt19937 random(seed);
  for (int done = 0; done < count && !testing::Test::HasFailure(); done += at_once) {
    std::vector<Trouble> troubles;
    for (int i = 0; i < std::min(at_once, count - done); ++i) {
      troubles.push_back(random_trouble(random));
    }
    expect_contract(troubles);
  }
}

class GlooGroup : public testing::Test {
 protected:
  void SetUp() override {
    if (!comm::remote::transport_available("gloo")) GTEST_SKIP() << kNotBuilt;
  }
};

TEST_F(GlooGroup, ARankThatIsKilledIsNamedToAllWithinASecondAndTheyGoOnWithoutIt) {
  // Two groups at a time.
  for (size_t i = 0; i < phases().size() && !HasFailure(); i += 2) {
    std::vector<Trouble> troubles;
    for (size_t k = i; k < std::min(i + 2, phases().size()); ++k) {
      troubles.push_back(trouble_in(phases()[k], SIGKILL, static_cast<int>(k % 4)));
    }
    expect_contract(troubles);
  }
}

// The host compares them with those that one group of all ranks trains with the same batches.
TEST_F(GlooGroup, ReplicatedTablesOfAMeshAreOfAllItsRanksWhoAreToldOfADeath) {
  const JobOptions replicated{.environment = {"SHARDREC_TEST_REPLICATED=1"}};
  Job whole(replicated);
  EXPECT_TRUE(whole.wait(kDeadline)) << whole.output();
  for (int number = 0; number < replicated.count; ++number) {
    check_tidy(whole.report(number), replicated);
  }
  if (HasFailure()) return;
  expect_contract({trouble_in("begin", SIGKILL, 0), trouble_in("forward", SIGKILL, 2, 300)},
                  replicated);
  expect_contract({trouble_in("collection", SIGKILL, 1), trouble_in("backward", SIGKILL, 3)},
                  replicated);
}

// Before and in the middle of each call of a step of sharded parameters. The host checks that its shards are then as
// they were before a step or after it.
TEST_F(GlooGroup, ARankThatIsKilledInAStepOfShardedParametersIsNamedToAll) {
  const std::vector<std::string>& all = sharded_phases();
  for (size_t i = 0; i < all.size() && !HasFailure(); i += 2) {
    std::vector<Trouble> troubles;
    for (size_t k = i; k < std::min(i + 2, all.size()); ++k) {
      troubles.push_back(
          trouble_in(all[k], SIGKILL, static_cast<int>(k % 4), k % 2 == 0 ? 0 : 100));
    }
    expect_contract(troubles, with_sharded_weights());
  }
}

TEST_F(GlooGroup, ARankThatStopsInAStepOfShardedParametersIsNamedToAll) {
  expect_contract({trouble_in("unshard", SIGSTOP, 1), trouble_in("mark_ready", SIGSTOP, 2),
                   trouble_in("fsdp_step", SIGSTOP, 0)},
                  with_sharded_weights());
}

TEST_F(GlooGroup, ARankThatStopsIsNamedToAllWithinFiveSecondsAndTheyGoOnWithoutIt) {
  expect_contract({trouble_in("create", SIGSTOP, 1, 1000), trouble_in("collection", SIGSTOP, 2),
                   trouble_in("forward", SIGSTOP, 0), trouble_in("sync", SIGSTOP, 3)});
}

// In the middle of calls more often than before them.
TEST_F(GlooGroup, EightRandomDeathsAndStopsAreSeenInTime) { expect_contract_at_random(7, 8, 4); }

class MpiGroup : public testing::Test {
 protected:
  // Should mpirun not end though all its ranks have, which is none of ours, there is a second try.
  static std::unique_ptr<Job> run(const JobOptions& options) {
    for (int tries = 1;; ++tries) {
      auto job = std::make_unique<Job>(options);
      if (job->wait(kDeadline)) return job;
      const bool of_ranks = job->hung().find(": " SHARDREC_TEST_HOST) != std::string::npos;
      if (!of_ranks && tries == 1) continue;
      ADD_FAILURE() << job->output();
      return job;
    }
  }
  void SetUp() override {
    if (!comm::remote::transport_available("mpi")) GTEST_SKIP() << kNotBuilt;
    if (std::system("command -v mpirun > /dev/null") != 0) GTEST_SKIP() << "there is no mpirun";
  }
};

// MPI knows nothing of a rank that is silent: the deadlines do. Whoever's passes first names whom it
// waited for, be it one that waits too, and the others hear who gave up. On a machine that is busy with
// other things that may be one that waits, in one of three tries.
TEST_F(MpiGroup, ARankThatStopsIsNamedToAllWhenTheirDeadlinePasses) {
  constexpr double kLimit = 2;
  bool named = false;
  std::string output;
  for (int attempt = 0; attempt < 3 && !named; ++attempt) {
    const auto ended = run({.engine = "mpi",
                            .limit = kLimit,
                            .lonely = true,
                            .trouble = trouble_in("begin", SIGSTOP, 2)});
    ASSERT_FALSE(HasFailure());
    const Job& job = *ended;
    output = job.output();
    const Report victim = job.report(2);
    ASSERT_TRUE(victim.struck) << output;
    int timed_out = 0;
    for (const int number : {0, 1, 3}) {
      SCOPED_TRACE("seen by rank " + std::to_string(number));
      const Report report = job.report(number);
      EXPECT_FALSE(report.failed.empty());
      for (const Failed& failed : report.failed) {
        timed_out += failed.status == "SHARDREC_TIMEOUT" ? 1 : 0;
        EXPECT_TRUE(failed.status == "SHARDREC_TIMEOUT" ||
                    (failed.status == "SHARDREC_PEER_FAILED" && failed.rank != 2))
            << failed.status << ": " << failed.sentence;
        EXPECT_GE(failed.rank, 0) << failed.sentence;
        named = named || failed.rank == 2;
        EXPECT_NE(failed.operation, "-") << failed.sentence;
        EXPECT_LT(static_cast<double>(failed.when - *victim.struck) * 1e-9, kLimit + 3)
            << failed.sentence;
      }
      check_tidy(report, job.options());
    }
    EXPECT_GT(timed_out, 0) << output;
    if (HasFailure()) return;
  }
  EXPECT_TRUE(named) << output;
}

// It ends the job, as Open MPI does; within five seconds, and not without saying whose death it
// was.
TEST_F(MpiGroup, ARankThatIsKilledEndsTheJobWithinFiveSeconds) {
  const auto ended =
      run({.engine = "mpi", .lonely = true, .trouble = trouble_in("backward", SIGKILL, 2)});
  ASSERT_FALSE(HasFailure());
  const Job& job = *ended;
  const int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                          std::chrono::steady_clock::now().time_since_epoch())
                          .count();
  const Report victim = job.report(2);
  ASSERT_TRUE(victim.struck) << job.output();
  EXPECT_LT(static_cast<double>(now - *victim.struck) * 1e-9, 5);
  EXPECT_FALSE(WIFEXITED(job.status(0)) && WEXITSTATUS(job.status(0)) == 0);
  EXPECT_NE(job.output().find("rank 2"), std::string::npos) << job.output();
}

// Run by the test with the label "long".
TEST_F(GlooGroup, DISABLED_StopsInEveryPhase) {
  for (size_t i = 0; i + 1 < phases().size() && !HasFailure(); i += 4) {
    std::vector<Trouble> troubles;
    for (size_t k = i; k < std::min(i + 4, phases().size()); ++k) {
      troubles.push_back(trouble_in(phases()[k], SIGSTOP, static_cast<int>(k + i) % 4));
    }
    expect_contract(troubles);
  }
}
TEST_F(GlooGroup, DISABLED_StopsInEveryPhaseOfShardedParameters) {
  for (const int delay_us : {0, 300}) {
    std::vector<Trouble> troubles;
    for (const std::string& phase : sharded_phases()) {
      troubles.push_back(
          trouble_in(phase, SIGSTOP, static_cast<int>(troubles.size() % 4), delay_us));
    }
    expect_contract(troubles, with_sharded_weights());
    if (HasFailure()) return;
  }
}
TEST_F(GlooGroup, DISABLED_DeathsInTheMiddleOfCallsAreSeenToo) {
  expect_contract_at_random(2, 200, 4);
}

}  // namespace
}  // namespace shardrec::failures
