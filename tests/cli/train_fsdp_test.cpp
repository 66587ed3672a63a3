// `shardrec train --dense fsdp`: the numbers of --dense ddp, and one checkpoint for both.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command.h"

namespace shardrec::cli::test {
namespace {

class TrainSharded : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    data_ = new Scratch;
    const Finished result = run({"generate", "--rows", "4000", "--output", data_->path("log.tsv")});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  static void TearDownTestSuite() { delete data_; }

  static Finished train(const std::vector<std::string>& more) {
    std::vector<std::string> arguments{
        "train",     "--format", "criteo",    "--data", data_->path("log.tsv"),
        "--batch",   "128",      "--threads", "1",      "--layer-norm",
        "--dropout", "0.1",      "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  static Finished trained(const std::vector<std::string>& more) {
    Finished result = train(more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result;
  }
  static void expect_same_model(const std::string& one, const std::string& other) {
    EXPECT_EQ(differences(data_->path(one), data_->path(other)), "");
  }

  static Scratch* data_;
};
Scratch* TrainSharded::data_ = nullptr;

TEST_F(TrainSharded, EachStrategyTrainsToTheModelOfDdp) {
  const std::vector<std::string> ddp = {"--ranks", "3", "--save", data_->path("ddp")};
  const nlohmann::json whole = trained(ddp).json();
  for (const std::string strategy : {"full_shard", "shard_grad_op", "no_shard"}) {
    SCOPED_TRACE(strategy);
    const Finished sharded = trained({"--ranks", "3", "--dense", "fsdp", "--fsdp-strategy",
                                      strategy, "--save", data_->path(strategy)});
    EXPECT_EQ(sharded.json().at("test_auc"), whole.at("test_auc"));
    EXPECT_EQ(sharded.json().at("first_losses"), whole.at("first_losses"));
    expect_same_model("ddp", strategy);
    const bool shards = strategy != "no_shard";
    EXPECT_NE(sharded.out.find(shards ? "layers: 6 units, in shards over 3 ranks; a rank keeps "
                                      : "layers: 6 units, whole on each rank; a rank keeps "),
              std::string::npos)
        << sharded.out;
  }
}

TEST_F(TrainSharded, LayersIn16BitsTrainToTheModelOfDdp) {
  for (const std::string precision : {"bfloat16", "float16"}) {
    const std::vector<std::string> common = {"--ranks", "2", "--precision", precision};
    const auto with = [&](const std::string& dense) {
      std::vector<std::string> arguments = common;
      arguments.insert(arguments.end(),
                       {"--dense", dense, "--save", data_->path(precision + dense)});
      return trained(arguments).json().at("first_losses");
    };
    EXPECT_EQ(with("fsdp"), with("ddp"));
  }
}

TEST_F(TrainSharded, OnAMeshPartsAreOverTheShardingGroup) {
  const std::vector<std::string> mesh = {"--ranks", "4", "--sharding-group-size", "2"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), mesh.begin(), mesh.end());
    return trained(more);
  };
  const Finished whole = with({"--save", data_->path("mesh_ddp")});
  const Finished sharded = with(
      {"--dense", "fsdp", "--fsdp-strategy", "hybrid_shard", "--save", data_->path("mesh_fsdp")});
  EXPECT_NE(sharded.out.find("in shards over 2 ranks"), std::string::npos) << sharded.out;
  EXPECT_NEAR(sharded.json().at("test_auc").get<double>(),
              whole.json().at("test_auc").get<double>(), 1e-3)
      << "sums of four ranks are in another order";
}

TEST_F(TrainSharded, ARunGoesOnShardedOrNotOverOtherRanks) {
  const auto save = [&](const std::string& name) {
    return std::vector<std::string>{"--save", data_->path(name), "--resume"};
  };
  const auto with = [&](std::vector<std::string> first, const std::vector<std::string>& more) {
    first.insert(first.end(), more.begin(), more.end());
    return trained(first);
  };
  with(save("straight"), {"--ranks", "2", "--epochs", "2"});
  with(save("changing"), {"--ranks", "2", "--epochs", "1", "--dense", "fsdp"});
  const Finished second = with(save("changing"), {"--epochs", "2"});
  EXPECT_NE(second.out.find("in shards over 2 ranks"), std::string::npos)
      << "a run goes on as it was: " << second.out;
  expect_same_model("straight", "changing");

  const Finished third = with(save("changing"), {"--epochs", "3", "--dense", "ddp"});
  EXPECT_EQ(third.out.find("in shards over"), std::string::npos) << third.out;
  with(save("straight"), {"--epochs", "3", "--dense", "fsdp"});
  expect_same_model("straight", "changing");
  const nlohmann::json served =
      run({"serve-bench", data_->path("straight"), "--seconds", "0.1", "--json"}).json();
  EXPECT_GT(served.size(), 3U) << "a service scores with layers that were sharded";
}

TEST_F(TrainSharded, ProcessesTrainToTheBitsOfThreads) {
  if (run({"--version"}).out.find("gloo") == std::string::npos) {
    GTEST_SKIP() << "the plug-in of the engine gloo was not built";
  }
  trained(
      {"--ranks", "2", "--dense", "fsdp", "--engine", "gloo", "--save", data_->path("processes")});
  trained({"--ranks", "2", "--dense", "fsdp", "--save", data_->path("threads")});
  expect_same_model("threads", "processes");
}

TEST_F(TrainSharded, WhatDoesNotGoWithItIsRefusedWithTheReason) {
  const struct {
    std::vector<std::string> options;
    const char* words;
  } refused[] = {
      {{"--dense", "fsdp", "--dense-device", "device"}, "needs tables on a device"},
      {{"--dense", "fsdp", "--fsdp-strategy", "hybrid_shard"}, "needs --sharding-group-size"},
      {{"--dense", "ddp", "--fsdp-strategy", "no_shard"}, "--fsdp-strategy goes with --dense fsdp"},
      {{"--fsdp-strategy", "no_shard"}, "--fsdp-strategy requires --dense"},
      {{"--dense", "zero"}, "zero"},
  };
  for (const auto& [options, words] : refused) {
    const Finished result = train(options);
    EXPECT_TRUE(result.exit_code == 1 || result.exit_code == 2) << words;
    EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
  }
}

}  // namespace
}  // namespace shardrec::cli::test
