// Two jobs in one root: one goes on, and what either was told OK for can be loaded.
#include <gtest/gtest.h>

#include "job.h"

namespace shardrec::checkpoint_faults {
namespace {

constexpr Shape kShape{2, 2};

struct Committed {
  shardrec_status status = SHARDREC_OK;
  int64_t step = 0;
};

// A commit of another job while the first, a process, stands still.
Committed commit_meanwhile(const std::string& root, bool resume) {
  Committed committed;
  const std::string thrown = run_ranks(kShape.ranks, [&](Comm& comm, int rank) {
    Training training(comm, kShape, root, 1);
    if (resume) training.resume();
    training.train();
    const shardrec_status own = status_of([&] { training.commit(); });
    if (rank == 0) committed = {own, training.steps()};
  });
  EXPECT_EQ(thrown, "");
  return committed;
}

// How many times which job's commit stayed. That of the second where the first stood still before it
// had the lock, as it does at its first call.
struct Tally {
  int both = 0, first = 0, second = 0;
};

// The first job stands still at each stride-th call of its commit while the second one commits.
Tally stop_at_each_call(int64_t step, long stride) {
  const Scratch scratch;
  const std::string base = scratch.path("base");
  if (step == 1) make_root(base, kShape, 1);
  Tally tally;
  for (long at = 1; !testing::Test::HasFailure(); at += stride) {
    const JobOptions options{
        .root = scratch.path("run"), .shape = kShape, .fault = file_faults::Fault::kStop, .at = at};
    copy_root(base, options.root);
    Job job(options);
    if (!job.wait_until_stopped()) {
      EXPECT_EQ(job.exit_code(0), 0) << options.text() << "\n" << job.output();
      EXPECT_GT(at, 40);
      return tally;
    }
    const auto [second, second_step] = commit_meanwhile(options.root, step == 1);
    EXPECT_TRUE(second == SHARDREC_OK || second == SHARDREC_INVALID_STATE)
        << options.text() << ": status " << second;
    const Found between = find_newest(options.root, kShape);
    EXPECT_EQ(between.trouble, "") << options.text();
    if (second == SHARDREC_OK) {
      EXPECT_EQ(between.step, second_step) << options.text();
    }
    job.go_on();
    EXPECT_TRUE(job.wait()) << options.text() << "\n" << job.output();
    const int code = job.exit_code(0);
    EXPECT_TRUE(code == 0 || code == 3) << options.text() << "\n" << job.output();
    if (code == 3) {
      EXPECT_EQ(job.number_after("status"), SHARDREC_INVALID_STATE) << options.text() << "\n"
                                                                    << job.output();
    }
    const Found found = find_newest(options.root, kShape);
    EXPECT_EQ(found.trouble, "") << options.text();
    // That after the step of the first, where the second has found it already.
    EXPECT_EQ(found.step, second == SHARDREC_OK ? second_step : step + 1) << options.text();
    EXPECT_TRUE(code == 0 || second == SHARDREC_OK) << options.text() << ": both were refused";
    (code != 0 ? tally.second : second == SHARDREC_OK ? tally.both : tally.first)++;
    EXPECT_EQ(go_on(options.root, kShape), "") << options.text();
  }
  return tally;
}

TEST(TwoJobs, ThatStartInOneRootExactlyOneGoesOn) {
  const Tally tally = stop_at_each_call(0, 7);
  EXPECT_GT(tally.first, 0);
  EXPECT_GT(tally.second, 0);
  EXPECT_EQ(tally.both, 0);
}

// They are of one run. Both commit where the second opens what the first has just written.
TEST(TwoJobs, ThatGoOnFromOneCheckpointDoNotMix) {
  const Tally tally = stop_at_each_call(1, 7);
  EXPECT_GT(tally.first, 0);
  EXPECT_GT(tally.second, 0);
}

TEST(DISABLED_TwoJobs, ThatStartInOneRootExactlyOneGoesOn) {
  const Tally tally = stop_at_each_call(0, 1);
  EXPECT_GT(tally.first, 0);
  EXPECT_GT(tally.second, 0);
}

TEST(DISABLED_TwoJobs, ThatGoOnFromOneCheckpointDoNotMix) {
  const Tally tally = stop_at_each_call(1, 1);
  EXPECT_GT(tally.first, 0);
  EXPECT_GT(tally.second, 0);
}

}  // namespace
}  // namespace shardrec::checkpoint_faults
