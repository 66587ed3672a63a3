// Deltas: commits of the rows that have changed. A whole checkpoint and the deltas behind it are, bit for bit, the
// whole checkpoint of each of their steps, under any plan and number of ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/delta_values.h"
#include "checkpoint/read/opened.h"
#include "checkpoint/store/root_files.h"
#include "checkpoint/trained.h"
#include "checkpoint/world.h"

namespace shardrec_test {
namespace {

namespace checkpoint = shardrec::checkpoint;
using shardrec::Checkpoint;
using shardrec::CheckpointOptions;
using shardrec::Comm;

class Deltas : public ::testing::TestWithParam<TrainedWorld> {
 protected:
  // Commits `commits` steps, the first one of which is whole; what was in each.
  std::map<int64_t, Values> commit_some(int64_t commits, uint32_t seed) const {
    std::map<int64_t, Values> committed;
    std::mutex mutex;
    on_ranks(GetParam(), [&](Trained& trained, Comm& comm) {
      std::mt19937 random(seed);
      Checkpoint handle(comm, scratch_.path());
      handle.add("tables", *trained.tables);
      int64_t number = 0;
      for (int64_t step = 0; step < commits; ++step) {
        train_some(trained, number, random);
        EXPECT_EQ(handle.commit_delta(step), step != 0);
        Values values = values_of(trained);
        const std::lock_guard lock(mutex);
        committed[step] = std::move(values);
      }
    });
    return committed;
  }

  // Loads a step into tables of another world; what is in them.
  Values load(const TrainedWorld& world, int64_t step) const {
    Values loaded;
    std::mutex mutex;
    on_ranks(world, [&](Trained& trained, Comm& comm) {
      trained.step(77);  // tables that are others than new ones
      Checkpoint handle(comm, scratch_.path());
      handle.add("tables", *trained.tables);
      handle.open(step);
      handle.verify();
      handle.load();
      Values values = values_of(trained);
      const std::lock_guard lock(mutex);
      loaded = std::move(values);
    });
    return loaded;
  }

  checkpoint::Scratch scratch_;
};

TEST_P(Deltas, AndTheirBaseAreTheWholeCheckpointOfEachStep) {
  const auto committed = commit_some(7, 5);
  const std::vector<TrainedWorld> worlds = {{1, 1, SHARDREC_SHARDING_TABLE_WISE},
                                            {2, 2, SHARDREC_SHARDING_ROW_WISE},
                                            {3, 3, SHARDREC_SHARDING_COLUMN_WISE},
                                            {4, 2, SHARDREC_SHARDING_GRID},
                                            {2, 2, SHARDREC_SHARDING_DATA_PARALLEL}};
  for (const auto& [step, values] : committed) {
    const TrainedWorld& world = worlds[static_cast<size_t>(step) % worlds.size()];
    EXPECT_EQ(load(world, step), values) << "step " << step;
  }
  EXPECT_EQ(load(GetParam(), 6), committed.at(6));
}

// Bytes are those of the rows that have changed, with their numbers.
TEST_P(Deltas, HoldTheRowsThatHaveChanged) {
  on_ranks(GetParam(), [&](Trained& trained, Comm& comm) {
    Checkpoint handle(comm, scratch_.path());
    handle.add("tables", *trained.tables);
    handle.commit_delta(0);
    handle.commit_delta(1);
    trained.step(3);
    trained.tables->sync_replicas();
    handle.commit_delta(2);
    handle.commit_delta(3);
    if (comm.rank() != 0) return;
    const auto rows_in = [&](int64_t step) {
      const auto opened = checkpoint::open_directory(checkpoint::find_step(scratch_.path(), step));
      std::vector<int64_t> rows(kOptimizers, 0);
      for (const checkpoint::ManifestTensor& tensor : opened.manifest.tensors) {
        if (tensor.part != checkpoint::TablePart::kWeights) continue;
        rows[static_cast<size_t>(tensor.table)] += tensor.stored_rows() * tensor.cells.cols;
      }
      return rows;
    };
    EXPECT_EQ(rows_in(1), std::vector<int64_t>(kOptimizers, 0));
    EXPECT_EQ(rows_in(3), std::vector<int64_t>(kOptimizers, 0));
    const std::vector<int64_t> elements = rows_in(2);
    for (int t = 0; t < kOptimizers; ++t) {
      std::set<int64_t> touched;
      for (int rank = 0; rank < GetParam().ranks; ++rank) {
        for (const int64_t id : Trained::ids_of(3, rank, t)) touched.insert(id);
      }
      EXPECT_EQ(elements[static_cast<size_t>(t)], std::ssize(touched) * World::dim(t));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Kinds, Deltas, ::testing::ValuesIn(trained_worlds()),
                         [](const auto& given) { return given.param.name(); });

// One rank, or two, with a root of its own.
class DeltaRoot : public ::testing::Test {
 protected:
  static constexpr TrainedWorld kAlone{1, 1, SHARDREC_SHARDING_MIXED};

  static shardrec_status status_of(const auto& call, std::string* sentence = nullptr) {
    try {
      call();
    } catch (const shardrec::Error& error) {
      if (sentence != nullptr) *sentence = error.what();
      return error.status();
    }
    return SHARDREC_OK;
  }
  std::vector<std::string> steps_there() const {
    std::vector<std::string> names;
    for (const std::string& name : checkpoint::left_in(root())) {
      if (checkpoint::is_step_name(name)) names.push_back(name);
    }
    return names;
  }
  std::string root() const { return scratch_.path(); }
  std::string step_path(int64_t step) const { return root() + "/" + checkpoint::step_name(step); }

  // A whole checkpoint of step 0 and deltas up to `last`, each of a step.
  void commit_up_to(int64_t last, const std::string& directory) const {
    on_ranks(kAlone, [&](Trained& trained, Comm& comm) {
      Checkpoint handle(comm, directory);
      handle.add("tables", *trained.tables);
      for (int64_t step = 0; step <= last; ++step) {
        trained.step(step);
        handle.commit_delta(step);
      }
    });
  }

  checkpoint::Scratch scratch_;
};

TEST_F(DeltaRoot, ACommitIsWholeWhereTheChangesAreNotKnown) {
  on_ranks(kAlone, [&](Trained& trained, Comm& comm) {
    Trained more(comm, nullptr, SHARDREC_SHARDING_TABLE_WISE, 1, SHARDREC_REPLICATION_SAMPLES);
    Checkpoint handle(comm, root(), CheckpointOptions().most_deltas(2));
    handle.add("tables", *trained.tables);
    handle.commit(0);
    EXPECT_FALSE(handle.commit_delta(1));  // the first call
    EXPECT_TRUE(handle.commit_delta(2));
    handle.commit(3);
    EXPECT_TRUE(handle.commit_delta(4));
    EXPECT_TRUE(handle.commit_delta(5));
    EXPECT_FALSE(handle.commit_delta(6));  // behind two deltas
    EXPECT_TRUE(handle.commit_delta(7));
    handle.add("more", *more.tables);
    EXPECT_FALSE(handle.commit_delta(8));
    EXPECT_TRUE(handle.commit_delta(9));
    handle.open();
    EXPECT_FALSE(handle.commit_delta(10));
    EXPECT_TRUE(handle.commit_delta(11));
    handle.open(10);
    handle.load();  // not the newest
    EXPECT_FALSE(handle.commit_delta(12));
    handle.open();
    handle.load_partial(R"({"version": 1})");
    EXPECT_FALSE(handle.commit_delta(13));
    Checkpoint other(comm, root() + "/other", CheckpointOptions().most_deltas(0));
    other.add("tables", *trained.tables);
    EXPECT_FALSE(other.commit_delta(1));
    EXPECT_FALSE(other.commit_delta(2));
  });
}

// A delta behind a commit in the background has what has changed since that was begun.
TEST_F(DeltaRoot, ACommitInTheBackgroundIsABaseAsOfItsBegin) {
  on_ranks(kAlone, [&](Trained& trained, Comm& comm) {
    Checkpoint handle(comm, root());
    handle.add("tables", *trained.tables);
    handle.commit_delta(0);
    trained.step(1);
    handle.commit_begin(1);
    trained.step(2);
    EXPECT_TRUE(handle.commit_wait());
    trained.step(3);
    EXPECT_TRUE(handle.commit_delta(2));
    const Values expected = values_of(trained);
    trained.step(4);
    handle.open(2);
    handle.load();
    EXPECT_EQ(values_of(trained), expected);
    const auto opened = checkpoint::open_directory(step_path(2));
    EXPECT_EQ(opened.whole().manifest.step, 1);
  });
}

// A commit that fails leaves the changes to the next one.
TEST_F(DeltaRoot, AFailedCommitLosesNoChanges) {
  on_ranks(kAlone, [&](Trained& trained, Comm& comm) {
    Checkpoint handle(comm, root());
    handle.add("tables", *trained.tables);
    handle.commit_delta(0);
    trained.step(1);
    shardrec::Control cancelled;
    cancelled.cancel();
    EXPECT_EQ(status_of([&] { handle.commit_delta(1, &cancelled); }), SHARDREC_CANCELLED);
    trained.step(2);
    EXPECT_TRUE(handle.commit_delta(2));
    const Values expected = values_of(trained);
    handle.open();
    handle.load();
    EXPECT_EQ(values_of(trained), expected);
  });
}

// What a checkpoint that stays is a change of stays, and no more.
TEST_F(DeltaRoot, KeepLastFollowsTheChain) {
  on_ranks(kAlone, [&](Trained& trained, Comm& comm) {
    Checkpoint handle(comm, root(), CheckpointOptions().keep_last(2).most_deltas(3));
    handle.add("tables", *trained.tables);
    const auto commit = [&](int64_t step) {
      trained.step(step);
      handle.commit_delta(step);
      return steps_there().size();
    };
    EXPECT_EQ(commit(0), 1U);  // whole
    EXPECT_EQ(commit(1), 2U);
    EXPECT_EQ(commit(2), 3U);
    EXPECT_EQ(commit(3), 4U);
    EXPECT_EQ(commit(4), 5U);  // whole; 3 stays, and what it is a change of
    EXPECT_EQ(commit(5), 2U);  // 4 and 5
    EXPECT_EQ(steps_there(), (std::vector{checkpoint::step_name(4), checkpoint::step_name(5)}));
    // A delta of a step takes the step of its own base.
    handle.commit_delta(5);
    handle.open(5);
    handle.verify();
    EXPECT_EQ(handle.info().commit, 7);
  });
}

TEST_F(DeltaRoot, AMissingOrOtherBaseIsToldWithItsStep) {
  commit_up_to(3, root());
  const std::string other = scratch_.path("other");
  commit_up_to(3, other);
  const auto open = [&](int64_t step, std::string& sentence) {
    shardrec_status status = SHARDREC_OK;
    run(1, [&](Comm& comm, int) {
      Checkpoint handle(comm, root());
      status = status_of([&] { handle.open(step); }, &sentence);
    });
    return status;
  };
  std::string sentence;
  EXPECT_EQ(open(3, sentence), SHARDREC_OK);
  std::filesystem::remove_all(step_path(1));
  EXPECT_EQ(open(3, sentence), SHARDREC_NOT_FOUND);
  EXPECT_NE(sentence.find("is a change of that of step 1"), std::string::npos) << sentence;
  EXPECT_EQ(open(0, sentence), SHARDREC_OK);
  std::filesystem::copy(other + "/" + checkpoint::step_name(1), step_path(1),
                        std::filesystem::copy_options::recursive);
  EXPECT_EQ(open(3, sentence), SHARDREC_CORRUPT_DATA);
  EXPECT_NE(sentence.find("another checkpoint of step 1"), std::string::npos) << sentence;
}

// Where the last commit is gone a delta is refused, and a whole one is not.
TEST_F(DeltaRoot, ACommitWithoutItsBaseIsRefused) {
  on_ranks(kAlone, [&](Trained& trained, Comm& comm) {
    Checkpoint handle(comm, root());
    handle.add("tables", *trained.tables);
    handle.commit_delta(0);
    handle.commit_delta(1);
    std::filesystem::remove(step_path(1) + "/manifest.json");
    std::filesystem::remove(root() + "/LATEST");
    EXPECT_EQ(status_of([&] { handle.commit_delta(2); }), SHARDREC_NOT_FOUND);
    handle.commit(2);
    EXPECT_TRUE(handle.commit_delta(3));
  });
}

// Any byte of any file of the chain.
TEST_F(DeltaRoot, DamageOfAByteIsNoticed) {
  commit_up_to(2, root());
  std::mt19937 random(3);
  run(1, [&](Comm& comm, int) {
    Trained trained(comm, nullptr, SHARDREC_SHARDING_MIXED, 1, SHARDREC_REPLICATION_SAMPLES);
    const auto load = [&] {
      Checkpoint handle(comm, root());
      handle.add("tables", *trained.tables);
      handle.open();
      handle.load();
    };
    const auto verify = [&] {
      Checkpoint handle(comm, root());
      handle.open();
      handle.verify();
    };
    for (int i = 0; i < (SHARDREC_SANITIZED != 0 ? 15 : 45); ++i) {
      const std::string directory = step_path(i % 3);
      const auto names = checkpoint::names_in(directory);
      const std::string path = directory + "/" + names[random() % names.size()];
      const std::string bytes = checkpoint::read_all(path);
      std::string damaged = bytes;
      const size_t at = random() % bytes.size();
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
      checkpoint::write_all(path, damaged);
      for (const shardrec_status status : {status_of(load), status_of(verify)}) {
        EXPECT_TRUE(status == SHARDREC_CORRUPT_DATA || status == SHARDREC_UNSUPPORTED)
            << path << " byte " << at << " status " << status;
      }
      checkpoint::write_all(path, bytes);
    }
    EXPECT_EQ(status_of(load), SHARDREC_OK);
    EXPECT_EQ(status_of(verify), SHARDREC_OK);
  });
}

// A warm start from a delta is one from the whole checkpoint of its step: of other rows and dtypes.
TEST_F(DeltaRoot, IsAWarmStartAsTheWholeCheckpointIs) {
  const std::string whole = scratch_.path("whole");
  on_ranks(kAlone, [&](Trained& trained, Comm& comm) {
    Checkpoint deltas(comm, root()), all(comm, whole);
    deltas.add("tables", *trained.tables);
    all.add("tables", *trained.tables);
    for (int64_t step = 0; step < 3; ++step) {
      trained.step(step);
      deltas.commit_delta(step);
    }
    all.commit(2);
  });
  for (const int64_t rows : {40, 60, 90}) {
    run(2, [&](Comm& comm, int) {
      shardrec::Model model;
      model.add_table("t0", rows, World::dim(0), shardrec::TableOptions().dtype(SHARDREC_FLOAT16));
      model.add_feature(0, "f0");
      const auto plan = shardrec::Plan::collective(
          comm, model, shardrec::PlanOptions().sharding(SHARDREC_SHARDING_ROW_WISE));
      std::vector<std::vector<float>> loaded;
      for (const std::string& directory : {root(), whole}) {
        shardrec::Collection tables(comm, model, plan);
        Checkpoint handle(comm, directory);
        handle.add("tables", tables);
        handle.open(2);
        handle.load_partial(R"({"version": 1, "rows": "any", "dtype": "convert",
                                "state": "reset", "extra": "ignore"})");
        auto& values = loaded.emplace_back(static_cast<size_t>(rows * World::dim(0)));
        tables.read_range(0, SHARDREC_TABLE_WEIGHTS, 0, rows, {values.data(), rows, World::dim(0)});
      }
      EXPECT_EQ(loaded[0], loaded[1]);
    });
  }
}

}  // namespace
}  // namespace shardrec_test
