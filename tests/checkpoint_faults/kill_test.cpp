// A job is killed, or one rank of it, at each call that a commit makes on files: the checkpoint
// before or the new one is there, whole, and the root can be used as before.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include "job.h"

namespace shardrec::checkpoint_faults {
namespace {

using file_faults::Fault;

struct Plan {
  Shape shape;
  Ranks ranks = Ranks::kThreads;
  Fault fault = Fault::kKill;
  long stride = 1;  // of the calls at which a process is killed; from the last one on
  std::vector<int> victims = {0};
  int64_t first_step = 1;  // 0: the first commit of all is killed
  std::string work = "commit";
};

// Returns whether the new checkpoint was there.
bool kill_at(const Plan& plan, JobOptions options, const std::string& base, long at) {
  options.fault = plan.fault;
  options.at = at;
  copy_root(base, options.root);
  Job job(options);
  EXPECT_TRUE(job.wait()) << options.text() << ": hangs\n" << job.output();
  for (int rank = 0; rank < (plan.ranks == Ranks::kThreads ? 1 : plan.shape.ranks); ++rank) {
    const int code = job.exit_code(rank);
    if (rank == options.victim) {
      EXPECT_EQ(code, 128 + SIGKILL) << options.text() << "\n" << job.output();
    } else {
      // Who has its own commit behind it notices in the barrier after it.
      EXPECT_TRUE(code == 3 || code == 0)
          << options.text() << ": rank " << rank << " ended with " << code << "\n"
          << job.output();
    }
  }
  const Found found = find_newest(options.root, plan.shape);
  EXPECT_EQ(found.trouble, "") << options.text();
  EXPECT_FALSE(found.refused) << options.text();
  EXPECT_TRUE(found.step == plan.first_step || found.step == plan.first_step + 1)
      << options.text() << ": step " << found.step;
  EXPECT_EQ(go_on(options.root, plan.shape), "") << options.text();
  return found.step == plan.first_step + 1;
}

void kill_at_each_call(const Plan& plan) {
  const Scratch scratch;
  const std::string base = scratch.path("base");
  if (plan.first_step == 1) make_root(base, plan.shape, 1);
  int before = 0;
  int after = 0;
  for (const int victim : plan.victims) {
    JobOptions options{.work = plan.work,
                       .root = scratch.path("run"),
                       .shape = plan.shape,
                       .ranks = plan.ranks,
                       .victim = victim};
    copy_root(base, options.root);
    Job counted(options);
    ASSERT_TRUE(counted.wait()) << counted.output();
    ASSERT_EQ(counted.exit_code(victim), 0) << counted.output();
    const long calls = counted.number_after("calls");
    ASSERT_GE(calls, plan.ranks == Ranks::kThreads ? 40 : 0) << counted.output();
    for (long at = calls; at >= 1 && !testing::Test::HasFailure(); at -= plan.stride) {
      (kill_at(plan, options, base, at) ? after : before)++;
    }
  }
  if (testing::Test::HasFailure()) return;
  EXPECT_GT(before, 0);
  EXPECT_GT(after, 0);
}

TEST(AKilledCommit, OfTwoThreads) { kill_at_each_call({.shape = {2, 2}, .stride = 2}); }
TEST(AKilledCommit, OfTwoThreadsAfterEachCall) {
  kill_at_each_call({.shape = {2, 2}, .fault = Fault::kKillAfter, .stride = 9});
}
TEST(AKilledCommit, OfTwoThreadsThatIsTheFirst) {
  kill_at_each_call({.shape = {2, 2}, .stride = 3, .first_step = 0});
}
TEST(AKilledCommit, OfAMeshOfThreads) { kill_at_each_call({.shape = {4, 2}, .stride = 9}); }
TEST(AKilledCommit, OfFourProcesses) {
  kill_at_each_call(
      {.shape = {4, 4}, .ranks = Ranks::kProcesses, .stride = 23, .victims = {0, 1, 2, 3}});
}
TEST(AKilledCommit, OfAMeshOfProcesses) {
  kill_at_each_call({.shape = {4, 2}, .ranks = Ranks::kProcesses, .stride = 23, .victims = {0, 1}});
}
TEST(AKilledCommit, OfADeltaOfTwoThreads) {
  kill_at_each_call({.shape = {2, 2}, .stride = 3, .work = "delta"});
}
TEST(AKilledCommit, OfADeltaOfAMeshOfProcesses) {
  kill_at_each_call({.shape = {4, 2},
                     .ranks = Ranks::kProcesses,
                     .stride = 23,
                     .victims = {0, 1},
                     .work = "delta"});
}
TEST(AKilledCommit, InTheBackgroundOfTwoThreads) {
  kill_at_each_call({.shape = {2, 2}, .stride = 3, .work = "background"});
}
TEST(AKilledCommit, InTheBackgroundOfAMeshOfProcesses) {
  kill_at_each_call({.shape = {4, 2},
                     .ranks = Ranks::kProcesses,
                     .stride = 23,
                     .victims = {0, 1},
                     .work = "background"});
}
TEST(AKilledCommit, OfADeltaInTheBackgroundOfTwoThreads) {
  kill_at_each_call({.shape = {2, 2}, .stride = 3, .work = "background_delta"});
}

TEST(DISABLED_AKilledCommit, InTheBackgroundOfTwoThreads) {
  kill_at_each_call({.shape = {2, 2}, .work = "background"});
}
TEST(DISABLED_AKilledCommit, OfADeltaOfTwoThreads) {
  kill_at_each_call({.shape = {2, 2}, .work = "delta"});
}
TEST(DISABLED_AKilledCommit, OfTwoThreads) { kill_at_each_call({.shape = {2, 2}}); }
TEST(DISABLED_AKilledCommit, OfTwoThreadsAfterEachCall) {
  kill_at_each_call({.shape = {2, 2}, .fault = Fault::kKillAfter});
}
TEST(DISABLED_AKilledCommit, OfTwoThreadsThatIsTheFirst) {
  kill_at_each_call({.shape = {2, 2}, .first_step = 0});
}
TEST(DISABLED_AKilledCommit, OfAMeshOfThreads) { kill_at_each_call({.shape = {4, 2}}); }
TEST(DISABLED_AKilledCommit, OfFourProcesses) {
  kill_at_each_call({.shape = {4, 4}, .ranks = Ranks::kProcesses, .victims = {0, 1, 2, 3}});
}
TEST(DISABLED_AKilledCommit, OfAMeshOfProcesses) {
  kill_at_each_call({.shape = {4, 2}, .ranks = Ranks::kProcesses, .victims = {0, 1, 2, 3}});
}

}  // namespace
}  // namespace shardrec::checkpoint_faults
