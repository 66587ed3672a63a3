// What saving and loading do when something fails: all ranks end the same way, and nothing is left
// half done.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>

#include "checkpoint/faulty_environment.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint/world.h"
#include "core/environment.h"

namespace shardrec::checkpoint {
namespace {

class Failure : public ::testing::Test {
 protected:
  void save_good() { expect_ok(save_all(model_, plan_, scratch_.path(), 9)); }

  Scratch scratch_;
  plan::Model model_ = model_of({{7, 3}, {4, 6}});
  plan::Plan plan_ = make_plan(model_, {3, 2}, SHARDREC_SHARDING_ROW_WISE);
};

// The n-th operation of one rank fails, for every n and every rank, until none does.
TEST_F(Failure, OfAnyOperationOfAnyRankEndsASaveOnAllRanksAndLeavesNothing) {
  for (int rank = 0; rank < 3; ++rank) {
    int faults = 0;
    for (int64_t allowed = 0;; ++allowed) {
      ASSERT_LT(allowed, 100);
      FaultyEnvironment environment(allowed, allowed % 2 == 0);
      const std::string directory = scratch_.path(core::sentence("save", rank, "-", allowed));
      const Errors errors =
          save_all(model_, plan_, directory, 9, {.environment = &environment, .faulty_rank = rank});
      if (!environment.failed()) {
        expect_ok(errors);
        EXPECT_EQ(load_all(model_, plan_, directory).wrong, 0);
        break;
      }
      ++faults;
      expect_all(errors, SHARDREC_IO_ERROR, "injected");
      for (const auto& error : errors) {
        EXPECT_EQ(error->parts().rank, rank);
        EXPECT_FALSE(error->parts().path.empty());
      }
      EXPECT_FALSE(std::filesystem::exists(directory)) << "after " << allowed;
    }
    EXPECT_GE(faults, 6);
  }
}

TEST_F(Failure, OfAnyOperationOfAnyRankEndsALoadOnAllRanks) {
  save_good();
  const plan::Plan plan = make_plan(model_, {2, 1}, SHARDREC_SHARDING_COLUMN_WISE);
  for (int rank = 0; rank < 2; ++rank) {
    int untouched = 0;
    int filled_in_part = 0;
    for (int64_t allowed = 0;; ++allowed) {
      ASSERT_LT(allowed, 200);
      FaultyEnvironment environment(allowed, false);
      const Loaded loaded = load_all(model_, plan, scratch_.path(),
                                     {.environment = &environment, .faulty_rank = rank});
      if (!environment.failed()) {
        expect_ok(loaded.errors);
        EXPECT_EQ(loaded.wrong, 0);
        break;
      }
      expect_all(loaded.errors, SHARDREC_IO_ERROR, "injected");
      EXPECT_EQ(loaded.errors[0]->parts().rank, rank);
      // Either nothing has changed, or every rank knows that its tables are not to be used.
      if (loaded.begun) {
        ++filled_in_part;
      } else {
        EXPECT_EQ(loaded.changed, 0);
        EXPECT_EQ(loaded.unaware, 2);
        ++untouched;
      }
    }
    // Manifest and headers before, blocks of tables after.
    EXPECT_GE(untouched, 4);
    EXPECT_GE(filled_in_part, 4);
  }
}

// A byte that changes between two readings is caught by the one that counts: there is one.
TEST_F(Failure, OfAByteThatChangesWhileItIsReadIsNoticed) {
  save_good();
  const plan::Plan plan = make_plan(model_, {2, 1}, SHARDREC_SHARDING_COLUMN_WISE);
  int reads = 0;
  for (int64_t at = 0;; ++at) {
    HookedEnvironment environment;
    std::atomic<int64_t> count{0};
    environment.after_read = [&](const std::string&, std::span<std::byte> bytes) {
      if (count.fetch_add(1) == at && !bytes.empty()) bytes[bytes.size() / 2] ^= std::byte{4};
    };
    const Loaded loaded =
        load_all(model_, plan, scratch_.path(), {.environment = &environment, .faulty_rank = 1});
    if (count.load() <= at) {
      expect_ok(loaded.errors);
      break;
    }
    ++reads;
    expect_all(loaded.errors, SHARDREC_CORRUPT_DATA);
    if (!loaded.begun) {
      EXPECT_EQ(loaded.changed, 0);
    }
  }
  EXPECT_GE(reads, 6);
}

TEST_F(Failure, ASaveDoesNotTouchACheckpointThatIsThere) {
  save_good();
  const std::string manifest = read_all(scratch_.path() + "/manifest.json");
  const auto names = names_in(scratch_.path());
  expect_all(save_all(model_, plan_, scratch_.path(), 10), SHARDREC_INVALID_ARGUMENT,
             "already holds a checkpoint");
  EXPECT_EQ(read_all(scratch_.path() + "/manifest.json"), manifest);
  EXPECT_EQ(names_in(scratch_.path()), names);
  EXPECT_EQ(load_all(model_, plan_, scratch_.path()).steps, (std::vector<int64_t>{9, 9, 9}));
}

TEST_F(Failure, ASaveReplacesWhatAnInterruptedOneLeft) {
  std::filesystem::create_directories(scratch_.path());
  write_all(scratch_.path() + "/rank_00000.safetensors", "half");
  write_all(scratch_.path() + "/rank_00001.safetensors.tmp", "half");
  write_all(scratch_.path() + "/manifest.json.tmp", "half");
  save_good();
  const Loaded loaded = load_all(model_, plan_, scratch_.path());
  expect_ok(loaded.errors);
  EXPECT_EQ(loaded.wrong, 0);
}

TEST_F(Failure, ADirectoryThatCannotBeMadeIsNamedOnAllRanks) {
  write_all(scratch_.path("file"), "x");
  expect_all(save_all(model_, plan_, scratch_.path("file"), 1), SHARDREC_IO_ERROR, "rank 0");
  expect_all(save_all(model_, plan_, scratch_.path("file/below"), 1), SHARDREC_IO_ERROR, "rank 0");
  expect_all(save_all(model_, plan_, "", 1), SHARDREC_INVALID_ARGUMENT);
  expect_ok(save_all(model_, plan_, scratch_.path("a/b/c"), 1));
}

TEST_F(Failure, LoadingWhereNothingIsSaysSo) {
  expect_all(load_all(model_, plan_, scratch_.path("nowhere")).errors, SHARDREC_NOT_FOUND,
             "no checkpoint");
  std::filesystem::create_directories(scratch_.path("empty"));
  expect_all(load_all(model_, plan_, scratch_.path("empty")).errors, SHARDREC_NOT_FOUND,
             "no checkpoint");
}

TEST_F(Failure, ACheckpointOfAnotherModelIsRefusedWithTheTable) {
  save_good();
  const auto refused = [&](const plan::Model& model, shardrec_status status,
                           const std::string& part) {
    const Loaded loaded =
        load_all(model, make_plan(model, {2, 1}, SHARDREC_SHARDING_ROW_WISE), scratch_.path());
    expect_all(loaded.errors, status, part);
    EXPECT_EQ(loaded.changed, 0);
  };
  refused(model_of({{7, 3}, {5, 6}}), SHARDREC_INVALID_ARGUMENT, "table \"t1\" has 4 rows");
  refused(model_of({{7, 4}, {4, 6}}), SHARDREC_INVALID_ARGUMENT, "table \"t0\" has 7 rows");
  refused(model_of({{7, 3}, {4, 6}, {1, 1}}), SHARDREC_NOT_FOUND, "no table \"t2\"");
  refused(model_of({{7, 3}, {4, 6}}, SHARDREC_OPTIMIZER_SGD), SHARDREC_INVALID_ARGUMENT,
          "rowwise_adagrad");
  plan::Model of_16_bits = model_of({{7, 3}, {4, 6}});
  of_16_bits.tables[1].dtype = SHARDREC_BFLOAT16;
  refused(of_16_bits, SHARDREC_INVALID_ARGUMENT, "table \"t1\" is float32 in the checkpoint");
}

TEST_F(Failure, PiecesThatMissACellAreNeverACheckpoint) {
  plan::Plan hole = plan_;
  hole.tables[0].boxes.pop_back();
  expect_all(save_all(model_, hole, scratch_.path(), 1), SHARDREC_INTERNAL, "table \"t0\"");
  EXPECT_EQ(left_in(scratch_.path()), std::vector<std::string>{});
  plan::Plan twice = plan_;
  twice.tables[1].boxes[0].cells.rows += 1;
  expect_all(save_all(model_, twice, scratch_.path(), 1), SHARDREC_INTERNAL, "overlap");
  EXPECT_EQ(left_in(scratch_.path()), std::vector<std::string>{});
}

TEST_F(Failure, RanksThatSeeDifferentDirectoriesLoadNothing) {
  save_good();
  const std::string other = scratch_.path("other");
  expect_ok(save_all(model_, plan_, other, 10));
  // Rank 1's view of the directory is another one.
  class Elsewhere final : public HookedEnvironment {
   public:
    Elsewhere(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}
    std::unique_ptr<core::ReadFile> open(const std::string& path) override {
      return HookedEnvironment::open(moved(path));
    }
    bool exists(const std::string& path) override { return HookedEnvironment::exists(moved(path)); }

   private:
    std::string moved(const std::string& path) const {
      return path.starts_with(from_) ? to_ + path.substr(from_.size()) : path;
    }
    std::string from_;
    std::string to_;
  } elsewhere(scratch_.path(), other);
  const Loaded loaded =
      load_all(model_, plan_, scratch_.path(), {.environment = &elsewhere, .faulty_rank = 1});
  expect_all(loaded.errors, SHARDREC_IO_ERROR, "rank 1 sees another checkpoint");
  EXPECT_EQ(loaded.changed, 0);
}

TEST_F(Failure, OfAPeerEndsTheCall) {
  const auto errors = comm::run_ranks(2, [&](comm::Communicator& communicator) {
    if (communicator.rank() == 1) core::fail(SHARDREC_INTERNAL, "this rank goes away");
    Ranks ranks(communicator);
    save(ranks.group(), {.directory = scratch_.path(), .step = 1}, {}, nullptr);
  });
  ASSERT_TRUE(errors[0].has_value());
  EXPECT_EQ(errors[0]->status(), SHARDREC_PEER_FAILED);
}

TEST(Cancel, EndsASaveOnAllRanksAndLeavesNothing) {
  Scratch scratch;
  const plan::Model model = model_of({{5, 3}});
  core::Control control;
  control.cancel();
  expect_all(save_all(model, make_plan(model, {2, 1}, SHARDREC_SHARDING_ROW_WISE), scratch.path(),
                      1, {.control = &control, .faulty_rank = 1}),
             SHARDREC_CANCELLED);
  EXPECT_EQ(left_in(scratch.path()), std::vector<std::string>{});
}

TEST(Cancel, EndsALoadOnAllRanksAndChangesNothing) {
  Scratch scratch;
  const plan::Model model = model_of({{5, 3}});
  const plan::Plan plan = make_plan(model, {2, 1}, SHARDREC_SHARDING_ROW_WISE);
  expect_ok(save_all(model, plan, scratch.path(), 1));
  core::Control control;
  control.cancel();
  const Loaded loaded =
      load_all(model, plan, scratch.path(), {.control = &control, .faulty_rank = 0});
  expect_all(loaded.errors, SHARDREC_CANCELLED);
  EXPECT_EQ(loaded.changed, 0);
}

TEST(Cancel, TakesEffectBetweenChunks) {
  Scratch scratch;
  const plan::Model model = model_of({{1 << 20, 8}}, SHARDREC_OPTIMIZER_SGD);
  const plan::Plan plan = make_plan(model, {1, 1}, SHARDREC_SHARDING_TABLE_WISE);
  core::Control control;
  // Somebody cancels while the second of eight chunks is written.
  HookedEnvironment environment;
  int writes = 0;
  environment.before = [&](const std::string& what, const std::string&) {
    if (what == "write" && ++writes == 3) control.cancel();  // the header is the first
  };
  const Errors errors =
      save_all(model, plan, scratch.path(), 1, {.control = &control, .environment = &environment});
  expect_all(errors, SHARDREC_CANCELLED);
  EXPECT_EQ(control.done(), int64_t{8} << 20);
  EXPECT_EQ(control.total(), int64_t{32} << 20);
  EXPECT_EQ(left_in(scratch.path()), std::vector<std::string>{});
}

TEST(Progress, CountsTheBytesOfAllChunks) {
  Scratch scratch;
  const plan::Model model = model_of({{1000, 3}});
  const plan::Plan plan = make_plan(model, {1, 1}, SHARDREC_SHARDING_TABLE_WISE);
  core::Control control;
  expect_ok(save_all(model, plan, scratch.path(), 1, {.control = &control}));
  EXPECT_EQ(control.total(), 1000 * 4 * 4);
  EXPECT_EQ(control.done(), control.total());
  expect_ok(load_all(model, plan, scratch.path(), {.control = &control}).errors);
  // Verified as they are read, once.
  EXPECT_EQ(control.total(), 1000 * 4 * 4);
  EXPECT_EQ(control.done(), control.total());
}

}  // namespace
}  // namespace shardrec::checkpoint
