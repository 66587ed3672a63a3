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

TEST(Replay, OneCaseByName) {
  const Finished one = run({"replay", kGolden + "/sharded.json", "--case", "s28"});
  EXPECT_EQ(one.exit_code, 0);
  EXPECT_EQ(last_line(one.out), "1 passed, 0 failed, 0 unsupported, 0 not comparable of 1 cases");
  const Finished none = run({"replay", kGolden + "/sharded.json", "--case", "s99"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_NE(none.err.find("s99"), std::string::npos);
}

// A copy of sharded.json whose arrays can be tampered with.
class TamperedReplay : public testing::Test {
 protected:
  void SetUp() override {
    arrays_ = read_file(kGolden + "/sharded.safetensors");
    cases_ = read_file(kGolden + "/sharded.json");
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
