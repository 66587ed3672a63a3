// `shardrec trace merge` and `train --trace` of processes: one trace, its times by one clock;
// files that are no traces.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "command.h"
#include "command/user_error.h"
#include "trace/trace_merge.h"

namespace shardrec::cli::test {
namespace {

using nlohmann::json;

// A rank's clock: steady time `start` where the trace begins, `offset` to rank 0's.
json trace_of(int rank, int64_t start, int64_t offset, int64_t unix_start,
              const std::vector<double>& times, const std::string& reference = "feed") {
  json events = json::array();
  events.push_back({{"ph", "M"},
                    {"name", "process_name"},
                    {"pid", rank},
                    {"args", {{"name", "rank " + std::to_string(rank)}}}});
  for (const double time : times) {
    events.push_back(
        {{"ph", "X"}, {"name", "forward"}, {"pid", rank}, {"tid", 0}, {"ts", time}, {"dur", 5.5}});
  }
  return {{"displayTimeUnit", "ms"},
          {"otherData",  // without a version, as 0.1 wrote it
           {{"dropped_events", rank},
            {"start_unix_nanoseconds", unix_start},
            {"start_steady_nanoseconds", start},
            {"clocks",
             {{{"reference", reference},
               {"rank", rank},
               {"offset_nanoseconds", offset},
               {"uncertainty_nanoseconds", rank * 1500}}}}}},
          {"traceEvents", events}};
}

std::map<int, std::vector<double>> times_of(const json& trace) {
  std::map<int, std::vector<double>> times;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") times[event.at("pid")].push_back(event.at("ts"));
  }
  return times;
}

class Trace : public testing::Test {
 protected:
  json merged(const std::vector<std::string>& names) {
    std::vector<std::string> paths;
    for (const std::string& name : names) paths.push_back(files.path(name));
    last = merge_traces(files.path("out.json"), paths);
    return json::parse(read_file(files.path("out.json")));
  }
  // What merging `content` with a good trace is refused with.
  std::string refusal(const std::string& content) {
    files.write("bad.json", content);
    files.write("good.json", trace_of(0, 0, 0, 0, {1}).dump());
    try {
      merge_traces(files.path("out.json"), {files.path("good.json"), files.path("bad.json")});
    } catch (const UserError& error) {
      EXPECT_FALSE(std::filesystem::exists(files.path("out.json")));
      EXPECT_FALSE(std::filesystem::exists(files.path("out.json.part")));
      return error.what();
    }
    return "it was accepted";
  }

  const Scratch files;
  Merged last;
};

TEST_F(Trace, TimesAreThoseOfRankZerosClock) {
  // Rank 1's clock is 2 s behind; its trace began 1 ms after that of rank 0.
  files.write("0", trace_of(0, 10'000'000'000, 0, 77, {0, 250}).dump());
  files.write("1", trace_of(1, 8'001'000'000, 2'000'000'000, 5, {0, 100.125}).dump());
  for (const auto& order : {std::vector<std::string>{"0", "1"}, {"1", "0"}}) {
    const json trace = merged(order);
    const auto times = times_of(trace);
    ASSERT_EQ(times.size(), 2u);
    EXPECT_EQ(times.at(0), (std::vector<double>{0, 250}));
    EXPECT_EQ(times.at(1), (std::vector<double>{1000, 1100.125}));
    EXPECT_FALSE(last.by_wall_clock);
    EXPECT_EQ(last.uncertainty_us, 1.5);
    EXPECT_EQ(last.events, 6);
    EXPECT_EQ(trace.at("otherData").at("version"), 1);
    EXPECT_EQ(trace.at("otherData").at("dropped_events"), 1);
    EXPECT_EQ(trace.at("otherData").at("start_steady_nanoseconds"), 10'000'000'000);
    EXPECT_EQ(trace.at("otherData").at("start_unix_nanoseconds"), 77);
    std::set<std::string> names;
    for (const json& event : trace.at("traceEvents")) {
      if (event.at("ph") == "M") names.insert(event.at("args").begin()->get<std::string>());
    }
    EXPECT_EQ(names, (std::set<std::string>{"rank 0", "rank 1", "clock +-0 us", "clock +-2 us"}));
  }
}

TEST_F(Trace, AMergedTraceCanBeMergedAgain) {
  files.write("0", trace_of(0, 5000, 0, 0, {1}).dump());
  files.write("1", trace_of(1, 5000, 1000, 0, {1}).dump());
  files.write("2", trace_of(2, 5000, 3000, 0, {1}).dump());
  const auto at_once = times_of(merged({"0", "1", "2"}));
  files.write("12", merged({"1", "2"}).dump());
  EXPECT_EQ(times_of(merged({"0", "12"})), at_once);
  EXPECT_EQ(at_once.at(2), (std::vector<double>{4}));
}

TEST_F(Trace, ProcessesThatNeverComparedTheirClocksAreLaidByTheWallClock) {
  files.write("0", trace_of(0, 10, 0, 1'000'000, {0}, "one").dump());
  files.write("1", trace_of(1, 10, 0, 3'000'000, {0}, "another").dump());
  const auto times = times_of(merged({"0", "1"}));
  EXPECT_TRUE(last.by_wall_clock);
  EXPECT_EQ(times.at(1), (std::vector<double>{2000}));
}

TEST_F(Trace, FilesThatAreNoTracesAreRefusedWithTheirPlace) {
  const std::string good = trace_of(1, 0, 0, 0, {1}).dump();
  const auto with = [&](const char* pointer, const json& value) {
    json changed = json::parse(good);
    changed[json::json_pointer(pointer)] = value;
    return changed.dump();
  };
  const auto without = [&](const char* member, const char* key) {
    json changed = json::parse(good);
    changed.at(member).erase(key);
    return changed.dump();
  };
  const std::string deep(100'000, '[');
  struct Case {
    std::string content;
    const char* says;
  };
  const Case cases[] = {
      {"", "byte 1"},
      {"{", "byte 2"},
      {"[]", "\"traceEvents\" is expected"},
      {"7", "\"traceEvents\" is expected"},
      {"{}", "no \"otherData\""},
      {good.substr(0, good.size() / 2), "byte "},
      {good + "x", "byte "},
      {deep, "byte "},
      {R"({"a": )" + deep, "nesting deeper than 16"},
      {R"({"traceEvents": [)" + deep, "an event that is an array"},
      {R"({"traceEvents": {}})", "an array is expected"},
      {R"({"traceEvents": 1})", "is one value"},
      {R"({"otherData": []})", "an object is expected"},
      {R"({"traceEvents": [1]})", "no object"},
      {R"({"traceEvents": [], "traceEvents": []})", "second time"},
      {R"({"otherData": {"a": 1, "a": 2}})", "second time"},
      {R"({"otherData": {"a": 1e999}})", "byte "},
      {"{\"otherData\": {\"\xff\": 1}}", "byte "},
      {R"({"otherData": {"a": ")" + std::string(100'000, 'x') + "\"}}", "a text of 100000 bytes"},
      {R"({"otherData": {"a": [)" +
           [] {
             std::string many = "0";
             for (int i = 0; i < 2000; ++i) many += ",0";
             return many;
           }() +
           "]}}",
       "more than 1000 values"},
      {without("otherData", "clocks"), "\"clocks\""},
      {with("/otherData/version", 2), "\"version\" is 2, of a later release"},
      {without("otherData", "start_steady_nanoseconds"), "\"start_steady_nanoseconds\""},
      {with("/otherData/start_steady_nanoseconds", 1.5), "no integer"},
      {with("/otherData/start_steady_nanoseconds", INT64_MIN), "is accepted"},
      {with("/otherData/start_unix_nanoseconds", UINT64_MAX), "is accepted"},
      {with("/otherData/clocks/0/offset_nanoseconds", INT64_MAX), "is accepted"},
      {with("/otherData/clocks/0/uncertainty_nanoseconds", -1), "is accepted"},
      {with("/otherData/clocks/0/reference", ""), "reference"},
      {with("/otherData/clocks/0", 3), "no object"},
      {with("/traceEvents/1/pid", "1"), "\"pid\""},
      {with("/traceEvents/1/pid", 1e300), "\"pid\""},
      {with("/traceEvents/1/pid", -1), "is accepted"},
      {with("/traceEvents/1/ts", "soon"), "\"ts\" is no number"},
      {with("/traceEvents/1/ph", ""), "\"ph\""},
      {with("/traceEvents/1/pid", 0), "Rank 0 is in"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.content.substr(0, 300));
    const std::string said = refusal(one.content);
    EXPECT_NE(said.find(one.says), std::string::npos) << said;
    EXPECT_NE(said.find("bad.json"), std::string::npos) << said;
  }
}

TEST_F(Trace, NoFileIsLostToAMergeThatCannotBe) {
  files.write("0", trace_of(0, 0, 0, 0, {1}).dump());
  const std::string before = read_file(files.path("0"));
  const Finished same = run({"trace", "merge", files.path("0"), files.path("0")});
  EXPECT_EQ(same.exit_code, 1);
  EXPECT_NE(same.err.find("is one of the files"), std::string::npos) << same.err;
  EXPECT_EQ(read_file(files.path("0")), before);
  const Finished absent = run({"trace", "merge", files.path("out"), files.path("absent")});
  EXPECT_EQ(absent.exit_code, 1);
  EXPECT_NE(absent.err.find("absent cannot be read"), std::string::npos) << absent.err;
  EXPECT_EQ(run({"trace", "merge", "/nonexistent/out", files.path("0")}).exit_code, 1);
}

TEST_F(Trace, TrainOfProcessesWritesOneFile) {
  const std::string log = files.path("log.tsv");
  ASSERT_EQ(run({"generate", "--rows", "2000", "--output", log}).exit_code, 0);
  const Finished result =
      run({"train", "--format", "criteo", "--data", log, "--batch", "128", "--threads", "1",
           "--ranks", "2", "--engine", "gloo", "--trace", files.path("trace.json")});
  if ((result.out + result.err).find("which is not installed") != std::string::npos) {
    GTEST_SKIP() << "the plug-in of the engine gloo was not built";
  }
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_FALSE(std::filesystem::exists(files.path("trace.json.rank0")));
  EXPECT_FALSE(std::filesystem::exists(files.path("trace.json.rank1")));
  const json trace = json::parse(read_file(files.path("trace.json")));
  const json& clock = trace.at("otherData").at("clocks").at(0);
  // A forward needs the ids that the other rank's begin has sent: it ends after that has begun, by
  // whichever clock.
  std::map<int, std::vector<double>> begun;
  std::map<int, std::vector<double>> ended;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const double start = event.at("ts");
    if (event.at("name") == "begin") begun[event.at("pid")].push_back(start);
    if (event.at("name") == "forward") {
      ended[event.at("pid")].push_back(start + event.at("dur").get<double>());
    }
  }
  ASSERT_EQ(begun.size(), 2u);
  ASSERT_EQ(ended.size(), 2u);
  const double slack = clock.at("uncertainty_nanoseconds").get<double>() * 1e-3 + 1;
  for (const int rank : {0, 1}) {
    const size_t steps = ended.at(rank).size();
    ASSERT_GT(steps, 5u);
    ASSERT_GE(begun.at(1 - rank).size(), steps);
    for (size_t i = 0; i < steps; ++i) {
      EXPECT_GE(ended.at(rank)[i] + slack, begun.at(1 - rank)[i]) << "rank " << rank << ", " << i;
    }
  }
}

}  // namespace
}  // namespace shardrec::cli::test
