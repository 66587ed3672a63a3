// Files that cannot be written or read, at each call of a commit and of a load: one status on all
// ranks, and the model and the checkpoints are what they were.
#include <gtest/gtest.h>

#include "job.h"

namespace shardrec::checkpoint_faults {
namespace {

using file_faults::Fault;

void expect_kept(const std::string& work, const Shape& shape, Ranks ranks,
                 const std::vector<Fault>& faults, const std::vector<int>& victims,
                 long stride = 1) {
  const Scratch scratch;
  const std::string base = scratch.path("base");
  make_root(base, shape, 2);
  for (const Fault fault : faults) {
    for (const int victim : victims) {
      const JobOptions options{.work = work,
                               .root = scratch.path("run"),
                               .shape = shape,
                               .ranks = ranks,
                               .keep = 2,
                               .fault = fault,
                               .at = stride,
                               .victim = victim};
      copy_root(base, options.root);
      Job job(options);
      EXPECT_TRUE(job.wait()) << options.text() << "\n" << job.output();
      const int processes = ranks == Ranks::kThreads ? 1 : shape.ranks;
      for (int process = 0; process < processes; ++process) {
        EXPECT_EQ(job.exit_code(process), 0) << options.text() << "\n" << job.output();
      }
      EXPECT_GT(job.number_after("calls"), 3) << options.text() << "\n" << job.output();
    }
  }
}

const std::vector<Fault> kWriting = {Fault::kIoError, Fault::kNoSpace, Fault::kShort,
                                     Fault::kShortThenError, Fault::kDeadDisk};
const std::vector<Fault> kReading = {Fault::kIoError, Fault::kShort, Fault::kShortThenError,
                                     Fault::kDeadDisk};

TEST(ADiskThatFails, InACommitOfThreads) {
  expect_kept("commits", {2, 2}, Ranks::kThreads, {Fault::kIoError}, {0}, 5);
  expect_kept("commits", {2, 2}, Ranks::kThreads, kWriting, {0}, 17);
}
TEST(ADiskThatFails, InACommitOfProcesses) {
  expect_kept("commits", {4, 2}, Ranks::kProcesses, {Fault::kIoError}, {0, 1}, 11);
}
TEST(ADiskThatFails, InADeltaOfThreads) {
  expect_kept("deltas", {2, 2}, Ranks::kThreads, {Fault::kIoError}, {0}, 7);
  expect_kept("deltas", {2, 2}, Ranks::kThreads, {Fault::kNoSpace, Fault::kDeadDisk}, {0}, 17);
}
TEST(ADiskThatFails, InALoadOfThreads) {
  expect_kept("loads", {2, 2}, Ranks::kThreads, kReading, {0}, 3);
}
TEST(ADiskThatFails, InALoadOfProcesses) {
  expect_kept("loads", {4, 4}, Ranks::kProcesses, {Fault::kIoError}, {0, 3}, 5);
}

TEST(ADiskThatFails, InALoadOfDeltasOfThreads) {
  expect_kept("chains", {2, 2}, Ranks::kThreads, kReading, {0}, 5);
}
TEST(ADiskThatFails, InALoadOfDeltasOfProcesses) {
  expect_kept("chains", {4, 4}, Ranks::kProcesses, {Fault::kIoError}, {0, 3}, 9);
}

TEST(DISABLED_ADiskThatFails, InACommitOfThreads) {
  expect_kept("commits", {2, 2}, Ranks::kThreads, kWriting, {0});
}
TEST(DISABLED_ADiskThatFails, InADeltaOfThreads) {
  expect_kept("deltas", {2, 2}, Ranks::kThreads, kWriting, {0});
}
TEST(DISABLED_ADiskThatFails, InACommitOfAMeshOfThreads) {
  expect_kept("commits", {4, 2}, Ranks::kThreads, kWriting, {0});
}
TEST(DISABLED_ADiskThatFails, InACommitOfProcesses) {
  expect_kept("commits", {4, 4}, Ranks::kProcesses, kWriting, {0, 1, 2, 3});
}
TEST(DISABLED_ADiskThatFails, InALoadOfProcesses) {
  expect_kept("loads", {4, 4}, Ranks::kProcesses, kReading, {0, 1, 2, 3});
}

}  // namespace
}  // namespace shardrec::checkpoint_faults
