// Commits that are written while training goes on, through the C++ header.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "capi/checkpoint_job.h"
#include "shardrec/shardrec.hpp"
#include "support/eventually.h"
#include "support/tables_alone.h"

namespace shardrec_test {
namespace {

using shardrec::Checkpoint;
using shardrec::Comm;
using shardrec::Control;
using shardrec::Options;

// A job whose tables take some time to be written: the one of make_model(), behind a large table.
struct Large {
  static constexpr int64_t kRowsOfLarge = 150000;
  static shardrec::Model model() {
    shardrec::Model model;
    Options zeros(SHARDREC_OPTIONS_TABLE);
    zeros.set(SHARDREC_OPTION_INIT, SHARDREC_INIT_ZEROS);
    model.add_feature(model.add_table("large", kRowsOfLarge, 32, zeros), "large_id");
    return model;
  }
  Large(Comm& comm, int ranks)
      : model_(model()),
        tables(comm, model_, make_plan(model_, ranks, SHARDREC_SHARDING_ROW_WISE)) {}

 private:
  shardrec::Model model_;

 public:
  shardrec::Collection tables;
};

// Waits without being in the way of steps between.
template <class Between>
void wait_for(Checkpoint& checkpoint, const Between& between) {
  while (!checkpoint.commit_wait(0)) between();
}

// The bits of the tables and layers of a checkpoint, through a job that loads it.
std::vector<float> state_of(const std::string& directory, int64_t step, int ranks) {
  std::vector<float> state;
  run(ranks, [&](Comm& comm, int rank) {
    const shardrec::Model model = make_model();
    Job job(comm, nullptr, model, make_plan(model, ranks, SHARDREC_SHARDING_ROW_WISE));
    Checkpoint checkpoint(comm, directory);
    add_all(checkpoint, job);
    checkpoint.open(step);
    checkpoint.verify();
    checkpoint.load();
    auto own = job.state();
    if (rank == 0) state = std::move(own);
  });
  return state;
}

class BackgroundCommit : public ::testing::TestWithParam<std::pair<int, int>> {};

TEST_P(BackgroundCommit, HoldsWhatTheJobWasAtItsBegin) {
  const int ranks = GetParam().first;
  const int group = GetParam().second;
  const Directory directory;
  std::vector<float> expected;
  run(ranks, [&](Comm& comm, int rank) {
    std::optional<shardrec::Mesh> mesh;
    if (group != ranks) mesh.emplace(comm, group);
    const shardrec::Model model = make_model();
    Job job(comm, mesh ? &*mesh : nullptr, model,
            make_plan(model, group, SHARDREC_SHARDING_COLUMN_WISE));
    Large large(comm, ranks);
    Checkpoint checkpoint(comm, directory.path());
    checkpoint.add("a large one", large.tables);
    add_all(checkpoint, job);
    for (int64_t i = 0; i < 3; ++i) job.step(i);
    job.tables.sync_replicas();
    auto state = job.state();
    if (rank == 0) expected = std::move(state);
    std::vector<int64_t> position = {3, rank};
    checkpoint.set_tensor("position", position);
    const Control control;
    checkpoint.commit_begin(3, &control);
    position[0] = 7;
    checkpoint.set_tensor("position", position);
    int64_t steps = 3;
    wait_for(checkpoint, [&] {
      job.step(steps++);
      job.tables.sync_replicas();
    });
    EXPECT_GT(steps, 3) << "no step was taken meanwhile";
    EXPECT_EQ(control.progress().done, control.progress().total);
    EXPECT_GT(control.progress().done, 0);
    checkpoint.open();
    EXPECT_EQ(checkpoint.info().step, 3);
    checkpoint.get_tensor("position", rank, position);
    EXPECT_EQ(position, (std::vector<int64_t>{3, rank}));
    checkpoint.commit_begin(steps);
    EXPECT_TRUE(checkpoint.commit_wait());
    job.step(steps);
  });
  EXPECT_EQ(state_of(directory.path(), 3, 2), expected);
}

INSTANTIATE_TEST_SUITE_P(RanksAndShardingGroups, BackgroundCommit,
                         ::testing::Values(std::pair(1, 1), std::pair(2, 2), std::pair(3, 3),
                                           std::pair(4, 2)));

TEST(BackgroundCommits, RefuseWhatCannotBeMeanwhileOnAllRanks) {
  const Directory directory;
  run(2, [&](Comm& comm, int rank) {
    const shardrec::Model model = make_model();
    Job job(comm, nullptr, model, make_plan(model, 2, SHARDREC_SHARDING_ROW_WISE));
    Checkpoint checkpoint(comm, directory.path());
    Checkpoint other(comm, directory.path("other"));
    add_all(checkpoint, job);
    other.add("tables", job.tables);
    shardrec::test::save_tables(comm, job.tables, directory.path("saved"));
    checkpoint.commit(0);
    checkpoint.open();
    const auto expect_invalid = [&](const char* what, const auto& call) {
      std::string sentence;
      EXPECT_EQ(status_of(call, &sentence), SHARDREC_INVALID_STATE) << what;
      EXPECT_NE(sentence.find(what), std::string::npos) << what << ": " << sentence;
    };
    expect_invalid("no commit is under way", [&] { checkpoint.commit_wait(); });
    EXPECT_EQ(status_of([&] { checkpoint.commit_begin(-1); }), SHARDREC_INVALID_ARGUMENT);
    EXPECT_EQ(status_of([&] { checkpoint.commit_begin(rank == 0 ? -1 : 1); }),
              SHARDREC_INVALID_ARGUMENT);
    checkpoint.commit_begin(1);
    job.step(0);
    expect_invalid("commit_begin was called", [&] { checkpoint.commit_begin(2); });
    expect_invalid("commit was called", [&] { checkpoint.commit(2); });
    expect_invalid("open was called", [&] { checkpoint.open(); });
    expect_invalid("load was called", [&] { checkpoint.load(); });
    expect_invalid("load was called",
                   [&] { shardrec::test::load_tables(comm, job.tables, directory.path("saved")); });
    expect_invalid("commit_begin was called", [&] { other.commit_begin(2); });
    EXPECT_EQ(shardrec_checkpoint_commit_wait(checkpoint.get(), 0, nullptr),
              SHARDREC_INVALID_ARGUMENT);
    checkpoint.verify();
    other.commit(1);  // of the tables as they are now
    shardrec::test::save_tables(comm, job.tables, directory.path("saved too"));
    EXPECT_TRUE(checkpoint.commit_wait(-1));
    expect_invalid("no commit is under way", [&] { checkpoint.commit_wait(0); });
    checkpoint.open();
    checkpoint.load();
    EXPECT_EQ(job.tables.step(), 0);
    other.commit_begin(2);
    EXPECT_TRUE(other.commit_wait());
    job.step(1);
  });
}

TEST(BackgroundCommits, OfWhatIsDestroyedMeanwhileAreWhole) {
  const Directory directory;
  std::vector<float> expected;
  run(2, [&](Comm& comm, int rank) {
    Checkpoint checkpoint(comm, directory.path());
    {
      const shardrec::Model model = make_model();
      Large large(comm, 2);
      Job job(comm, nullptr, model, make_plan(model, 2, SHARDREC_SHARDING_ROW_WISE));
      checkpoint.add("a large one", large.tables);
      add_all(checkpoint, job);
      for (int64_t i = 0; i < 3; ++i) job.step(i);
      auto state = job.state();
      if (rank == 0) expected = std::move(state);
      checkpoint.commit_begin(3);
      job.step(3);
    }
    EXPECT_TRUE(checkpoint.commit_wait());
    EXPECT_EQ(status_of([&] { checkpoint.commit_begin(4); }), SHARDREC_CLOSED);
  });
  EXPECT_EQ(state_of(directory.path(), 3, 2), expected);
}

TEST(BackgroundCommits, EndWithACancelOnAllRanks) {
  const Directory directory;
  run(2, [&](Comm& comm, int rank) {
    const shardrec::Model model = make_model();
    Job job(comm, nullptr, model, make_plan(model, 2, SHARDREC_SHARDING_ROW_WISE));
    Checkpoint checkpoint(comm, directory.path());
    add_all(checkpoint, job);
    checkpoint.commit(0);
    Control control;
    checkpoint.commit_begin(1, &control);
    if (rank == 1) control.cancel();  // before its end, if late
    job.step(0);
    std::string sentence;
    EXPECT_EQ(status_of([&] { wait_for(checkpoint, [] {}); }, &sentence), SHARDREC_CANCELLED);
    EXPECT_NE(sentence.find("rank 1"), std::string::npos) << sentence;
    checkpoint.open();
    EXPECT_EQ(checkpoint.info().step, 0);
    checkpoint.commit_begin(2);
    EXPECT_TRUE(checkpoint.commit_wait());
  });
}

TEST(BackgroundCommits, AreEndedByAnotherThreadThanTheOneThatTrains) {
  const Directory directory;
  run(2, [&](Comm& comm, int) {
    const shardrec::Model model = make_model();
    Large large(comm, 2);
    Job job(comm, nullptr, model, make_plan(model, 2, SHARDREC_SHARDING_ROW_WISE));
    Checkpoint checkpoint(comm, directory.path());
    checkpoint.add("a large one", large.tables);
    add_all(checkpoint, job);
    checkpoint.commit_begin(0);
    std::thread waits([&] { EXPECT_TRUE(checkpoint.commit_wait()); });
    for (int64_t i = 0; i < 10; ++i) job.step(i);
    waits.join();
    job.step(10);
    checkpoint.open();
    checkpoint.load();
    EXPECT_EQ(job.tables.step(), 0);
  });
}

TEST(BackgroundCommits, WhoseDirectoryIsTakenAwayFailOnAllRanks) {
  const Directory directory;
  const Directory elsewhere;
  run(2, [&](Comm& comm, int rank) {
    const shardrec::Model model = make_model();
    Job job(comm, nullptr, model, make_plan(model, 2, SHARDREC_SHARDING_ROW_WISE));
    Checkpoint checkpoint(comm, directory.path());
    add_all(checkpoint, job);
    checkpoint.commit_begin(1);
    comm.barrier();
    if (rank == 0) {
      std::filesystem::rename(directory.path() + "/step_000000000001", elsewhere.path("gone"));
    }
    comm.barrier();
    job.step(0);
    EXPECT_EQ(status_of([&] { checkpoint.commit_wait(); }), SHARDREC_IO_ERROR);
    job.step(1);
    checkpoint.commit_begin(2);
    EXPECT_TRUE(checkpoint.commit_wait());
  });
}

TEST(BackgroundCommits, AreGivenUpWithTheirHandle) {
  const Directory directory;
  run(2, [&](Comm& comm, int) {
    const shardrec::Model model = make_model();
    Large large(comm, 2);
    Job job(comm, nullptr, model, make_plan(model, 2, SHARDREC_SHARDING_ROW_WISE));
    {
      Checkpoint checkpoint(comm, directory.path());
      checkpoint.add("a large one", large.tables);
      add_all(checkpoint, job);
      checkpoint.commit_begin(1);
      job.step(0);
    }
    job.step(1);
    Checkpoint checkpoint(comm, directory.path());
    checkpoint.add("a large one", large.tables);
    EXPECT_TRUE(shardrec::test::eventually([&] {
      const shardrec_status status = status_of([&] { checkpoint.commit(2); });
      EXPECT_TRUE(status == SHARDREC_OK || status == SHARDREC_INVALID_STATE) << status;
      return status == SHARDREC_OK;
    }));
    int64_t step = 3;  // later commits remove what the other could not
    EXPECT_TRUE(shardrec::test::eventually([&] {
      checkpoint.commit(step++);
      std::vector<double> left = {
          std::filesystem::exists(directory.path() + "/step_000000000001") ? 1.0 : 0.0};
      comm.all_reduce(left, SHARDREC_REDUCTION_MAX);
      return left[0] == 0;
    }));
  });
}

}  // namespace
}  // namespace shardrec_test
