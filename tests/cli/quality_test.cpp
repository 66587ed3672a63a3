// What takes minutes: MovieLens over five seeds and over all ranks and plans, and a million
// generated rows.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "command.h"

namespace shardrec::cli::test {
namespace {

nlohmann::json movielens(const std::vector<std::string>& more) {
  std::vector<std::string> arguments{
      "train", "--format", "movielens", "--data", test_data("ml-100k.inter"), "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Finished result = run(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.json();
}

class WholeMovielens : public testing::Test {
 protected:
  void SetUp() override {
    if (test_data("ml-100k.inter").empty()) GTEST_SKIP() << "SHARDREC_TEST_DATA is not set";
  }
};

TEST_F(WholeMovielens, ReachesAnAucOf078OverFiveSeeds) {
  for (const char* seed : {"0", "1", "2", "3", "4"}) {
    EXPECT_GE(movielens({"--ranks", "2", "--seed", seed}).at("test_auc").get<double>(), 0.78)
        << seed;
  }
}

TEST_F(WholeMovielens, RanksAndPlansDoNotChangeTheModel) {
  const auto one = movielens({"--ranks", "1"});
  for (const char* ranks : {"1", "2", "4"}) {
    for (const char* sharding : {"table_wise", "row_wise", "column_wise", "table_row_wise",
                                 "table_column_wise", "grid", "data_parallel", "mixed", "auto"}) {
      const auto other = movielens({"--ranks", ranks, "--ranks-per-node",
                                    std::string(ranks) == "1" ? "1" : "2", "--sharding", sharding});
      EXPECT_NEAR(other.at("test_auc").get<double>(), one.at("test_auc").get<double>(), 0.0005)
          << ranks << " " << sharding;
      for (size_t i = 0; i < 20; ++i) {
        EXPECT_NEAR(other.at("first_losses").at(i).get<double>(),
                    one.at("first_losses").at(i).get<double>(), 1e-5)
            << ranks << " " << sharding << ", step " << i + 1;
      }
    }
  }
}

TEST_F(WholeMovielens, ReplicasThatAreAveragedAreAsGoodAsOneModel) {
  const double one = movielens({"--ranks", "4"}).at("test_auc").get<double>();
  for (const char* every : {"1", "8"}) {
    const auto averaged = movielens(
        {"--ranks", "4", "--sharding-group-size", "2", "--sync-every", every, "--sync", "touched"});
    EXPECT_NEAR(averaged.at("test_auc").get<double>(), one, 0.005) << every;
  }
  const auto exact = movielens({"--ranks", "4", "--sharding-group-size", "2", "--sync", "exact"});
  EXPECT_EQ(exact.at("test_auc"), one);
}

TEST_F(WholeMovielens, TheSamePlanTwiceGivesTheSameBits) {
  const auto one = movielens({"--ranks", "2", "--sharding", "mixed"});
  const auto two = movielens({"--ranks", "2", "--sharding", "mixed"});
  EXPECT_EQ(one.at("test_auc"), two.at("test_auc"));
  EXPECT_EQ(one.at("test_ne"), two.at("test_ne"));
  EXPECT_EQ(one.at("first_losses"), two.at("first_losses"));
}

TEST(WholeGenerated, AMillionRowsComeWithinAHundredthOfTheBestReachableAuc) {
  const Scratch scratch;
  ASSERT_EQ(
      run({"generate", "--rows", "1000000", "--seed", "3", "--output", scratch.path("log.tsv")})
          .exit_code,
      0);
  const Finished result = run({"train", "--format", "criteo", "--data", scratch.path("log.tsv"),
                               "--ranks", "2", "--sharding", "mixed", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = result.json();
  EXPECT_GE(json.at("test_auc").get<double>(), json.at("best_auc").get<double>() - 0.010);
}

// So few samples that a model of other layers is not better for certain; one that computes wrong is far off.
TEST(WholeGenerated, CrossLayersAndRegularizersAreNotWorseThanAPlainModel) {
  const Scratch scratch;
  ASSERT_EQ(run({"generate", "--rows", "12000", "--output", scratch.path("log.tsv")}).exit_code, 0);
  const auto auc = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{
        "train",   "--format", "criteo",   "--data", scratch.path("log.tsv"),
        "--batch", "128",      "--epochs", "2",      "--json",
        "--seed",  "2",        "--ranks",  "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished result = run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.json().at("test_auc").get<double>();
  };
  const double plain = auc({});
  EXPECT_GE(auc({"--layer-norm"}), plain - 0.01);
  EXPECT_GE(auc({"--arch", "dcn"}), plain - 0.01);
  EXPECT_GE(auc({"--arch", "dcn", "--cross-rank", "8", "--layer-norm", "--dropout", "0.1"}),
            plain - 0.01);
}

}  // namespace
}  // namespace shardrec::cli::test
