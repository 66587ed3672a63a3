// `shardrec train` on a mesh: who is in which group, and what replicas learn together.
#include "train/train_mesh.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command.h"
#include "report/train_page.h"

namespace shardrec::cli::test {
namespace {

constexpr const char* kRows = "8000";

class TrainOnMesh : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    data_ = new Scratch;
    const Finished result = run({"generate", "--rows", kRows, "--output", data_->path("log.tsv")});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  static void TearDownTestSuite() { delete data_; }

  static Finished train(const std::vector<std::string>& more) {
    std::vector<std::string> arguments{
        "train", "--format",  "criteo", "--data", data_->path("log.tsv"), "--ranks", "4", "--batch",
        "128",   "--threads", "1",      "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  static nlohmann::json trained(const std::vector<std::string>& more) {
    const Finished result = train(more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.exit_code == 0 ? result.json() : nlohmann::json();
  }

  static Scratch* data_;
};
Scratch* TrainOnMesh::data_ = nullptr;

using Groups = std::vector<std::vector<int>>;

TEST_F(TrainOnMesh, ExactReplicasTrainToTheBitsOfOneGroup) {
  const std::vector<std::string> tables{"--sharding", "table_wise", "--optimizer", "lamb"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), tables.begin(), tables.end());
    return train(more);
  };
  const Finished whole = with({"--save", data_->path("whole")});
  const Finished exact =
      with({"--sharding-group-size", "2", "--sync", "exact", "--save", data_->path("exact")});
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  ASSERT_EQ(exact.exit_code, 0) << exact.err;
  EXPECT_NE(exact.out.find(", all ranks train every replica in each step\n"), std::string::npos)
      << exact.out;
  EXPECT_EQ(exact.json().at("test_auc"), whole.json().at("test_auc"));
  EXPECT_EQ(exact.json().at("first_losses"), whole.json().at("first_losses"));
  EXPECT_EQ(differences(data_->path("whole"), data_->path("exact")), "");
  const Finished sharded =
      with({"--sharding-group-size", "2", "--sync", "sharded", "--save", data_->path("sharded")});
  ASSERT_EQ(sharded.exit_code, 0) << sharded.err;
  EXPECT_EQ(sharded.json().at("test_auc"), whole.json().at("test_auc"));
  EXPECT_EQ(differences(data_->path("whole"), data_->path("sharded")), "");

  for (const std::string sync : {"exact", "sharded"}) {
    const Finished overlapped =
        with({"--sharding-group-size", "2", "--sync", sync, "--sync-overlap"});
    EXPECT_EQ(overlapped.exit_code, 1);
    EXPECT_NE(overlapped.err.find("--sync-overlap does not go with --sync " + sync),
              std::string::npos)
        << overlapped.err;
  }
}

TEST_F(TrainOnMesh, ShowsTheRanksOfBothKindsOfGroups) {
  const Finished sync = train({"--sharding-group-size", "2", "--sync-every", "8"});
  ASSERT_EQ(sync.exit_code, 0) << sync.err;
  EXPECT_EQ(
      sync.out.find("mesh: 4 ranks, sharding groups of 2, placement intra_node_sync, replicas "
                    "averaged every 8 steps\n"
                    "group             ranks  holds\n"
                    "----------------  -----  ------------------------------\n"
                    "sharding group 0  0, 2   replica 0 of all tables\n"
                    "sharding group 1  1, 3   replica 1 of all tables\n"
                    "replica group 0   0, 1   the boxes of the plan's rank 0\n"
                    "replica group 1   2, 3   the boxes of the plan's rank 1\n"),
      0U)
      << sync.out;
  EXPECT_NE(sync.out.find(" on 2 ranks, 2 per node\n"), std::string::npos) << sync.out;
  const nlohmann::json mesh = sync.json().at("mesh");
  EXPECT_EQ(mesh.at("sharding_groups"), nlohmann::json(Groups{{0, 2}, {1, 3}}));
  EXPECT_EQ(mesh.at("replica_groups"), nlohmann::json(Groups{{0, 1}, {2, 3}}));
  EXPECT_EQ(mesh.at("sync_every"), 8);
  EXPECT_EQ(mesh.at("placement"), "intra_node_sync");
  EXPECT_EQ(mesh.at("sync"), "touched");

  const nlohmann::json shard =
      trained({"--sharding-group-size", "2", "--placement", "intra_node_shard"}).at("mesh");
  EXPECT_EQ(shard.at("sharding_groups"), nlohmann::json(Groups{{0, 1}, {2, 3}}));
  EXPECT_EQ(shard.at("replica_groups"), nlohmann::json(Groups{{0, 2}, {1, 3}}));
  EXPECT_EQ(shard.at("sync_every"), 1);
  EXPECT_FALSE(trained({}).contains("mesh"));
}

// With SGD, averaging after every step is a step by the mean of the replicas' gradients.
TEST_F(TrainOnMesh, AveragingEveryStepOfSgdIsTrainingOnAllRanks) {
  const std::vector<std::string> sgd{"--optimizer", "sgd", "--learning-rate", "0.5"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), sgd.begin(), sgd.end());
    return trained(more);
  };
  const nlohmann::json all = with({});
  const nlohmann::json mesh = with({"--sharding-group-size", "2"});
  EXPECT_NEAR(mesh.at("test_auc").get<double>(), all.at("test_auc").get<double>(), 0.0005);
  ASSERT_EQ(mesh.at("first_losses").size(), 20U);
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_NEAR(mesh.at("first_losses")[i].get<double>(), all.at("first_losses")[i].get<double>(),
                1e-5)
        << i;
  }
  // Replicas that go their own way for a while see other losses.
  const nlohmann::json apart = with({"--sharding-group-size", "2", "--sync-every", "1000000"});
  EXPECT_GT(std::abs(apart.at("first_losses")[19].get<double>() -
                     all.at("first_losses")[19].get<double>()),
            1e-5);
}

// The mean of two equal rows is that row.
TEST_F(TrainOnMesh, RowsThatAreTouchedAreAllThatNeedsToBeAveraged) {
  const nlohmann::json touched = trained({"--sharding-group-size", "2", "--sync-every", "4"});
  const nlohmann::json full =
      trained({"--sharding-group-size", "2", "--sync-every", "4", "--sync", "full"});
  EXPECT_EQ(full.at("mesh").at("sync"), "full");
  EXPECT_EQ(touched.at("test_auc"), full.at("test_auc"));
  EXPECT_EQ(touched.at("first_losses"), full.at("first_losses"));
}

// What the replicas learn while they are averaged stays: another way than that of the blocking sync, to about the same
// quality; the same way each time.
TEST_F(TrainOnMesh, AveragesWhileStepsAreTaken) {
  const std::vector<std::string> every{"--sharding-group-size", "2", "--sync-every", "4"};
  std::vector<std::string> overlapped = every;
  overlapped.push_back("--sync-overlap");
  const nlohmann::json blocking = trained(every);
  const nlohmann::json first = trained(overlapped);
  EXPECT_EQ(blocking.at("mesh").at("sync_overlap"), false);
  EXPECT_EQ(first.at("mesh").at("sync_overlap"), true);
  // The means of step 4 come with those of step 8.
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(first.at("first_losses")[i], blocking.at("first_losses")[i]);
  }
  EXPECT_NE(first.at("first_losses")[4], blocking.at("first_losses")[4]);
  EXPECT_NEAR(first.at("test_auc").get<double>(), blocking.at("test_auc").get<double>(), 0.01);
  const nlohmann::json again = trained(overlapped);
  EXPECT_EQ(first.at("first_losses"), again.at("first_losses"));
  EXPECT_EQ(first.at("test_auc"), again.at("test_auc"));
}

// Whatever the optimizer, and however seldom replicas are averaged: there is nothing to average.
TEST_F(TrainOnMesh, DataParallelTablesTrainAsOnAllRanks) {
  const nlohmann::json all = trained({"--sharding", "data_parallel"});
  for (const char* placement : {"intra_node_sync", "intra_node_shard"}) {
    const nlohmann::json mesh = trained({"--sharding", "data_parallel", "--sharding-group-size",
                                         "2", "--sync-every", "1000000", "--placement", placement});
    EXPECT_EQ(mesh.at("first_losses"), all.at("first_losses"));
    EXPECT_EQ(mesh.at("test_auc"), all.at("test_auc"));
  }
}

constexpr const char* kAveraged = ", replicas averaged every 8 steps";
constexpr const char* kAveragedOnPage = " has a replica of all tables, averaged every 8 steps. ";
constexpr const char* kByAll = "; replicated tables: all ranks train them in every step\n";
constexpr const char* kByAllOnPage = "Replicated tables: all ranks train them in every step. ";

bool says(const std::string& text, const char* what) {
  return text.find(what) != std::string::npos;
}

TEST_F(TrainOnMesh, SaysWhetherReplicasAreAveragedOrAllRanksTrainTheTables) {
  for (const bool replicated : {false, true}) {
    const Scratch scratch;
    const Finished done =
        train({"--sharding-group-size", "2", "--sync-every", "8", "--sharding",
               replicated ? "data_parallel" : "row_wise", "--report", scratch.path("page.html")});
    ASSERT_EQ(done.exit_code, 0) << done.err;
    EXPECT_EQ(says(done.out, kAveraged), !replicated) << done.out;
    EXPECT_EQ(says(done.out, kByAll), replicated) << done.out;
    const std::string page = read_file(scratch.path("page.html"));
    EXPECT_EQ(says(page, kAveragedOnPage), !replicated);
    EXPECT_EQ(says(page, kByAllOnPage), replicated);
    EXPECT_TRUE(says(page, "Ranks of the sharding groups: 0, 2; 1, 3. Of the replica groups: "));
    if (replicated) continue;
    nlohmann::json line = done.json();
    line["plan"]["plan"]["tables"][3]["replicated"] = true;
    EXPECT_TRUE(says(train_page(line.dump()), kAveragedOnPage));
    EXPECT_TRUE(says(train_page(line.dump()), kByAllOnPage));
  }
}

TEST(MeshText, SaysBothWhereSomeTablesAreReplicated) {
  Model model;
  model.add_table("cut", 8, 4);
  model.add_table("replicated", 8, 4);
  Plan plan = Plan::empty(model, Topology(2));
  plan.add_box(0, {.rank = 1, .row = 0, .rows = 8, .col = 0, .cols = 4});
  plan.replicate(1);
  TrainOptions options;
  options.sync_every = 8;
  const std::string text = mesh_text(options, {}, model, plan);
  EXPECT_TRUE(says(text, (std::string(kAveraged) + kByAll).c_str())) << text;
  options.sync_overlap = true;
  const std::string overlapped = mesh_text(options, {}, model, plan);
  EXPECT_TRUE(says(overlapped, (std::string(kAveraged) + " while they train on" + kByAll).c_str()))
      << overlapped;
}

TEST_F(TrainOnMesh, Float16IsThatOfTrainingOnAllRanks) {
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(),
                {"--precision", "float16", "--optimizer", "sgd", "--learning-rate", "0.5"});
    return trained(more);
  };
  const nlohmann::json all = with({});
  const nlohmann::json mesh = with({"--sharding-group-size", "2"});
  EXPECT_NEAR(mesh.at("test_auc").get<double>(), all.at("test_auc").get<double>(), 0.005);
  ASSERT_EQ(mesh.at("first_losses").size(), 20U);
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_NEAR(mesh.at("first_losses")[i].get<double>(), all.at("first_losses")[i].get<double>(),
                2e-3)
        << i;
  }
}

TEST_F(TrainOnMesh, OneShardingGroupOfAllRanksIsNoMesh) {
  const nlohmann::json all = trained({"--sharding", "row_wise"});
  const nlohmann::json mesh = trained({"--sharding", "row_wise", "--sharding-group-size", "4"});
  EXPECT_EQ(mesh.at("test_auc"), all.at("test_auc"));
  EXPECT_EQ(mesh.at("first_losses"), all.at("first_losses"));
}

TEST_F(TrainOnMesh, WhatItSavesLoadsWithoutAMesh) {
  const Scratch scratch;
  const nlohmann::json mesh = trained(
      {"--sharding-group-size", "2", "--sync-every", "16", "--save", scratch.path("saved")});
  const nlohmann::json loaded = trained({"--epochs", "0", "--load", scratch.path("saved")});
  EXPECT_NEAR(loaded.at("test_auc").get<double>(), mesh.at("test_auc").get<double>(), 1e-6);
  EXPECT_NEAR(loaded.at("test_ne").get<double>(), mesh.at("test_ne").get<double>(), 1e-6);
}

TEST_F(TrainOnMesh, SaysWhatCannotBe) {
  EXPECT_EQ(train({"--sync-every", "2"}).exit_code, 2);
  EXPECT_EQ(train({"--placement", "intra_node_sync"}).exit_code, 2);
  const Finished odd = train({"--sharding-group-size", "3"});
  EXPECT_EQ(odd.exit_code, 1);
  EXPECT_NE(odd.err.find("sharding_group_size is 3"), std::string::npos) << odd.err;
  const Finished place = train({"--sharding-group-size", "2", "--placement", "anywhere"});
  EXPECT_EQ(place.exit_code, 1);
  EXPECT_NE(place.err.find("intra_node_sync, intra_node_shard"), std::string::npos) << place.err;
}

}  // namespace
}  // namespace shardrec::cli::test
