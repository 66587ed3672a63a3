// `shardrec replay`: the recorded cases pass under every plan, and a case that is wrong fails.
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "command.h"

namespace shardrec::cli::test {
namespace {

const std::string kGolden = SHARDREC_GOLDEN;

std::string last_line(const std::string& text) {
  const size_t end = text.find_last_not_of('\n');
  return text.substr(text.find_last_of('\n', end) + 1, end - text.find_last_of('\n', end));
}

TEST(Replay, EveryRecordedCasePasses) {
  const Finished numerics = run({"replay", kGolden + "/numerics.json"});
  EXPECT_EQ(numerics.exit_code, 0) << numerics.out;
  EXPECT_EQ(last_line(numerics.out),
            "95 passed, 0 failed, 0 unsupported, 0 not comparable of 95 cases");
  const Finished sharded = run({"replay", kGolden + "/sharded.json"});
  EXPECT_EQ(sharded.exit_code, 0) << sharded.out;
  EXPECT_EQ(last_line(sharded.out),
            "19 passed, 0 failed, 0 unsupported, 0 not comparable of 19 cases");
  const Finished replicas = run({"replay", kGolden + "/replicas.json"});
  EXPECT_EQ(replicas.exit_code, 0) << replicas.out;
  EXPECT_EQ(last_line(replicas.out),
            "3 passed, 0 failed, 0 unsupported, 0 not comparable of 3 cases");
  const Finished ddp = run({"replay", kGolden + "/ddp.json"});
  EXPECT_EQ(ddp.exit_code, 0) << ddp.out;
  EXPECT_EQ(last_line(ddp.out), "6 passed, 0 failed, 0 unsupported, 0 not comparable of 6 cases");
}

TEST(Replay, CasesPassUnderOtherRanksAndPlans) {
  for (const char* ranks : {"1", "3", "4"}) {
    for (const char* sharding : {"row_wise", "grid", "mixed"}) {
      const Finished result =
          run({"replay", kGolden + "/sharded.json", "--ranks", ranks, "--sharding", sharding});
      EXPECT_EQ(result.exit_code, 0) << result.out;
      EXPECT_EQ(last_line(result.out),
                "15 passed, 0 failed, 0 unsupported, 4 not comparable of 19 cases");
      const Finished numerics =
          run({"replay", kGolden + "/numerics.json", "--ranks", ranks, "--sharding", sharding});
      EXPECT_EQ(last_line(numerics.out),
                "95 passed, 0 failed, 0 unsupported, 0 not comparable of 95 cases");
    }
  }
  const Finished named = run({"replay", kGolden + "/sharded.json", "--ranks", "3"});
  EXPECT_EQ(last_line(named.out),
            "15 passed, 0 failed, 0 unsupported, 4 not comparable of 19 cases");
}

TEST(Replay, DenseCasesPassOnOtherRanks) {
  const auto replay = [](const char* ranks) {
    const Finished result = run({"replay", kGolden + "/ddp.json", "--ranks", ranks});
    EXPECT_EQ(result.exit_code, 0) << result.out;
    return last_line(result.out);
  };
  for (const char* ranks : {"1", "2", "5"}) {
    EXPECT_EQ(replay(ranks), "6 passed, 0 failed, 0 unsupported, 0 not comparable of 6 cases");
  }
  EXPECT_EQ(replay("4"), "3 passed, 0 failed, 0 unsupported, 3 not comparable of 6 cases")
      << "ten samples on four ranks";
}

TEST(Replay, OneCaseByName) {
  const Finished one = run({"replay", kGolden + "/sharded.json", "--case", "s28"});
  EXPECT_EQ(one.exit_code, 0);
  EXPECT_EQ(last_line(one.out), "1 passed, 0 failed, 0 unsupported, 0 not comparable of 1 cases");
  const Finished none = run({"replay", kGolden + "/sharded.json", "--case", "s99"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_NE(none.err.find("s99"), std::string::npos);
}

// A copy of recorded cases whose arrays can be tampered with.
class TamperedReplay : public testing::Test {
 protected:
  void SetUp() override { load("sharded"); }
  void load(const std::string& name) {
    arrays_ = read_file(kGolden + "/" + name + ".safetensors");
    cases_ = read_file(kGolden + "/" + name + ".json");
  }
  // Where the data of an array begin in the file.
  [[nodiscard]] size_t offset(const std::string& name) const {
    uint64_t header = 0;
    std::memcpy(&header, arrays_.data(), 8);
    const auto json = nlohmann::json::parse(arrays_.substr(8, header));
    return 8 + header + json.at(name).at("data_offsets").at(0).get<size_t>();
  }
  void add(const std::string& name, float difference) {
    float value = 0;
    std::memcpy(&value, arrays_.data() + offset(name), 4);
    value += difference;
    std::memcpy(arrays_.data() + offset(name), &value, 4);
  }
  Finished replay(const std::string& name) {
    scratch_.write("cases.json", cases_);
    scratch_.write("cases.safetensors", arrays_);
    return run({"replay", scratch_.path("cases.json"), "--case", name});
  }
  Scratch scratch_;
  std::string arrays_;
  std::string cases_;
};

TEST_F(TamperedReplay, ErrorBeyondToleranceFails) {
  for (const char* array : {"s18/final/ta", "s18/final_state/sum/tb", "s18/rank1/step2/out"}) {
    SetUp();
    add(array, 1e-3f);
    const Finished result = replay("s18");
    EXPECT_EQ(result.exit_code, 1) << array;
    EXPECT_NE(result.out.find("FAILED (out of tolerance"), std::string::npos) << array;
  }
}

TEST_F(TamperedReplay, DenseErrorBeyondToleranceFails) {
  for (const char* array : {"p02/final/0.weight", "p02/grad/1.bias", "p02/rank1/loss",
                            "p02/rank1/step3/micro1/x", "p02/init/0.bias"}) {
    load("ddp");
    add(array, 1e-2f);
    const Finished result = replay("p02");
    EXPECT_EQ(result.exit_code, 1) << array;
    EXPECT_NE(result.out.find("FAILED (out of tolerance"), std::string::npos) << array;
  }
}

// Rank 0's values are what all begin with; PyTorch's defaults hold where a case names nothing.
TEST_F(TamperedReplay, DenseCasesTakeWhatTheLibraryOffersAndSayWhatItDoesNot) {
  load("ddp");
  const auto document = nlohmann::json::parse(cases_);
  const auto with = [&](const char* optimizer, double apart = 0) {
    auto changed = document;
    auto& object = changed.at("cases").at(1);  // p02
    object["optimizer"] = nlohmann::json::parse(optimizer);
    object["ranks_start_apart_by"] = apart;
    cases_ = changed.dump();
    return replay("p02");
  };
  EXPECT_EQ(with(R"({"type": "SGD", "lr": 0.1})", 0.5).exit_code, 0);
  EXPECT_EQ(with(R"({"type": "SGD", "lr": 0.1, "nesterov": false, "fused": true, "maximize": false,
                     "momentum": 0, "foreach": null})")
                .exit_code,
            0);
  for (const char* other : {R"({"type": "SGD"})", R"({"type": "SGD", "lr": 0.1, "momentum": 0.5})",
                            R"({"type": "SGD", "lr": 0.1, "weight_decay": 0.5})",
                            R"({"type": "Adam", "lr": 0.1, "betas": [0.5, 0.5]})",
                            R"({"type": "AdamW", "lr": 0.1})", R"({"type": "Adagrad"})"}) {
    const Finished result = with(other);
    EXPECT_EQ(result.exit_code, 1) << other;
    EXPECT_NE(result.out.find("FAILED (out of tolerance"), std::string::npos) << result.out;
  }
  const auto expect_unsupported = [&](const char* optimizer, const char* reason) {
    const Finished result = with(optimizer);
    EXPECT_EQ(result.exit_code, 0) << optimizer;
    EXPECT_NE(result.out.find("unsupported ("), std::string::npos) << result.out;
    EXPECT_NE(result.out.find(reason), std::string::npos) << result.out;
  };
  expect_unsupported(R"({"type": "SGD", "momentum": 0.9, "nesterov": true})", "'nesterov' of SGD");
  expect_unsupported(R"({"type": "SGD", "momentum": 0.9, "dampening": 0.1})", "'dampening' of SGD");
  expect_unsupported(R"({"type": "Adam", "amsgrad": true})", "'amsgrad' of Adam");
  expect_unsupported(R"({"type": "Adagrad", "lr_decay": 0.1})", "'lr_decay' of Adagrad");
  expect_unsupported(R"({"type": "Adam", "new": 0})", "'new' of Adam");
  expect_unsupported(R"({"type": "Adam", "new": "x"})", "'new' of Adam");
  expect_unsupported(R"({"type": "Adam", "betas": [0.9, 2]})", "BETA2");
  expect_unsupported(R"({"type": "RMSprop"})", "PyTorch's RMSprop");

  cases_ = read_file(kGolden + "/ddp.json");
  cases_.replace(cases_.find("\"kind\": \"ddp\""), 13, "\"kind\": \"dpp\"");
  const Finished kind = replay("p02");
  EXPECT_EQ(kind.exit_code, 1);
  EXPECT_NE(kind.err.find("kind is 'dpp'"), std::string::npos) << kind.err;
}

TEST_F(TamperedReplay, NotANumberFails) {
  add("s18/final/ta", std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(replay("s18").exit_code, 1);
}

TEST_F(TamperedReplay, FilesThatAreNotWhatTheyPromiseAreRefused) {
  const std::string arrays = arrays_;
  arrays_ = arrays.substr(0, arrays.size() - 4);
  EXPECT_EQ(replay("s18").exit_code, 1);
  arrays_ = arrays + "more";
  EXPECT_EQ(replay("s18").exit_code, 1);
  arrays_ = arrays.substr(0, 7);
  EXPECT_EQ(replay("s18").exit_code, 1);
  arrays_ = std::string(8, '\xff') + arrays.substr(8);
  EXPECT_EQ(replay("s18").exit_code, 1);
  arrays_ = arrays;
  cases_ = "{\"format\": \"other\"}";
  EXPECT_EQ(replay("s18").exit_code, 1);
  cases_ = "{";
  const Finished broken = replay("s18");
  EXPECT_EQ(broken.exit_code, 1);
  EXPECT_NE(broken.err.find("cases.json"), std::string::npos);
}

}  // namespace
}  // namespace shardrec::cli::test
