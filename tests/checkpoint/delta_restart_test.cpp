// Deltas behind a load: a job that loads the newest checkpoint of a run goes on with a change of it, under any plan and
// number of ranks. Deltas that are written in the background, through the C++ header.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/delta_values.h"
#include "checkpoint/faulty_environment.h"
#include "checkpoint/read/opened.h"
#include "checkpoint/store/root_files.h"
#include "checkpoint/store/store.h"
#include "checkpoint/world.h"

namespace shardrec_test {
namespace {

namespace checkpoint = shardrec::checkpoint;
using shardrec::Checkpoint;
using shardrec::CheckpointOptions;
using shardrec::Comm;

checkpoint::Opened opened_of(const std::string& root, int64_t step) {
  return checkpoint::open_directory(checkpoint::find_step(root, step));
}

class RestartedDeltas : public ::testing::TestWithParam<TrainedWorld> {
 protected:
  // A job of a world that loads the newest, where there is one, and commits two steps; in the background each second.
  void go_on(const TrainedWorld& world, int64_t first) {
    on_ranks(world, [&](Trained& trained, Comm& comm) {
      Checkpoint handle(comm, root());
      handle.add("tables", *trained.tables);
      if (first != 0) {
        trained.step(55);
        handle.open();
        handle.load();
      }
      std::mt19937 random(static_cast<uint32_t>(first + 1));
      int64_t number = 10 * first;
      for (int64_t step = first; step < first + 2; ++step) {
        train_some(trained, number, random);
        const Values values = values_of(trained);
        if (step % 2 == 0) {
          EXPECT_EQ(handle.commit_delta(step), step != 0);
        } else {
          EXPECT_TRUE(handle.commit_delta_begin(step));
          train_some(trained, number, random);
          EXPECT_TRUE(handle.commit_wait());
        }
        const std::lock_guard lock(mutex_);
        committed_[step] = values;
      }
    });
  }
  std::string root() const { return scratch_.path(); }

  std::map<int64_t, Values> committed_;

 private:
  std::mutex mutex_;
  checkpoint::Scratch scratch_;
};

TEST_P(RestartedDeltas, AreChangesOfWhatWasLoaded) {
  const std::vector<TrainedWorld> worlds = {GetParam(),
                                            GetParam(),
                                            {1, 1, SHARDREC_SHARDING_TABLE_WISE},
                                            {3, 3, SHARDREC_SHARDING_COLUMN_WISE},
                                            {2, 1, SHARDREC_SHARDING_ROW_WISE}};
  int64_t step = 0;
  for (const TrainedWorld& world : worlds) {
    go_on(world, step);
    step += 2;
  }
  EXPECT_EQ(opened_of(root(), step - 1).deltas().size(), static_cast<size_t>(step - 1));
  for (const auto& [each, values] : committed_) {
    on_ranks({2, 2, SHARDREC_SHARDING_GRID}, [&](Trained& trained, Comm& comm) {
      Checkpoint handle(comm, root());
      handle.add("tables", *trained.tables);
      handle.open(each);
      handle.verify();
      handle.load();
      EXPECT_EQ(values_of(trained), values) << "step " << each;
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, RestartedDeltas,
                         ::testing::Values(TrainedWorld{2, 2, SHARDREC_SHARDING_MIXED},
                                           TrainedWorld{2, 2, SHARDREC_SHARDING_DATA_PARALLEL},
                                           TrainedWorld{4, 2, SHARDREC_SHARDING_ROW_WISE}),
                         [](const auto& given) { return given.param.name(); });

class RestartedRoot : public ::testing::Test {
 protected:
  static constexpr TrainedWorld kAlone{1, 1, SHARDREC_SHARDING_MIXED};

  void commit_up_to(int64_t last) const {
    on_ranks(kAlone, [&](Trained& trained, Comm& comm) {
      Checkpoint handle(comm, root());
      handle.add("tables", *trained.tables);
      for (int64_t step = 0; step <= last; ++step) {
        trained.step(step);
        handle.commit_delta(step);
      }
    });
  }
  std::string root() const { return scratch_.path(); }

  checkpoint::Scratch scratch_;
};

// Else the next commit is whole: there are no deltas of the run, another root, a warm start, an older step, other
// collections.
TEST_F(RestartedRoot, OnlyTheNewestOfARunWithDeltasIsGoneOnFrom) {
  commit_up_to(0);
  on_ranks(kAlone, [&](Trained& trained, Comm& comm) {
    Trained more(comm, nullptr, SHARDREC_SHARDING_TABLE_WISE, 1, SHARDREC_REPLICATION_SAMPLES);
    const auto next_is_delta = [&](const std::string& from, int64_t step, const char* rules) {
      Checkpoint handle(comm, from);
      handle.add("tables", *trained.tables);
      handle.open(step);
      rules == nullptr ? handle.load() : (void)handle.load_partial(rules);
      trained.step(5);
      return handle.commit_delta(checkpoint::list_checkpoints(from).entries.back().step + 1);
    };
    EXPECT_FALSE(next_is_delta(root(), -1, nullptr));  // step 1: the run has no deltas
    EXPECT_FALSE(next_is_delta(root(), -1, nullptr));
    {
      Checkpoint handle(comm, root());
      handle.add("tables", *trained.tables);
      handle.open();
      EXPECT_FALSE(handle.commit_delta(3));
      EXPECT_TRUE(handle.commit_delta(4));
    }
    EXPECT_TRUE(next_is_delta(root(), -1, nullptr));  // 5
    EXPECT_TRUE(next_is_delta(root(), 5, nullptr));   // 6, by its number
    EXPECT_FALSE(next_is_delta(root(), 5, nullptr));
    EXPECT_FALSE(next_is_delta(root(), -1, R"({"version": 1})"));
    const std::string other = root() + "/other";
    {
      Checkpoint from(comm, root()), to(comm, other);
      from.add("tables", *trained.tables);
      to.add("tables", *trained.tables);
      from.open();
      from.load();
      EXPECT_FALSE(to.commit_delta(0));
    }
    {
      Checkpoint handle(comm, root());
      handle.add("tables", *trained.tables);
      handle.open();
      handle.load();
      handle.add("more", *more.tables);
      EXPECT_FALSE(handle.commit_delta(20));
    }
    {
      Checkpoint handle(comm, root());
      handle.add("tables", *trained.tables);  // one of two collections
      handle.open();
      handle.load();
      EXPECT_FALSE(handle.commit_delta(21));
    }
    {
      Checkpoint handle(comm, root(), CheckpointOptions().most_deltas(1));
      handle.add("tables", *trained.tables);
      handle.open();
      handle.load();
      EXPECT_TRUE(handle.commit_delta(22));
      handle.open();
      handle.load();
      EXPECT_FALSE(handle.commit_delta(23));  // behind one delta
    }
  });
}

// A whole checkpoint of a run with deltas is the base of the next one, as a delta is.
TEST_F(RestartedRoot, AWholeNewestIsABase) {
  commit_up_to(2);
  on_ranks(kAlone, [&](Trained& trained, Comm& comm) {
    Checkpoint handle(comm, root());
    handle.add("tables", *trained.tables);
    handle.open();
    handle.load();
    handle.commit(3);
    Checkpoint next(comm, root());
    next.add("tables", *trained.tables);
    next.open();
    next.load();
    trained.step(9);
    const Values expected = values_of(trained);
    EXPECT_TRUE(next.commit_delta(4));
    EXPECT_EQ(opened_of(root(), 4).whole().manifest.step, 3);
    trained.step(10);
    next.open();
    next.load();
    EXPECT_EQ(values_of(trained), expected);
  });
}

// Of many checkpoints, the one of a step is found by its name.
TEST_F(RestartedRoot, AStepIsFoundWithoutTheManifestsOfOthers) {
  commit_up_to(5);
  checkpoint::HookedEnvironment environment;
  std::set<std::string> opened;
  environment.before = [&](const char* what, const std::string& path) {
    if (std::string(what) == "open") opened.insert(path);
  };
  const std::string second = root() + "/" + checkpoint::step_name(2);
  EXPECT_EQ(checkpoint::find_step(root(), 2, environment), second);
  EXPECT_EQ(opened,
            (std::set<std::string>{root() + "/LATEST", second + "/manifest.json",
                                   root() + "/" + checkpoint::step_name(5) + "/manifest.json"}));
}

// A delta that another job has committed since the load is not lost: who comes late is refused.
TEST_F(RestartedRoot, OfTwoJobsTheFirstGoesOn) {
  commit_up_to(1);
  on_ranks(kAlone, [&](Trained& trained, Comm& comm) {
    Trained rival(comm, nullptr, SHARDREC_SHARDING_MIXED, 1, SHARDREC_REPLICATION_SAMPLES);
    Checkpoint first(comm, root()), second(comm, root());
    first.add("tables", *trained.tables);
    second.add("tables", *rival.tables);
    for (Checkpoint* handle : {&first, &second}) {
      handle->open();
      handle->load();
    }
    EXPECT_TRUE(first.commit_delta(2));
    try {
      second.commit_delta(2);
      ADD_FAILURE() << "two jobs go on from one checkpoint";
    } catch (const shardrec::Error& error) {
      EXPECT_EQ(error.status(), SHARDREC_INVALID_STATE);
    }
  });
}

// A delta that is given up or fails in the background leaves its changes to the next one.
TEST_F(RestartedRoot, ADeltaThatFailsInTheBackgroundLosesNoChanges) {
  commit_up_to(1);
  on_ranks(kAlone, [&](Trained& trained, Comm& comm) {
    Checkpoint handle(comm, root());
    handle.add("tables", *trained.tables);
    handle.open();
    handle.load();
    trained.step(3);
    shardrec::Control cancelled;
    cancelled.cancel();
    shardrec_status status = SHARDREC_OK;
    try {
      EXPECT_TRUE(handle.commit_delta_begin(2, &cancelled));
      trained.step(4);
      handle.commit_wait();
    } catch (const shardrec::Error& error) {
      status = error.status();
    }
    EXPECT_EQ(status, SHARDREC_CANCELLED);
    trained.step(5);
    EXPECT_TRUE(handle.commit_delta_begin(2));
    const Values expected = values_of(trained);
    trained.step(6);
    EXPECT_TRUE(handle.commit_wait());
    handle.open();
    handle.load();
    EXPECT_EQ(values_of(trained), expected);
  });
}

}  // namespace
}  // namespace shardrec_test
