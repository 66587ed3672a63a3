// A root with its steps: what counts as committed, who may commit, what is removed.
#include "checkpoint/store/store.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <utility>

#include "checkpoint/faulty_environment.h"
#include "checkpoint/world.h"

namespace shardrec::checkpoint {
namespace {

// Jobs of two ranks that commit to one root; each keeps what it knows of it.
class Store : public ::testing::Test {
 protected:
  struct Job {
    Lineage lineage[2];
  };

  Errors commit(Job& job, int64_t step, int64_t keep = 0, const Seams& seams = {}) const {
    return comm::run_ranks(2, [&](comm::Communicator& communicator) {
      const int rank = communicator.rank();
      Ranks ranks(communicator);
      RankTables tables(model_, plan_, rank, Use::kSave, 0);
      tables.set_values();
      Contents contents = contents_of(model_, plan_, step, tables);
      float dense = 0.5F + static_cast<float>(step);
      contents.items.push_back(
          {.kind = ItemKind::kLayers,
           .name = "bottom",
           .description = "{}",
           .tensors = {{.name = "w",
                        .shape = {1},
                        .data = std::as_writable_bytes(std::span(&dense, 1)).data()}}});
      int64_t position = step * 10 + rank;
      contents.items.push_back(
          {.kind = ItemKind::kHostTensor,
           .name = "position",
           .description = {},
           .tensors = {{.name = "tensor",
                        .dtype = SHARDREC_INT64,
                        .shape = {1},
                        .data = std::as_writable_bytes(std::span(&position, 1)).data()}}});
      commit_step(ranks.group(), root(), step, keep, contents, job.lineage[rank],
                  seams.control_of(rank), seams.environment_of(rank));
    });
  }

  // Opens and loads all of it; the step, by every rank, or -1 where it is not whole.
  int64_t load(Job& job, int64_t step = -1, Errors* errors = nullptr) const {
    std::vector<int64_t> steps(2, -1);
    constexpr uint32_t kFill = 0x3F003F01;
    int64_t wrong = 0;
    std::mutex mutex;
    const Errors got = comm::run_ranks(2, [&](comm::Communicator& communicator) {
      const int rank = communicator.rank();
      Ranks ranks(communicator);
      RankTables tables(model_, plan_, rank, Use::kLoad, kFill);
      Contents wanted = contents_of(model_, plan_, -1, tables);
      float dense = -1;
      wanted.items.push_back(
          {.kind = ItemKind::kLayers,
           .name = "bottom",
           .description = {},
           .tensors = {{.name = "w",
                        .shape = {1},
                        .data = std::as_writable_bytes(std::span(&dense, 1)).data()}}});
      const Opened opened = open_step(ranks.group(), root(), step, job.lineage[rank]);
      checkpoint::load(ranks.group(), opened, wanted, nullptr, [] {});
      const int64_t found = opened.manifest.step;
      for (int r = 0; r < 2; ++r) {
        int64_t position = -1;
        read_dense(opened, find_position(opened, r),
                   std::as_writable_bytes(std::span(&position, 1)));
        EXPECT_EQ(position, found * 10 + r);
      }
      EXPECT_EQ(dense, 0.5F + static_cast<float>(found));
      EXPECT_EQ(wanted.collections.front().step, found);
      std::lock_guard lock(mutex);
      wrong += tables.wrong();
      steps[static_cast<size_t>(rank)] = found;
    });
    if (errors != nullptr) {
      *errors = got;
    } else {
      expect_ok(got);
    }
    EXPECT_EQ(steps[0], steps[1]);
    return wrong == 0 ? steps[0] : -1;
  }

  static const ManifestDense& find_position(const Opened& opened, int rank) {
    for (const ManifestItem& item : opened.manifest.items) {
      if (item.name == "position" && item.rank == rank) return item.tensors.front();
    }
    core::fail(SHARDREC_NOT_FOUND, "no position");
  }

  std::string root() const { return scratch_.path("run"); }
  std::set<std::string> steps_there() const {
    std::set<std::string> names;
    for (const std::string& name : left_in(root())) {
      if (name.starts_with("step_")) names.insert(name);
    }
    return names;
  }

  Scratch scratch_;
  plan::Model model_ = model_of({{7, 3}, {4, 6}});
  plan::Plan plan_ = make_plan(model_, {2, 1}, SHARDREC_SHARDING_ROW_WISE);
};

TEST_F(Store, TheNewestIsOpenedAndAnyOtherByItsStep) {
  Job job;
  for (const int64_t step : {3, 5, 9}) expect_ok(commit(job, step));
  EXPECT_EQ(load(job), 9);
  EXPECT_EQ(load(job, 5), 5);
  EXPECT_EQ(steps_there(),
            (std::set<std::string>{"step_000000000003", "step_000000000005", "step_000000000009"}));
  Errors errors;
  load(job, 4, &errors);
  expect_all(errors, SHARDREC_NOT_FOUND, "no checkpoint of step 4");
}

TEST_F(Store, NothingThereIsNotFound) {
  Job job;
  Errors errors;
  load(job, -1, &errors);
  expect_all(errors, SHARDREC_NOT_FOUND, "no checkpoint");
  load(job, 1, &errors);
  expect_all(errors, SHARDREC_NOT_FOUND, "no directory");
}

TEST_F(Store, KeepsTheLastOnesOfItsRun) {
  Job job;
  for (int64_t step = 1; step <= 5; ++step) expect_ok(commit(job, step, 2));
  EXPECT_EQ(steps_there(), (std::set<std::string>{"step_000000000004", "step_000000000005"}));
  EXPECT_EQ(load(job), 5);
}

TEST_F(Store, AnotherRunIsRefusedUntilItOpensACheckpoint) {
  Job first;
  expect_ok(commit(first, 1));
  Job second;
  expect_all(commit(second, 2), SHARDREC_INVALID_STATE, "another run");
  EXPECT_EQ(load(second), 1);
  expect_ok(commit(second, 2));
  EXPECT_EQ(load(first), 2);
}

TEST_F(Store, GoingBackAStepReplacesWhatCameLaterWhenItIsReachedAgain) {
  Job job;
  for (const int64_t step : {1, 2, 3}) expect_ok(commit(job, step));
  EXPECT_EQ(load(job, 1), 1);
  expect_ok(commit(job, 2));
  EXPECT_EQ(load(job), 2);
  EXPECT_EQ(steps_there(), (std::set<std::string>{"step_000000000001", "step_000000000002.1",
                                                  "step_000000000003"}));
  // Those that were committed last stay, whatever their steps.
  expect_ok(commit(job, 3, 2));
  EXPECT_EQ(steps_there(), (std::set<std::string>{"step_000000000002.1", "step_000000000003.1"}));
}

TEST_F(Store, OfTwoThatCommitAtTheSameTimeOneIsRefused) {
  Job job;
  expect_ok(commit(job, 1));
  std::unique_ptr<core::FileLock> held;
  ASSERT_EQ(core::default_environment().lock(root() + "/LOCK", held),
            core::Environment::LockResult::kTaken);
  expect_all(commit(job, 2), SHARDREC_INVALID_STATE, "another job commits");
  held.reset();
  expect_ok(commit(job, 2));
  EXPECT_EQ(load(job), 2);
}

// Both opened the same checkpoint; their commits do not even overlap.
TEST_F(Store, OfTwoThatGoOnFromOneCheckpointTheFirstToCommitGoesOn) {
  Job job;
  expect_ok(commit(job, 1));
  expect_ok(commit(job, 2));
  Job first;
  Job second;
  EXPECT_EQ(load(first, 1), 1);
  EXPECT_EQ(load(second, 1), 1);
  expect_ok(commit(second, 3));
  expect_all(commit(first, 3), SHARDREC_INVALID_STATE, "another job has committed");
  expect_all(commit(job, 3), SHARDREC_INVALID_STATE, "another job has committed");
  expect_ok(commit(second, 4));
  EXPECT_EQ(load(first), 4);
  expect_ok(commit(first, 5));
  EXPECT_EQ(load(second), 5);
}

TEST_F(Store, AnyFailedOperationLeavesTheCheckpointBefore) {
  for (const auto& [rank, for_good] : {std::pair(0, false), {0, true}, {1, false}, {1, true}}) {
    int failures = 0;
    for (int64_t allowed = 0;; ++allowed) {
      ASSERT_LT(allowed, 100);
      Job job;
      expect_ok(commit(job, 1));
      FaultyEnvironment environment(allowed, for_good);
      const Errors errors = commit(job, 2, 0, {.environment = &environment, .faulty_rank = rank});
      Job reader;
      const int64_t newest = load(reader);
      if (!errors[0]) {
        // Nothing failed, or only the look for old checkpoints to remove.
        expect_ok(errors);
        EXPECT_EQ(newest, 2);
      } else {
        ++failures;
        expect_all(errors, SHARDREC_IO_ERROR, "injected");
        // Where not even LATEST can be read or put back the new one stays, which is whole.
        EXPECT_TRUE(newest == 1 || (for_good && newest == 2)) << newest;
        if (!for_good) {
          EXPECT_EQ(steps_there(), (std::set<std::string>{"step_000000000001"}));
        }
      }
      // What a failed commit left behind is no other job's: this one goes on.
      expect_ok(commit(job, 3));
      EXPECT_EQ(load(reader), 3);
      std::filesystem::remove_all(root());
      if (!environment.failed()) break;
    }
    EXPECT_GE(failures, rank == 0 ? 20 : 6);
  }
}

TEST_F(Store, WhatAKilledCommitLeftIsPassedOverAndRemoved) {
  Job job;
  expect_ok(commit(job, 1));
  // Killed before its manifest, and after it but before LATEST.
  std::filesystem::create_directories(root() + "/step_000000000002");
  write_all(root() + "/step_000000000002/rank_00000.safetensors", "half");
  std::filesystem::copy(root() + "/step_000000000001", root() + "/step_000000000003");
  EXPECT_EQ(load(job), 1);
  expect_ok(commit(job, 2));
  EXPECT_EQ(load(job), 2);
  EXPECT_FALSE(std::filesystem::exists(root() + "/step_000000000002"));
  EXPECT_TRUE(std::filesystem::exists(root() + "/step_000000000002.1/manifest.json"));
}

TEST_F(Store, ForeignFilesAreNeverRemoved) {
  Job job;
  expect_ok(commit(job, 1, 1));
  write_all(root() + "/notes.txt", "mine");
  write_all(root() + "/step_000000000001/notes.txt", "mine");
  expect_ok(commit(job, 2, 1));
  EXPECT_EQ(read_all(root() + "/notes.txt"), "mine");
  EXPECT_EQ(read_all(root() + "/step_000000000001/notes.txt"), "mine");
  EXPECT_EQ(load(job), 2);
}

TEST_F(Store, ADamagedLatestIsNoticed) {
  Job job;
  expect_ok(commit(job, 1));
  expect_ok(commit(job, 2));
  const std::string path = root() + "/LATEST";
  const std::string good = read_all(path);
  for (size_t at = 0; at < good.size(); ++at) {
    for (const char bit : {1, 2, 0x40}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ bit);
      write_all(path, bad);
      Errors errors;
      load(job, -1, &errors);
      expect_all(errors, SHARDREC_CORRUPT_DATA, "LATEST");
    }
    write_all(path, good.substr(0, at));
    Errors errors;
    load(job, -1, &errors);
    expect_all(errors, SHARDREC_CORRUPT_DATA);
  }
  EXPECT_EQ(load(job, 2), 2);
}

TEST_F(Store, PlantedLinksAreNotFollowed) {
  const std::string victim = scratch_.path("victim");
  write_all(victim, "precious");
  std::filesystem::create_directories(root());
  for (const char* name : {"LATEST", "manifest.json.tmp", "LATEST.tmp"}) {
    std::filesystem::create_symlink(victim, root() + "/" + name);
  }
  std::filesystem::create_symlink(scratch_.path("elsewhere"), root() + "/step_000000000001");
  Job job;
  // A planted LATEST is read, found to be none, and refused.
  expect_all(commit(job, 1), SHARDREC_CORRUPT_DATA, "LATEST");
  std::filesystem::remove(root() + "/LATEST");
  expect_ok(commit(job, 1));
  EXPECT_EQ(read_all(victim), "precious");
  EXPECT_FALSE(std::filesystem::exists(scratch_.path("elsewhere")));
  EXPECT_EQ(load(job), 1);
  std::filesystem::remove(root() + "/LOCK");
  std::filesystem::create_symlink(victim, root() + "/LOCK");
  expect_all(commit(job, 2), SHARDREC_IO_ERROR, "LOCK");
}

TEST_F(Store, AFileBeyondTheLimitOfItsSizeIsAnErrorAndNoSignal) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 100;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  Job job;
  const Errors errors = commit(job, 1);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  expect_all(errors, SHARDREC_IO_ERROR);
  EXPECT_EQ(steps_there(), std::set<std::string>{});
}

TEST_F(Store, RanksWithoutASharedDirectoryCommitNothing) {
  // Rank 1 has a root of its own, in which the directory of the step is there or not.
  class Elsewhere final : public HookedEnvironment {
   public:
    Elsewhere(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}
    std::unique_ptr<core::WriteFile> create(const std::string& path) override {
      return HookedEnvironment::create(moved(path));
    }
    bool exists(const std::string& path) override { return HookedEnvironment::exists(moved(path)); }
    void remove(const std::string& path) override { HookedEnvironment::remove(moved(path)); }
    void sync_directory(const std::string& path) override {
      HookedEnvironment::sync_directory(moved(path));
    }

   private:
    std::string moved(const std::string& path) const {
      return path.starts_with(from_) ? to_ + path.substr(from_.size()) : path;
    }
    std::string from_;
    std::string to_;
  } elsewhere(root(), scratch_.path("elsewhere"));
  Job job;
  expect_all(commit(job, 1, 0, {.environment = &elsewhere, .faulty_rank = 1}), SHARDREC_IO_ERROR,
             "must share");
  std::filesystem::create_directories(scratch_.path("elsewhere/step_000000000001"));
  expect_all(commit(job, 1, 0, {.environment = &elsewhere, .faulty_rank = 1}), SHARDREC_IO_ERROR,
             "must share");
  EXPECT_EQ(left_in(scratch_.path("elsewhere/step_000000000001")), std::vector<std::string>{});
  EXPECT_EQ(steps_there(), std::set<std::string>{});
  expect_ok(commit(job, 1));
  EXPECT_EQ(load(job), 1);
}

TEST_F(Store, LayersThatDifferBetweenRanksAreTold) {
  const Errors errors = comm::run_ranks(2, [&](comm::Communicator& communicator) {
    Ranks ranks(communicator);
    auto value = static_cast<float>(communicator.rank());
    Contents contents;
    contents.items.push_back(
        {.kind = ItemKind::kParameters,
         .name = "top",
         .description = {},
         .tensors = {{.name = "w",
                      .shape = {1},
                      .data = std::as_writable_bytes(std::span(&value, 1)).data()}}});
    Lineage lineage;
    commit_step(ranks.group(), root(), 1, 0, contents, lineage, nullptr);
  });
  expect_all(errors, SHARDREC_DISAGREEMENT, "values of \"top\"");
  EXPECT_EQ(steps_there(), std::set<std::string>{});
}

TEST_F(Store, ListsWhatIsThereInTheOrderOfCommits) {
  Job job;
  for (const int64_t step : {7, 2}) expect_ok(commit(job, step));
  const Listing listing = list_checkpoints(root());
  ASSERT_EQ(listing.entries.size(), 2U);
  EXPECT_EQ(listing.entries[0].step, 7);
  EXPECT_EQ(listing.entries[1].step, 2);
  EXPECT_TRUE(listing.has_latest);
  EXPECT_EQ(listing.latest, "step_000000000002");
  EXPECT_GT(listing.entries[0].bytes, (7 * 3 + 7 + 4 * 6 + 4) * 4);
}

}  // namespace
}  // namespace shardrec::checkpoint
