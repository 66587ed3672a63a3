// Deltas for scorers, which leave the states of optimizers out: what is in them, who refuses them, and what a load takes
// in place of what is not there.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/delta_values.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint/read/opened.h"
#include "checkpoint/store/root_files.h"
#include "checkpoint/world.h"

namespace shardrec_test {
namespace {

namespace checkpoint = shardrec::checkpoint;
using nlohmann::json;
using shardrec::Checkpoint;
using shardrec::CheckpointOptions;
using shardrec::Comm;

constexpr const char* kFromBase = R"({"version": 1, "state": "base"})";

// Weights alone, or states alone, of values_of().
Values some_of(const Values& all, bool weights) {
  Values some;
  for (size_t at = 0, t = 0; t < kOptimizers; ++t) {
    const size_t parts =
        1 + shardrec::plan::states_of(static_cast<shardrec_optimizer>(1 + t)).size();
    for (size_t part = 0; part < parts; ++part, ++at) {
      if ((part == 0) == weights) some.push_back(all[at]);
    }
  }
  return some;
}

struct Refused {
  shardrec_status status = SHARDREC_OK;
  std::string sentence;
};

template <class Call>
Refused refused(const Call& call) {
  try {
    call();
  } catch (const shardrec::Error& error) {
    return {error.status(), error.what()};
  }
  return {};
}

class DeltasOfWeights : public ::testing::TestWithParam<TrainedWorld> {
 protected:
  static constexpr int64_t kLast = 4;

  // A whole checkpoint of step 0 and deltas without states behind it.
  std::map<int64_t, Values> commit_some() const {
    std::map<int64_t, Values> committed;
    std::mutex mutex;
    on_ranks(GetParam(), [&](Trained& trained, Comm& comm) {
      Checkpoint handle(comm, scratch_.path(), CheckpointOptions().delta_states(false));
      handle.add("tables", *trained.tables);
      std::mt19937 random(11);
      int64_t number = 0;
      for (int64_t step = 0; step <= kLast; ++step) {
        train_some(trained, number, random);
        trained.step(number++);
        trained.tables->sync_replicas();
        EXPECT_EQ(handle.commit_delta(step), step != 0);
        Values values = values_of(trained);
        const std::lock_guard lock(mutex);
        committed[step] = std::move(values);
      }
    });
    return committed;
  }

  checkpoint::Scratch scratch_;
};

TEST_P(DeltasOfWeights, AreLoadedWithOlderStatesWhereTheLoadSaysSo) {
  const auto committed = commit_some();
  ASSERT_NE(some_of(committed.at(kLast), false), some_of(committed.at(0), false));
  for (const TrainedWorld& world : {TrainedWorld{1, 1, SHARDREC_SHARDING_TABLE_WISE},
                                    TrainedWorld{3, 3, SHARDREC_SHARDING_COLUMN_WISE}}) {
    on_ranks(world, [&](Trained& trained, Comm& comm) {
      trained.step(77);
      const Values before = values_of(trained);
      Checkpoint handle(comm, scratch_.path());
      handle.add("tables", *trained.tables);
      handle.open();
      handle.verify();
      const Refused strict = refused([&] { handle.load(); });
      EXPECT_EQ(strict.status, SHARDREC_INVALID_ARGUMENT);
      EXPECT_NE(strict.sentence.find("\"state\": \"base\""), std::string::npos) << strict.sentence;
      EXPECT_NE(strict.sentence.find("whole checkpoint of step 0"), std::string::npos)
          << strict.sentence;
      EXPECT_EQ(values_of(trained), before);
      const json report = json::parse(handle.load_partial(kFromBase));
      EXPECT_EQ(report.at("tables")[0].at("state"), "none");
      EXPECT_EQ(report.at("tables")[1].at("state"), "base");
      EXPECT_EQ(some_of(values_of(trained), true), some_of(committed.at(kLast), true));
      EXPECT_EQ(some_of(values_of(trained), false), some_of(committed.at(0), false));
      EXPECT_FALSE(handle.commit_delta(kLast + 1 + comm.size()));  // its states were other ones
      handle.open(0);
      EXPECT_EQ(json::parse(handle.load_partial(kFromBase)).at("tables")[1].at("state"), "loaded");
      EXPECT_EQ(values_of(trained), committed.at(0));
      if (comm.rank() == 0) {
        std::filesystem::remove_all(scratch_.path() + "/" +
                                    checkpoint::step_name(kLast + 1 + comm.size()));
      }
      comm.barrier();
    });
    checkpoint::write_latest(scratch_.path(), checkpoint::step_name(kLast),
                             shardrec::core::default_environment());
  }
}

TEST_P(DeltasOfWeights, HoldTheWeightsAloneAndSaySo) {
  (void)commit_some();
  const json list = json::parse(Checkpoint::list_json(scratch_.path()));
  run(1, [&](Comm& comm, int) {
    for (int64_t step = 0; step <= kLast; ++step) {
      Checkpoint handle(comm, scratch_.path());
      handle.open(step);
      const json contents = json::parse(handle.contents_json());
      EXPECT_EQ(list.at("checkpoints")[static_cast<size_t>(step)].at("states"), step == 0);
      EXPECT_EQ(contents.contains("base"), step != 0);
      if (step != 0) {
        EXPECT_FALSE(contents.at("base").at("states").get<bool>());
      }
      size_t states = 0;
      for (const json& box : contents.at("boxes")) states += box.at("part") == "weights" ? 0 : 1;
      EXPECT_EQ(states != 0, step == 0);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Kinds, DeltasOfWeights,
                         ::testing::Values(TrainedWorld{1, 1, SHARDREC_SHARDING_MIXED},
                                           TrainedWorld{3, 3, SHARDREC_SHARDING_GRID},
                                           TrainedWorld{2, 2, SHARDREC_SHARDING_DATA_PARALLEL,
                                                        SHARDREC_REPLICATION_ROWS},
                                           TrainedWorld{4, 2, SHARDREC_SHARDING_COLUMN_WISE}),
                         [](const auto& given) { return given.param.name(); });

TEST(DeltaStates, AreOneOptionOfAllRanks) {
  const checkpoint::Scratch scratch;
  on_ranks({2, 2, SHARDREC_SHARDING_ROW_WISE}, [&](Trained& trained, Comm& comm) {
    Checkpoint handle(comm, scratch.path(), CheckpointOptions().delta_states(comm.rank() == 0));
    handle.add("tables", *trained.tables);
    handle.commit(0);
    const Refused differs = refused([&] { handle.commit_delta(1); });
    EXPECT_EQ(differs.status, SHARDREC_DISAGREEMENT);
    EXPECT_NE(differs.sentence.find("DELTA_STATES"), std::string::npos) << differs.sentence;
  });
}

// Tables whose optimizer has no states lose nothing: a training goes on from such a delta.
class DeltasWithoutAnyStates : public ::testing::Test {
 protected:
  static void with_tables(Comm& comm, const auto& body) {
    shardrec::Model model;
    model.add_table("t", 40, 4);
    model.add_feature(0, "f");
    model.set_optimizer(shardrec::OptimizerOptions().optimizer("sgd"));
    const auto plan = shardrec::Plan::collective(comm, model);
    shardrec::Collection tables(comm, model, plan);
    body(tables);
  }
  static void write_row(shardrec::Collection& tables, int64_t row) {
    const std::vector<int64_t> rows = {row};
    std::vector<float> values(4, static_cast<float>(row));
    tables.write_rows(0, SHARDREC_TABLE_WEIGHTS, rows, {values.data(), 1, 4});
  }

  checkpoint::Scratch scratch_;
};

TEST_F(DeltasWithoutAnyStates, AreWhole) {
  run(1, [&](Comm& comm, int) {
    with_tables(comm, [&](shardrec::Collection& tables) {
      Checkpoint handle(comm, scratch_.path(), CheckpointOptions().delta_states(false));
      handle.add("tables", tables);
      handle.commit_delta(0);
      write_row(tables, 7);
      EXPECT_TRUE(handle.commit_delta(1));
      handle.open();
      EXPECT_TRUE(json::parse(handle.contents_json()).at("base").at("states").get<bool>());
      handle.load();
      EXPECT_TRUE(handle.commit_delta(2));
    });
  });
}

// States behind a delta without them would be of some rows only.
TEST_F(DeltasWithoutAnyStates, AreNoBaseOfDeltasThatHaveThem) {
  run(1, [&](Comm& comm, int) {
    with_tables(comm, [&](shardrec::Collection& tables) {
      Checkpoint handle(comm, scratch_.path());
      handle.add("tables", tables);
      for (int64_t step = 0; step < 3; ++step) {
        write_row(tables, step);
        handle.commit_delta(step);
      }
    });
  });
  const auto rewrite = [&](int64_t step, bool states, uint64_t base) {
    const std::string path = scratch_.path() + "/" + checkpoint::step_name(step) + "/manifest.json";
    auto manifest = checkpoint::manifest_from_text(checkpoint::read_all(path), path);
    manifest.states = states;
    if (base != 0) manifest.base->checksum = base;
    const std::string text = checkpoint::manifest_to_text(manifest);
    checkpoint::write_all(path, text);
    return checkpoint::manifest_checksum(text);
  };
  const uint64_t without = rewrite(1, false, 0);
  const std::string newest = scratch_.path() + "/" + checkpoint::step_name(2);
  (void)rewrite(2, false, without);
  EXPECT_EQ(checkpoint::open_directory(newest).deltas().size(), 2U);
  (void)rewrite(2, true, without);
  try {
    (void)checkpoint::open_directory(newest);
    ADD_FAILURE() << "a delta with states is a change of one without";
  } catch (const shardrec::core::Error& error) {
    EXPECT_EQ(error.status(), SHARDREC_CORRUPT_DATA);
  }
}

}  // namespace
}  // namespace shardrec_test
