// `shardrec train`: the same model whatever the number of ranks and the plan, checkpoints that any
// plan loads, bad lines, interrupts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "command.h"
#include "data/click_log.h"
#include "saved_model.h"
#include "support/eventually.h"

namespace shardrec::cli::test {
namespace {

constexpr const char* kRows = SHARDREC_SANITIZED ? "4000" : "12000";

// A generated log that all tests of this file share.
class Train : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    data_ = new Scratch;
    const Finished result = run({"generate", "--rows", kRows, "--output", data_->path("log.tsv")});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  static void TearDownTestSuite() { delete data_; }

  static std::string log() { return data_->path("log.tsv"); }
  static Finished train(const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"train",   "--format", "criteo",    "--data", log(),
                                       "--batch", "128",      "--threads", "1",      "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  static nlohmann::json trained(const std::vector<std::string>& more) {
    const Finished result = train(more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.json();
  }

  static Scratch* data_;
};
Scratch* Train::data_ = nullptr;

void expect_same_model(const nlohmann::json& one, const nlohmann::json& other,
                       const std::string& what) {
  EXPECT_NEAR(one.at("test_auc").get<double>(), other.at("test_auc").get<double>(), 0.0005) << what;
  ASSERT_EQ(one.at("first_losses").size(), 20u);
  ASSERT_EQ(other.at("first_losses").size(), 20u);
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_NEAR(one.at("first_losses")[i].get<double>(), other.at("first_losses")[i].get<double>(),
                1e-5)
        << what << ", step " << i + 1;
  }
}

TEST_F(Train, TraceShowsThePhasesOfEveryRank) {
  const Scratch scratch;
  ASSERT_EQ(train({"--ranks", "2", "--trace", scratch.path("trace.json")}).exit_code, 0);
  std::ifstream file(scratch.path("trace.json"));
  const nlohmann::json trace = nlohmann::json::parse(file);
  std::map<int, std::map<std::string, int>> events;  // rank, name
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") ++events[event.at("pid")][event.at("name")];
  }
  ASSERT_EQ(events.size(), 2u);
  for (const auto& [rank, names] : events) {
    for (const char* name : {"begin", "route", "forward", "lookup", "backward", "update"}) {
      EXPECT_GT(names.count(name), 0u) << "rank " << rank << ", " << name;
    }
  }
}

TEST_F(Train, ATraceThatCannotBeWrittenIsSaidBeforeTheTraining) {
  const Finished result = train({"--trace", "/nonexistent/trace.json"});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_NE(result.err.find("/nonexistent/trace.json"), std::string::npos) << result.err;
}

TEST_F(Train, RanksAndPlansDoNotChangeTheModel) {
  const auto one = trained({"--ranks", "1"});
  EXPECT_EQ(one.at("train_samples").get<int>() + one.at("test_samples").get<int>(),
            std::stoi(kRows));
  for (const char* ranks : {"2", "3"}) {
    for (const char* sharding : {"mixed", "column_wise"}) {
      const std::string what = std::string(ranks) + " ranks, " + sharding;
      expect_same_model(one, trained({"--ranks", ranks, "--sharding", sharding}), what);
    }
  }
  expect_same_model(one, trained({"--ranks", "4", "--ranks-per-node", "2", "--sharding", "grid"}),
                    "grid");
}

TEST_F(Train, RanksDoNotChangeADcn) {
  const std::vector<std::string> dcn{"--arch",       "dcn", "--cross-layers", "2",
                                     "--cross-rank", "4",   "--layer-norm"};
  std::vector<std::string> two = dcn;
  two.insert(two.end(), {"--ranks", "2", "--sharding", "mixed"});
  const auto one = trained(dcn);
  expect_same_model(one, trained(two), "2 ranks");
}

TEST_F(Train, OptionsOfLayersThatDoNotGoTogetherAreRefused) {
  for (const auto& [option, value] :
       {std::pair("--cross-rank", "4"), std::pair("--cross-layers", "2")}) {
    const Finished refused = train({option, value});
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_EQ(refused.err,
              std::string("shardrec: ") + option + " goes with --arch dcn; the model is a DLRM.\n");
  }
  const Finished dropout = train({"--dropout", "1"});
  EXPECT_EQ(dropout.exit_code, 1);
  EXPECT_EQ(dropout.err, "shardrec: --dropout is 1; accepted: at least 0, below 1.\n");
}

TEST_F(Train, TheSamePlanTwiceGivesTheSameBits) {
  const std::vector<std::string> arguments{"--ranks", "2", "--sharding", "mixed"};
  const auto one = trained(arguments);
  const auto two = trained(arguments);
  EXPECT_EQ(one.at("test_auc"), two.at("test_auc"));
  EXPECT_EQ(one.at("test_ne"), two.at("test_ne"));
  EXPECT_EQ(one.at("first_losses"), two.at("first_losses"));
}

TEST_F(Train, AProfileOfTheMemoryChangesNoBit) {
  const Scratch cache;
  const Finished stored =
      Running(cache, {cache.path(""), "gather:64:1:1:12.5:40", "update:64:0:1:9.5:40"}, "",
              SHARDREC_STORE_PROFILE)
          .wait();
  ASSERT_EQ(stored.exit_code, 0) << stored.err;
  const auto with = [](const std::string& folder) {
    ::setenv("SHARDREC_CACHE_DIR", folder.c_str(), 1);
    const auto json = trained({"--ranks", "2", "--sharding", "mixed"});
    ::unsetenv("SHARDREC_CACHE_DIR");
    return json;
  };
  const auto one = with(cache.path("none"));
  EXPECT_FALSE(std::filesystem::exists(cache.path("none"))) << "nobody asked for a profile";
  const auto two = with(cache.path(""));
  EXPECT_EQ(one.at("test_auc"), two.at("test_auc"));
  EXPECT_EQ(one.at("first_losses"), two.at("first_losses"));
}

TEST_F(Train, SeedChangesSplitOrderAndStart) {
  const auto one = trained({"--seed", "1"});
  const auto two = trained({"--seed", "2"});
  EXPECT_NE(one.at("first_losses"), two.at("first_losses"));
  EXPECT_NE(one.at("test_samples"), two.at("test_samples"));
}

TEST_F(Train, LearnsAndKnowsTheBestReachableAuc) {
  const auto json = trained({"--ranks", "2", "--epochs", "2"});
  EXPECT_GT(json.at("test_auc").get<double>(), SHARDREC_SANITIZED ? 0.6 : 0.7);
  EXPECT_LT(json.at("test_ne").get<double>(), 1.0);
  EXPECT_LT(json.at("test_auc").get<double>(), json.at("best_auc").get<double>());
  EXPECT_NEAR(json.at("best_auc").get<double>(), 0.82, 0.04);
  EXPECT_GT(json.at("samples_per_second").get<double>(), 0);
}

TEST_F(Train, BestAucIsNotClaimedForOtherData) {
  const Scratch other;
  std::string text = read_file(log());
  text = text.substr(text.find('\n') + 1);
  other.write("log.tsv", text);
  std::filesystem::copy_file(log() + ".meta.json", other.path("log.tsv.meta.json"));
  const Finished result =
      run({"train", "--format", "criteo", "--data", other.path("log.tsv"), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_FALSE(result.json().contains("best_auc"));
  EXPECT_NE(result.err.find("describes other data"), std::string::npos);
}

TEST_F(Train, PrintsThePlanAndWhereTheTimeWent) {
  const Finished result = train({"--ranks", "2", "--sharding", "row_wise"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* text : {"C26", "row_wise", "tables: forward", "dense backward",
                           "inside tables: update", "samples/s"}) {
    EXPECT_NE(result.out.find(text), std::string::npos) << text;
  }
  EXPECT_NE(result.err.find("AUC"), std::string::npos);  // the line at the end of the epoch
}

TEST_F(Train, CheckpointOfFourRowWiseRanksLoadsOnTwoColumnWiseRanksWithTheSameBytes) {
  const Scratch folder;
  const auto saved =
      trained({"--ranks", "4", "--sharding", "row_wise", "--save", folder.path("four")});
  const auto loaded = trained({"--ranks", "2", "--sharding", "column_wise", "--epochs", "0",
                               "--load", folder.path("four"), "--save", folder.path("two")});
  const SavedModel four = saved_model(folder.path("four"));
  EXPECT_EQ(four.size(), 26u * 2 + 4 + 6);
  EXPECT_TRUE(same_bytes(four, saved_model(folder.path("two"))));
  // The dense half came along.
  EXPECT_NEAR(loaded.at("test_auc").get<double>(), saved.at("test_auc").get<double>(), 1e-6);
  EXPECT_EQ(loaded.at("train_samples"), 0);
}

TEST_F(Train, RefusesToSaveOverACheckpoint) {
  const Scratch folder;
  trained({"--epochs", "0", "--save", folder.path("one")});
  const Finished again = train({"--epochs", "0", "--save", folder.path("one")});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_NE(again.err.find("holds a checkpoint already"), std::string::npos);
}

TEST_F(Train, UnreadableLinesAreCountedAndShownAndStrictStops) {
  const Scratch folder;
  std::string text = read_file(log()).substr(0, 60000);
  text = text.substr(0, text.find_last_of('\n') + 1);
  folder.write("log.tsv", "no click log line\n" + text + "9\tnothing\n");
  const std::vector<std::string> arguments{
      "train",   "--format", "criteo",           "--data", folder.path("log.tsv"),
      "--ranks", "2",        "--rows-per-table", "100",    "--json"};
  std::vector<std::string> header = arguments;  // without a tab, the first line is no header either
  EXPECT_EQ(run(header).exit_code, 1);

  folder.write("log.tsv", "0\tbroken\n" + text + "9\tnothing\n");
  EXPECT_EQ(run(arguments).exit_code, 1);  // two of some 200
  std::vector<std::string> more = arguments;
  more.insert(more.end(), {"--max-unreadable", "0.02"});
  const Finished lenient = run(more);
  ASSERT_EQ(lenient.exit_code, 0) << lenient.err;
  EXPECT_EQ(lenient.json().at("unreadable_lines"), 2);
  EXPECT_NE(lenient.err.find("line 1: has 2 columns, not 40"), std::string::npos) << lenient.err;

  std::vector<std::string> strict = arguments;
  strict.emplace_back("--strict");
  const Finished stopped = run(strict);
  EXPECT_EQ(stopped.exit_code, 1);
  EXPECT_NE(stopped.err.find("has 2 columns, not 40"), std::string::npos) << stopped.err;
}

// Files in tests/cli/inputs, as users have them.
std::string input(const char* name) { return std::string(SHARDREC_CLI_INPUTS) + "/" + name; }

TEST(TrainInputs, AFileThatCannotBeReadTrainsAndSavesNothing) {
  for (const char* engine : {"local", "gloo"}) {
    if (SHARDREC_SANITIZED != 0 && engine[0] == 'g') continue;  // Gloo may not be instrumented
    const Scratch folder;
    const std::vector<std::string> arguments{
        "train", "--format",         "criteo", "--data", input("signed.tsv"),  "--ranks",
        "2",     "--rows-per-table", "100",    "--save", folder.path("model"), "--engine",
        engine};
    const Finished refused = run(arguments);
    EXPECT_EQ(refused.exit_code, 1) << refused.out;
    for (const char* part : {"signed.tsv, line ", "label is '-1', not 0 or 1", "--labels signed",
                             "lines are unreadable"}) {
      EXPECT_NE(refused.err.find(part), std::string::npos) << refused.err;
    }
    EXPECT_FALSE(std::filesystem::exists(folder.path("model/LATEST")));
    std::vector<std::string> taken = arguments;
    taken.insert(taken.end(), {"--labels", "signed", "--json"});
    const Finished read = run(taken);
    ASSERT_EQ(read.exit_code, 0) << read.err;
    EXPECT_EQ(read.json().at("unreadable_lines"), 0);
    EXPECT_TRUE(std::filesystem::exists(folder.path("model/LATEST")));
  }
}

TEST(TrainInputs, AByteOrderMarkChangesNothing) {
  const auto loss = [](const char* file) {
    const Finished result = run({"train", "--format", "criteo", "--data", input(file), "--batch",
                                 "32", "--rows-per-table", "100", "--json", "--strict"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.json().at("first_losses");
  };
  EXPECT_EQ(loss("marked.csv"), loss("plain.csv"));
}

TEST(TrainInputs, DaysAreReadInTheirOrderAndPredictedWithoutLabels) {
  const Scratch folder;
  const auto train = [&](const std::vector<std::string>& data,
                         const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"train", "--format",  "criteo", "--rows-per-table",
                                       "100",   "--threads", "1",      "--batch",
                                       "32",    "--json",    "--data"};
    arguments.insert(arguments.end(), data.begin(), data.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  };
  const Finished days = train({input("days")}, {"--save", folder.path("days")});
  ASSERT_EQ(days.exit_code, 0) << days.err;
  const Finished named = train({input("days/day_2.tsv"), input("days/day_10.tsv")}, {});
  ASSERT_EQ(named.exit_code, 0) << named.err;
  EXPECT_EQ(days.json().at("first_losses"), named.json().at("first_losses"));
  const Finished turned = train({input("days/day_10.tsv"), input("days/day_2.tsv")}, {});
  EXPECT_NE(days.json().at("first_losses"), turned.json().at("first_losses"));

  // A run goes on with the data that it was begun with only.
  const Finished other = train({input("days/day_2.tsv")},
                               {"--save", folder.path("days"), "--resume", "--epochs", "2"});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_NE(other.err.find("was trained with 2 files of data, and --data names 1"),
            std::string::npos)
      << other.err;
  const Finished swapped = train({input("days/day_10.tsv"), input("days/day_2.tsv")},
                                 {"--save", folder.path("days"), "--resume", "--epochs", "2"});
  EXPECT_EQ(swapped.exit_code, 1);
  EXPECT_NE(swapped.err.find("was trained with day_2.tsv ("), std::string::npos) << swapped.err;
  EXPECT_EQ(
      train({input("days/day_*")}, {"--save", folder.path("days"), "--resume", "--epochs", "2"})
          .exit_code,
      0);

  const Finished unlabelled = train({input("unlabelled.tsv")}, {"--load", folder.path("days")});
  EXPECT_EQ(unlabelled.exit_code, 1);
  EXPECT_NE(unlabelled.err.find("has no labels to train with; --epochs 0"), std::string::npos)
      << unlabelled.err;
  const Finished predicted =
      train({input("unlabelled.tsv")},
            {"--load", folder.path("days"), "--epochs", "0", "--output", folder.path("out.tsv")});
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_NE(predicted.out.find("samples without labels"), std::string::npos) << predicted.out;
  const std::string out = read_file(folder.path("out.tsv"));
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 20);
  EXPECT_EQ(out.substr(0, 3), "0\t\t");
}

TEST_F(Train, ARunThatDivergesSaysWhereAndWhatIsLeft) {
  const Scratch folder;
  const std::vector<std::string> fast{
      "--ranks", "2", "--dense-optimizer", "sgd", "--dense-learning-rate", "1e30"};
  const Finished alone = train(fast);
  EXPECT_EQ(alone.exit_code, 1);
  for (const char* part :
       {"has diverged: behind step ", "the loss is ",
        "--learning-rate 0.02 and --dense-learning-rate 1e+30", "No checkpoint was saved before"}) {
    EXPECT_NE(alone.err.find(part), std::string::npos) << alone.err;
  }
  // What was saved last gave the bad loss: the one before it is named.
  std::vector<std::string> saving = fast;
  saving.insert(saving.end(), {"--save", folder.path("model"), "--save-every", "1"});
  const Finished saved = train(saving);
  EXPECT_EQ(saved.exit_code, 1);
  const size_t at = saved.err.find("behind step ");
  ASSERT_NE(at, std::string::npos) << saved.err;
  const int64_t step = std::stoll(saved.err.substr(at + 12));
  ASSERT_GT(step, 0) << saved.err;
  EXPECT_NE(saved.err.find(step == 1 ? "No checkpoint was saved before"
                                     : "is step " + std::to_string(step - 1) + " of " +
                                           folder.path("model")),
            std::string::npos)
      << saved.err;
}

TEST_F(Train, InterruptEndsInOrderAndSaves) {
  const Scratch folder;
  const Scratch output;
  Running running(output,
                  {"train", "--format", "criteo", "--data", log(), "--ranks", "2", "--epochs",
                   "1000000", "--batch", "64", "--json", "--save", folder.path("checkpoint")});
  // The first epoch's end is a line on standard error.
  EXPECT_TRUE(shardrec::test::eventually(
      [&] { return running.err().find("epoch 1/") != std::string::npos; }));
  running.interrupt();
  const Finished result = running.wait();
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_TRUE(result.json().at("interrupted").get<bool>());
  EXPECT_TRUE(result.json().at("test_auc").is_null());
  EXPECT_GT(result.json().at("train_samples").get<int>(), 0);
  EXPECT_EQ(saved_model(folder.path("checkpoint")).size(), 26u * 2 + 4 + 6);
}

TEST_F(Train, SaysWhatIsWrongWithItsArguments) {
  EXPECT_EQ(run({"train"}).exit_code, 2);
  EXPECT_EQ(run({"train", "--format", "avazu", "--data", log()}).exit_code, 2);
  EXPECT_EQ(run({"train", "--format", "criteo", "--data", "/nowhere"}).exit_code, 1);
  const Finished sharding = train({"--sharding", "diagonal"});
  EXPECT_EQ(sharding.exit_code, 1);
  EXPECT_NE(sharding.err.find("diagonal"), std::string::npos);
  const Finished compression = train({"--backward-compression", "float8"});
  EXPECT_EQ(compression.exit_code, 1);
  EXPECT_NE(compression.err.find("float8"), std::string::npos) << compression.err;
  const Finished load = train({"--load", "/nowhere"});
  EXPECT_EQ(load.exit_code, 1);
  EXPECT_NE(load.err.find("/nowhere"), std::string::npos);
}

TEST(TrainRealData, CriteoTinyTrains) {
  const std::string data = test_data("criteo_train_tiny.csv");
  if (data.empty()) GTEST_SKIP() << "SHARDREC_TEST_DATA is not set";
  const Finished result = run({"train", "--format", "criteo", "--data", data, "--ranks", "2",
                               "--batch", "64", "--rows-per-table", "4096", "--json", "--strict"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(
      result.json().at("train_samples").get<int>() + result.json().at("test_samples").get<int>(),
      1999);
  EXPECT_GT(result.json().at("test_auc").get<double>(), 0.6);
}

TEST(TrainRealData, MovielensLearnsOnTwoRanks) {
  const std::string data = test_data("ml-100k.inter");
  if (data.empty()) GTEST_SKIP() << "SHARDREC_TEST_DATA is not set";
  const std::string epochs = SHARDREC_SANITIZED ? "1" : "3";
  const Finished result = run({"train", "--format", "movielens", "--data", data, "--ranks", "2",
                               "--epochs", epochs, "--json", "--strict"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.json().at("test_samples").get<int>() +
                result.json().at("train_samples").get<int>() / std::stoi(epochs),
            100000);
  EXPECT_GT(result.json().at("test_auc").get<double>(), SHARDREC_SANITIZED ? 0.74 : 0.78);
}

}  // namespace
}  // namespace shardrec::cli::test
