// `train --save --resume --load`: a run that was killed or interrupted goes on to the bits that it
// would have come to without a stop.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "command.h"
#include "command/numbers.h"
#include "command/user_error.h"
#include "saved_model.h"
#include "support/eventually.h"
#include "train/train_settings.h"

namespace shardrec::cli::test {
namespace {

namespace fs = std::filesystem;

// The file that release 0.1 wrote of a stack, but for its checksum: a header, padded to 8 bytes, then the
// parameters.
std::string layers_of_the_earlier_release(Mlp& stack) {
  nlohmann::json header;
  std::string data;
  const int32_t parameters = stack.info().parameters;
  for (int32_t p = 0; p < parameters; ++p) {
    const Tensor value = stack.parameter(p).value;
    const auto bytes = static_cast<size_t>(value.elements()) * sizeof(float);
    std::vector<int64_t> shape;
    for (int32_t d = 0; d < value.dimensions(); ++d) shape.push_back(value.size(d));
    header["layer." + std::to_string(p / 2) + (p % 2 == 0 ? ".weight" : ".bias")] = {
        {"dtype", "F32"}, {"shape", shape}, {"data_offsets", {data.size(), data.size() + bytes}}};
    data.append(reinterpret_cast<const char*>(value.data<const float>()), bytes);
  }
  header["steps"] = {
      {"dtype", "I64"}, {"shape", {1}}, {"data_offsets", {data.size(), data.size() + 8}}};
  data.append(8, '\0');
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t size = text.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + text + data;
}

constexpr const char* kRows = SHARDREC_SANITIZED ? "1500" : "6000";

class Resume : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    data_ = new Scratch;
    const Finished result =
        cli::test::run({"generate", "--rows", kRows, "--output", data_->path("log.tsv")});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  static void TearDownTestSuite() {
    delete data_;
    data_ = nullptr;
  }

  // What is asked for anew also when a run goes on.
  static std::vector<std::string> data() {
    return {"train",     "--format", "criteo", "--data", data_->path("log.tsv"),
            "--threads", "1",        "--json"};
  }
  static std::vector<std::string> with(std::vector<std::string> arguments,
                                       const std::vector<std::string>& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  static std::vector<std::string> model(const std::string& epochs = "3") {
    return with(data(), {"--batch", "64", "--dim", "8", "--bottom", "24", "--top", "24,12",
                         "--rows-per-table", "500", "--epochs", epochs, "--seed", "5"});
  }
  static nlohmann::json trained(const std::vector<std::string>& arguments) {
    const Finished result = cli::test::run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.exit_code == 0 ? result.json() : nlohmann::json();
  }
  std::string path(const std::string& name) const { return scratch_.path(name); }
  std::vector<std::string> steps(const std::string& directory) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path(directory))) {
      if (entry.is_directory()) names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  // Starts a run, waits for its first checkpoint, and ends it there by the signal.
  Finished stopped(const std::vector<std::string>& arguments, const std::string& directory,
                   void (Running::*by)() const) const {
    const Scratch output;
    Running running(output, arguments);
    EXPECT_TRUE(
        shardrec::test::eventually([&] { return fs::exists(path(directory) + "/LATEST"); }, 100));
    (running.*by)();
    return running.wait();
  }

  static Scratch* data_;
  Scratch scratch_;
};
Scratch* Resume::data_ = nullptr;

void expect_same_end(const nlohmann::json& one, const nlohmann::json& other) {
  for (const char* key : {"test_auc", "test_ne", "train_samples", "test_samples", "steps"}) {
    EXPECT_EQ(one.at(key), other.at(key)) << key;
  }
}

TEST_F(Resume, AKilledRunGoesOnToTheSameBits) {
  const std::vector<std::string> ranks{"--ranks", "2", "--sharding", "mixed"};
  const auto whole =
      trained(with(with(model(), ranks), {"--save", path("whole"), "--output", path("p1")}));
  const std::vector<std::string> saving{"--save", path("run"), "--save-every", "3"};
  const Finished killed =
      stopped(with(with(model(), ranks), saving), "run", &Running::kill_at_once);
  ASSERT_EQ(killed.exit_code, 137) << "it had ended before: " << killed.out << killed.err;
  // Neither dims nor layers nor ranks are asked for again.
  const Finished resumed = cli::test::run(with(
      data(), {"--save", path("run"), "--save-every", "3", "--resume", "--output", path("p2")}));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_NE(resumed.out.find("goes on with " + path("run") + " behind step "), std::string::npos)
      << resumed.out;
  expect_same_end(whole, resumed.json());
  EXPECT_TRUE(same_bytes(saved_model(path("whole")), saved_model(path("run"))));
  EXPECT_TRUE(read_file(path("p1")) == read_file(path("p2")));
}

// What was published for scorers has no states: the run goes on from the checkpoint before that has them.
TEST_F(Resume, AKilledRunThatPublishesWeightsGoesOnToTheSameBits) {
  const auto whole = trained(with(model(), {"--save", path("whole")}));
  const std::vector<std::string> publishing{
      "--save", path("run"), "--publish-every", "2", "--publish-weights", "--keep", "0"};
  const Scratch output;
  Running running(output, with(model(), publishing));
  EXPECT_TRUE(shardrec::test::eventually(
      [&] { return fs::exists(path("run")) && steps("run").size() >= 4; }, 100));
  running.kill_at_once();
  ASSERT_EQ(running.wait().exit_code, 137);
  const nlohmann::json left =
      cli::test::run({"inspect", path("run"), "--json"}).json().at("checkpoints");
  ASSERT_GE(left.size(), 3U);
  EXPECT_TRUE(left.front().at("states").get<bool>());
  EXPECT_FALSE(left.back().at("states").get<bool>());
  const Finished resumed = cli::test::run(with(
      data(), {"--save", path("run"), "--publish-every", "2", "--publish-weights", "--resume"}));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_NE(resumed.out.find("behind step 2"), std::string::npos) << resumed.out;
  expect_same_end(whole, resumed.json());
  EXPECT_TRUE(same_bytes(saved_model(path("whole")), saved_model(path("run"))));
}

TEST_F(Resume, AnInterruptedRunSavesWhereItIsAndGoesOnToTheSameBits) {
  const auto whole = trained(with(model(), {"--save", path("whole")}));
  const Finished interrupted = stopped(with(model(), {"--save", path("run"), "--save-every", "4"}),
                                       "run", &Running::interrupt);
  ASSERT_EQ(interrupted.exit_code, 130) << interrupted.err;
  const auto there = interrupted.json().at("steps").get<int64_t>();
  EXPECT_LT(there, whole.at("steps").get<int64_t>());
  const Finished resumed = cli::test::run(with(data(), {"--save", path("run"), "--resume"}));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_NE(resumed.out.find("behind step " + with_separators(there) + " "), std::string::npos)
      << resumed.out;
  expect_same_end(whole, resumed.json());
  EXPECT_TRUE(same_bytes(saved_model(path("whole")), saved_model(path("run"))));
}

// The signal reaches the processes at different steps; they end behind the same one.
TEST_F(Resume, InterruptedProcessesAgreeOnTheLastStepAndGoOnToTheSameBits) {
  const std::vector<std::string> ranks{"--ranks", "2", "--sharding", "mixed"};
  const auto whole = trained(with(with(model(), ranks), {"--save", path("whole")}));
  const auto saving = with(ranks, {"--engine", "gloo", "--save", path("run"), "--save-every", "4"});
  const Finished interrupted = stopped(with(model(), saving), "run", &Running::interrupt);
  ASSERT_EQ(interrupted.exit_code, 130) << interrupted.err;
  const auto there = interrupted.json().at("steps").get<int64_t>();
  EXPECT_LT(there, whole.at("steps").get<int64_t>());
  const Finished resumed = cli::test::run(with(data(), {"--save", path("run"), "--resume"}));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_NE(resumed.out.find("behind step " + with_separators(there) + " "), std::string::npos)
      << resumed.out;
  expect_same_end(whole, resumed.json());
  EXPECT_TRUE(same_bytes(saved_model(path("whole")), saved_model(path("run"))));
}

TEST_F(Resume, OnAMeshReplicasAreAveragedBeforeTheyAreSaved) {
  const std::vector<std::string> mesh{"--ranks",      "2", "--sharding-group-size", "1",
                                      "--sync-every", "7", "--save-every",          "5"};
  const auto whole = trained(with(with(model(), mesh), {"--save", path("whole")}));
  const Finished killed =
      stopped(with(with(model(), mesh), {"--save", path("run")}), "run", &Running::kill_at_once);
  ASSERT_EQ(killed.exit_code, 137) << "it had ended before: " << killed.out << killed.err;
  const auto resumed =
      trained(with(data(), {"--save", path("run"), "--save-every", "5", "--resume"}));
  expect_same_end(whole, resumed);
  EXPECT_EQ(resumed.at("mesh").at("sync_every"), 7);
  EXPECT_TRUE(same_bytes(saved_model(path("whole")), saved_model(path("run"))));
}

TEST_F(Resume, GoesOnOverProcessesAsOverThreads) {
  const Finished version = cli::test::run({"--version"});
  if (version.out.find("gloo") == std::string::npos) {
    GTEST_SKIP() << "the plug-in of the engine gloo was not built";
  }
  const auto whole = trained(with(model(), {"--ranks", "2", "--save", path("whole")}));
  trained(with(model("1"), {"--ranks", "2", "--save", path("run")}));
  const auto resumed = trained(
      with(data(), {"--epochs", "3", "--engine", "gloo", "--save", path("run"), "--resume"}));
  expect_same_end(whole, resumed);
  EXPECT_TRUE(same_bytes(saved_model(path("whole")), saved_model(path("run"))));
}

TEST_F(Resume, OtherRanksAndPlansGoOnWithTheSameModel) {
  const auto whole = trained(with(model(), {"--ranks", "2"}));
  trained(with(model("1"), {"--ranks", "2", "--save", path("run")}));
  const auto resumed = trained(with(data(), {"--ranks", "3", "--sharding", "row_wise", "--epochs",
                                             "3", "--save", path("run"), "--resume"}));
  EXPECT_NEAR(whole.at("test_auc").get<double>(), resumed.at("test_auc").get<double>(), 0.0005);
  EXPECT_EQ(resumed.at("ranks"), 3);
  EXPECT_EQ(whole.at("train_samples"), resumed.at("train_samples"));
}

// What is dropped follows from the number of forwards, which the checkpoint has, and from the rank.
TEST_F(Resume, ADcnWithDropoutGoesOnToTheSameBits) {
  const auto run_of = [&](const std::string& epochs) {
    return with(model(epochs), {"--ranks", "2", "--arch", "dcn", "--cross-layers", "2",
                                "--cross-rank", "3", "--layer-norm", "--dropout", "0.2"});
  };
  const auto whole = trained(with(run_of("2"), {"--save", path("whole"), "--output", path("p1")}));
  trained(with(run_of("1"), {"--save", path("run")}));
  const auto resumed = trained(with(data(), {"--epochs", "2", "--save", path("run"), "--resume"}));
  expect_same_end(whole, resumed);
  EXPECT_TRUE(same_bytes(saved_model(path("whole")), saved_model(path("run"))));
  // Nothing is dropped in a test: ranks, which drop elements of their own, do not change it.
  trained(with(data(), {"--seed", "5", "--epochs", "0", "--load", path("run"), "--output",
                        path("p2"), "--ranks", "3"}));
  EXPECT_TRUE(read_file(path("p1")) == read_file(path("p2")));
  for (const auto& [option, value, saved] :
       {std::tuple("--arch", "dlrm", "dcn"), std::tuple("--cross-layers", "3", "2"),
        std::tuple("--cross-rank", "4", "3"), std::tuple("--dropout", "0.1", "0.2")}) {
    const Finished refused =
        cli::test::run(with(data(), {"--save", path("run"), "--resume", option, value}));
    EXPECT_EQ(refused.exit_code, 1) << option;
    EXPECT_NE(refused.err.find(std::string("was trained with ") + option + " " + saved),
              std::string::npos)
        << refused.err;
  }
}

// Runs of then had a DLRM of linear layers, which their settings do not say.
TEST(TrainSettings, OptionsThatACheckpointIsOlderThanAreAsTheyWere) {
  Schema schema;
  schema.features = {{.name = "t", .rows = 7}};
  nlohmann::json saved = nlohmann::json::parse(settings_json(TrainOptions(), schema));
  for (const char* option : {"--arch", "--cross-layers", "--cross-rank", "--layer-norm",
                             "--dropout", "--labels", "--max-unreadable"}) {
    EXPECT_EQ(saved.erase(option), 1u) << option;
  }
  TrainOptions plain;
  take_settings(saved.dump(), "RUN", TakeSettings::kModel, plain);
  EXPECT_EQ(plain.arch, "dlrm");
  EXPECT_FALSE(plain.layer_norm);
  TrainOptions other;
  other.arch = "dcn";
  other.given = {"--arch"};
  try {
    take_settings(saved.dump(), "RUN", TakeSettings::kModel, other);
    FAIL() << "layers of another model were accepted";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "RUN was trained with --arch dlrm; --arch dcn does not go with it.");
  }
}

TEST_F(Resume, StartsAnewWhereNothingIsAndEndsAtOnceWhereAllIsDone) {
  const std::vector<std::string> again = with(model(), {"--save", path("run"), "--resume"});
  const auto first = trained(again);
  const auto second = trained(again);
  expect_same_end(first, second);
  EXPECT_EQ(second.at("first_losses").size(), 0u);
  EXPECT_EQ(steps("run").size(), 1u);
}

TEST_F(Resume, KeepsTheNewestCheckpoints) {
  const auto whole = trained(with(model(), {"--save", path("run"), "--save-every", "10"}));
  EXPECT_EQ(steps("run").size(), 3u);
  trained(with(model(), {"--save", path("one"), "--save-every", "10", "--keep", "1"}));
  EXPECT_EQ(steps("one").size(), 1u);
  trained(with(model(), {"--save", path("all"), "--save-every", "10", "--keep", "0"}));
  const auto made = whole.at("steps").get<int64_t>();
  EXPECT_EQ(static_cast<int64_t>(steps("all").size()), (made + 9) / 10);
}

TEST_F(Resume, WhatDoesNotGoWithACheckpointIsRefused) {
  trained(with(model("0"), {"--save", path("run")}));
  const std::vector<std::string> resume{"--save", path("run"), "--resume"};
  for (const auto& [option, value, saved] :
       {std::tuple("--dim", "16", "8"), std::tuple("--top", "24,13", "24,12"),
        std::tuple("--batch", "65", "64"), std::tuple("--seed", "6", "5"),
        std::tuple("--optimizer", "adam", "rowwise_adagrad")}) {
    const Finished refused = cli::test::run(with(with(data(), resume), {option, value}));
    EXPECT_EQ(refused.exit_code, 1) << option;
    EXPECT_NE(refused.err.find(std::string("was trained with ") + option + " " + saved),
              std::string::npos)
        << refused.err;
  }
  const Finished rows = cli::test::run(with(with(data(), resume), {"--rows-per-table", "501"}));
  EXPECT_EQ(rows.exit_code, 1);
  EXPECT_NE(rows.err.find("--rows-per-table 501"), std::string::npos) << rows.err;

  const Finished over = cli::test::run(with(data(), {"--save", path("run")}));
  EXPECT_EQ(over.exit_code, 1);
  EXPECT_NE(over.err.find("holds a checkpoint already; --resume goes on"), std::string::npos)
      << over.err;
  EXPECT_EQ(cli::test::run(with(data(), {"--resume"})).exit_code, 2);
  EXPECT_EQ(cli::test::run(with(data(), {"--save-every", "3"})).exit_code, 2);
}

TEST_F(Resume, LoadTakesDimsAndLayersFromTheCheckpointAndStartsANewRun) {
  const auto saved = trained(with(model(), {"--save", path("first"), "--output", path("p1")}));
  // --seed: which samples are the test part.
  const auto scored = trained(with(data(), {"--seed", "5", "--epochs", "0", "--load", path("first"),
                                            "--output", path("p2"), "--ranks", "3"}));
  EXPECT_EQ(scored.at("steps"), 0);
  EXPECT_EQ(scored.at("test_auc"), saved.at("test_auc"));
  EXPECT_TRUE(read_file(path("p1")) == read_file(path("p2")));
  const auto more =
      trained(with(data(), {"--load", path("first"), "--epochs", "1", "--save", path("second")}));
  EXPECT_GT(more.at("steps"), 0);
  EXPECT_FALSE(same_bytes(saved_model(path("first")), saved_model(path("second"))));
  const Finished nothing = cli::test::run(with(data(), {"--load", path("nothing")}));
  EXPECT_EQ(nothing.exit_code, 1);
  EXPECT_NE(nothing.err.find(path("nothing") + " holds no checkpoint"), std::string::npos);
}

// A larger table of another dtype, another top stack: what --load-rules allows is loaded, the rest is new.
TEST_F(Resume, LoadRulesStartFromAModelThatDiffers) {
  trained(with(model("1"), {"--save", path("first")}));
  const std::vector<std::string> changed{
      "--load", path("first"), "--rows-per-table", "700", "--dtype", "bfloat16",
      "--top",  "16",          "--ranks",          "2"};
  const auto refused = [&](const std::vector<std::string>& more, const std::string& part) {
    const Finished finished = cli::test::run(with(with(data(), changed), more));
    EXPECT_EQ(finished.exit_code, 1) << finished.out;
    EXPECT_NE(finished.err.find(part), std::string::npos) << finished.err;
  };
  scratch_.write("strict.json", R"({"version": 1})");
  scratch_.write("rules.json", R"({"version": 1, "rows": "more", "dtype": "convert",
                                   "layers": [{"name": "top", "load": "none"}]})");
  const std::vector<std::string> rules{"--load-rules", path("rules.json")};
  refused({}, "does not go with it");
  refused({"--load-rules", path("strict.json")}, R"("rows": "more")");
  refused({"--load-rules", path("nothing.json")}, "nothing.json cannot be read");

  const Finished finished = cli::test::run(
      with(with(with(data(), changed), rules), {"--epochs", "0", "--save", path("second")}));
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.out.find("float32 to bfloat16"), std::string::npos) << finished.out;
  EXPECT_NE(finished.out.find("left as they are: layers top"), std::string::npos) << finished.out;
  const nlohmann::json report = finished.json().at("load");
  ASSERT_EQ(report.at("tables").size(), 26U);
  EXPECT_EQ(report.at("tables")[0].at("rows"), 500);
  EXPECT_EQ(report.at("tables")[0].at("new_rows"), 200);
  const SavedModel first = saved_model(path("first"));
  const SavedModel second = saved_model(path("second"));
  EXPECT_EQ(first.at("bottom/0"), second.at("bottom/0"));
  for (const auto& [name, values] : first) {
    if (name.find("top") == 0 || name.find("bottom") == 0) continue;
    const std::vector<float>& loaded = second.at(name);
    EXPECT_EQ(loaded.size() * 500, values.size() * 700) << name;
    for (size_t i = 0; i < values.size(); ++i) {
      const float error = name.ends_with("/1") ? 0 : std::abs(values[i]) / 256;
      ASSERT_LE(std::abs(loaded[i] - values[i]), error) << name << " at " << i;
    }
  }
  trained(with(with(with(data(), changed), rules),
               {"--epochs", "0", "--engine", "gloo", "--save", path("processes")}));
  EXPECT_TRUE(same_bytes(second, saved_model(path("processes"))));
  const auto more = trained(with(with(with(data(), changed), rules), {"--epochs", "1"}));
  EXPECT_GT(more.at("steps"), 0);
}

TEST_F(Resume, DirectoriesOfTheEarlierReleaseStillLoad) {
  trained(with(model(), {"--save", path("new"), "--output", path("p1")}));
  // One collection without a name in a directory of its own, the layers in files beside it.
  run_ranks({.ranks = 2, .ranks_per_node = 2}, [&](int rank, Comm& comm) {
    RestoredModel restored = restore(comm, path("new"));
    Checkpoint checkpoint(comm, path("alone"));
    checkpoint.add("", restored.tables);
    checkpoint.commit(0);
    if (rank != 0) return;
    std::filesystem::rename(path("alone") + "/step_000000000000", path("old"));
    scratch_.write("old/dense_bottom.safetensors", layers_of_the_earlier_release(restored.bottom));
    scratch_.write("old/dense_top.safetensors", layers_of_the_earlier_release(restored.top));
  });
  trained(with(model("0"), {"--load", path("old"), "--output", path("p2")}));
  EXPECT_TRUE(read_file(path("p1")) == read_file(path("p2")));
  const Finished onto = cli::test::run(with(model(), {"--save", path("old"), "--resume"}));
  EXPECT_EQ(onto.exit_code, 1);
  EXPECT_NE(onto.err.find("earlier release"), std::string::npos) << onto.err;
}

TEST_F(Resume, ADamagedCheckpointIsRefusedByName) {
  trained(with(model(), {"--save", path("run")}));
  const std::string file = path("run") + "/" + steps("run").back() + "/manifest.json";
  std::string text = read_file(file);
  text[text.size() / 2] = static_cast<char>(text[text.size() / 2] ^ 1);
  scratch_.write("run/" + steps("run").back() + "/manifest.json", text);
  const Finished refused = cli::test::run(with(data(), {"--save", path("run"), "--resume"}));
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("CORRUPT_DATA"), std::string::npos) << refused.err;
}

TEST(TrainSettings, OfAnEarlierReleaseLackOptionsThatAreNewAndAreAsByDefault) {
  TrainOptions saved;
  saved.format = "criteo";
  saved.labels = "signed";
  saved.data = {"/nowhere/day_0"};
  nlohmann::json settings = nlohmann::json::parse(settings_json(saved, {}));
  TrainOptions taken;
  taken.data = saved.data;
  take_settings(settings.dump(), "run", TakeSettings::kRun, taken);
  EXPECT_EQ(taken.labels, "signed");
  for (const char* key : {"--labels", "--max-unreadable", "--sync", "--momentum-scale", "data"})
    ASSERT_EQ(settings.erase(key), 1u);
  taken = {};
  take_settings(settings.dump(), "run", TakeSettings::kRun, taken);
  EXPECT_EQ(taken.labels, "binary");
  EXPECT_EQ(taken.format, "criteo");
  EXPECT_EQ(taken.sync, "touched");
  EXPECT_EQ(taken.momentum_scale, 1);
  ASSERT_EQ(settings.erase("--seed"), 1u);
  EXPECT_THROW(take_settings(settings.dump(), "run", TakeSettings::kRun, taken), UserError);
}

}  // namespace
}  // namespace shardrec::cli::test
