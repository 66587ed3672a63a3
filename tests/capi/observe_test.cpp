// What the process tells of itself: metrics in Prometheus' text format, the trace in Chrome's.
#include "shardrec/observe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/ranks.h"
#include "support/structs.h"

namespace shardrec::test {
namespace {

std::string counters_text() {
  char* text = nullptr;
  SR_EXPECT_OK(shardrec_counters_text(&text));
  std::string copy = text == nullptr ? "" : text;
  shardrec_text_free(text);
  return copy;
}

nlohmann::json trace_json() {
  char* text = nullptr;
  SR_EXPECT_OK(shardrec_trace_json(&text));
  const auto json = nlohmann::json::parse(text == nullptr ? "null" : text);
  shardrec_text_free(text);
  return json;
}

// A reader of the format as its specification says it, strict: each family has HELP, TYPE and its
// samples in one place, names and labels are well formed, nothing comes twice.
struct Parsed {
  using Labels = std::map<std::string, std::string>;
  std::map<std::string, std::string> types;
  std::map<std::string, std::map<Labels, double>> samples;

  double at(const std::string& family, const Labels& wanted) const {
    double sum = 0;
    int found = 0;
    const auto known = samples.find(family);
    if (known == samples.end()) return NAN;
    for (const auto& [labels, value] : known->second) {
      bool fits = true;
      for (const auto& [name, text] : wanted) {
        const auto label = labels.find(name);
        fits = fits && label != labels.end() && label->second == text;
      }
      if (!fits) continue;
      sum += value;
      ++found;
    }
    return found == 0 ? NAN : sum;
  }
};

bool is_name(const std::string& text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!letter && !(i > 0 && c >= '0' && c <= '9')) return false;
  }
  return !text.empty();
}

// name{label="value",...} value
void parse_sample(const std::string& line, const std::string& family, Parsed& out) {
  size_t at = line.find_first_of("{ ");
  ASSERT_NE(at, std::string::npos) << line;
  ASSERT_EQ(line.substr(0, at), family) << "a sample outside its family";
  Parsed::Labels labels;
  if (line[at] == '{') {
    ++at;
    while (line.at(at) != '}') {
      const size_t equals = line.find('=', at);
      ASSERT_NE(equals, std::string::npos) << line;
      const std::string name = line.substr(at, equals - at);
      ASSERT_TRUE(is_name(name)) << line;
      ASSERT_EQ(line.at(equals + 1), '"') << line;
      std::string value;
      for (at = equals + 2; line.at(at) != '"'; ++at) {
        if (line[at] != '\\') {
          value += line[at];
          continue;
        }
        ++at;
        const char escaped = line.at(at);
        ASSERT_TRUE(escaped == '\\' || escaped == '"' || escaped == 'n') << line;
        value += escaped == 'n' ? '\n' : escaped;
      }
      ASSERT_TRUE(labels.emplace(name, value).second) << line;
      ++at;
      if (line.at(at) == ',') ++at;
    }
    ++at;
  }
  ASSERT_EQ(line.at(at), ' ') << line;
  size_t used = 0;
  const double value = std::stod(line.substr(at + 1), &used);
  ASSERT_EQ(at + 1 + used, line.size()) << line;
  ASSERT_TRUE(out.samples[family].emplace(labels, value).second) << "twice: " << line;
}

Parsed parse(const std::string& text) {
  Parsed out;
  EXPECT_TRUE(text.empty() || text.back() == '\n');
  std::string family;
  bool typed = true;
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("# HELP ")) {
      EXPECT_TRUE(typed) << "no TYPE before " << line;
      family = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_TRUE(is_name(family) && family.starts_with("shardrec_")) << line;
      EXPECT_EQ(out.types.count(family), 0u) << family << " comes twice";
      typed = false;
    } else if (line.starts_with("# TYPE ")) {
      EXPECT_EQ(line.substr(7, line.find(' ', 7) - 7), family);
      const std::string type = line.substr(line.rfind(' ') + 1);
      EXPECT_TRUE(type == "counter" || type == "gauge") << line;
      EXPECT_EQ(type == "counter", family.ends_with("_total")) << line;
      out.types[family] = type;
      typed = true;
    } else {
      EXPECT_TRUE(typed);
      parse_sample(line, family, out);
    }
  }
  return out;
}

// Two tables: the first in rows over both ranks, the second on rank 1. One step of a known batch.
class Observe : public ::testing::Test {
 protected:
  static constexpr const char* kAwkward = "a \"quoted\\ name\\n, {x=\"1\"} \xc3\xa9";

  void run_step(const std::function<void(int rank, shardrec_collection*)>& look) {
    run_ranks(2, 1, [&](int rank, shardrec_comm* comm) {
      shardrec_model* model = nullptr;
      SR_OK(shardrec_model_create(nullptr, &model));
      SR_OK(shardrec_model_add_table(model, kAwkward, 10, 4, nullptr, nullptr));
      SR_OK(shardrec_model_add_table(model, "second", 6, 4, nullptr, nullptr));
      SR_OK(shardrec_model_add_feature(model, 0, "f", SHARDREC_POOLING_SUM));
      SR_OK(shardrec_model_add_feature(model, 1, "g", SHARDREC_POOLING_MEAN));
      shardrec_topology* topology = nullptr;
      SR_OK(shardrec_topology_create(2, 1, nullptr, &topology));
      shardrec_plan* plan = nullptr;
      SR_OK(shardrec_plan_create_empty(model, topology, nullptr, &plan));
      SR_OK(add_box(plan, 0, 0, 0, 5, 0, 4));
      SR_OK(add_box(plan, 0, 1, 5, 5, 0, 4));
      SR_OK(add_box(plan, 1, 1, 0, 6, 0, 4));
      shardrec_collection* tables = nullptr;
      SR_OK(shardrec_collection_create(comm, nullptr, model, plan, nullptr, &tables));
      shardrec_lookup* lookup = nullptr;
      SR_OK(shardrec_lookup_create(tables, nullptr, &lookup));
      // Of each rank: ids 0 1 1 7 of the first table, 2 2 3 of the second.
      std::vector<int64_t> values = {0, 1, 1, 7, 2, 2, 3};
      std::vector<int64_t> lengths = {3, 1, 2, 1};
      std::vector<float> out(16);
      std::vector<float> gradient(16, 1.0F);
      const shardrec_tensor ids = vector_of(values);
      const shardrec_tensor counts = vector_of(lengths);
      const shardrec_tensor rows = matrix(out.data(), 2, 8);
      const shardrec_tensor slopes = matrix(gradient.data(), 2, 8);
      SR_OK(begin_batch(lookup, {.batch_size = 2, .values = &ids, .lengths = &counts}));
      SR_OK(shardrec_lookup_forward(lookup, 0, &rows));
      SR_OK(shardrec_lookup_set_gradient(lookup, 0, &slopes));
      SR_OK(shardrec_lookup_backward(lookup, SHARDREC_UPDATE_APPLY));
      // The ranks tell each other with the next batch, and count none of their own before.
      double imbalance = 0;
      SR_EXPECT_OK(shardrec_collection_stat(tables, SHARDREC_STAT_IMBALANCE, SHARDREC_ALL_TABLES,
                                            &imbalance));
      EXPECT_EQ(imbalance, 1);
      SR_OK(begin_batch(lookup, {.batch_size = 0}));
      const shardrec_tensor none = matrix(out.data(), 0, 8);
      SR_OK(shardrec_lookup_forward(lookup, 0, &none));
      SR_OK(shardrec_lookup_backward(lookup, SHARDREC_UPDATE_SKIP));
      SR_OK(shardrec_comm_barrier(comm));
      look(rank, tables);
      SR_OK(shardrec_comm_barrier(comm));
      shardrec_lookup_destroy(&lookup);
      shardrec_collection_destroy(&tables);
      shardrec_plan_destroy(&plan);
      shardrec_topology_destroy(&topology);
      shardrec_model_destroy(&model);
    });
  }

  static double table_stat(shardrec_collection* tables, int32_t table, shardrec_stat stat) {
    double value = -1;
    SR_EXPECT_OK(shardrec_collection_stat(tables, stat, table, &value));
    return value;
  }
};

TEST_F(Observe, TablesCountTheirIdsAndRows) {
  run_step([](int rank, shardrec_collection* tables) {
    // Rank 0 has rows 0 to 4 of the first table: 0 1 1 of two ranks; rank 1 row 7 and the second.
    EXPECT_EQ(table_stat(tables, 0, SHARDREC_STAT_TABLE_IDS), rank == 0 ? 6 : 2);
    EXPECT_EQ(table_stat(tables, 1, SHARDREC_STAT_TABLE_IDS), rank == 0 ? 0 : 6);
    EXPECT_EQ(table_stat(tables, 0, SHARDREC_STAT_TABLE_ROWS_UPDATED), rank == 0 ? 2 : 1);
    EXPECT_EQ(table_stat(tables, 1, SHARDREC_STAT_TABLE_ROWS_UPDATED), rank == 0 ? 0 : 2);
    EXPECT_EQ(table_stat(tables, 0, SHARDREC_STAT_TABLE_OUT_OF_RANGE), 0);
    EXPECT_EQ(table_stat(tables, SHARDREC_ALL_TABLES, SHARDREC_STAT_TABLE_IDS), rank == 0 ? 6 : 8);
  });
}

TEST_F(Observe, ImbalanceIsTheBusiestRankOverTheMean) {
  run_step([](int /*rank*/, shardrec_collection* tables) {
    double imbalance = 0;
    SR_EXPECT_OK(
        shardrec_collection_stat(tables, SHARDREC_STAT_IMBALANCE, SHARDREC_ALL_TABLES, &imbalance));
    EXPECT_DOUBLE_EQ(imbalance, 8.0 / 7.0);  // 6 and 8 ids
  });
}

TEST_F(Observe, CountersTextIsPrometheusAndHoldsTheCounters) {
  run_step([](int rank, shardrec_collection* tables) {
    const Parsed metrics = parse(counters_text());
    const std::string me = std::to_string(rank);
    const Parsed::Labels mine = {{"rank", me}, {"collection", "0"}};
    const auto with = [&](const char* name, const std::string& value) {
      Parsed::Labels labels = mine;
      labels[name] = value;
      return labels;
    };
    EXPECT_EQ(metrics.at("shardrec_comm_up", {{"rank", me}}), 1);
    for (const char* of_devices : {"calls", "launches", "waits"}) {
      EXPECT_EQ(metrics.at("shardrec_device_" + std::string(of_devices) + "_total", {}), 0);
    }
    EXPECT_EQ(metrics.at("shardrec_steps_total", mine), 1);
    EXPECT_EQ(metrics.at("shardrec_table_ids_total", with("table", kAwkward)), rank == 0 ? 6 : 2);
    EXPECT_EQ(metrics.at("shardrec_table_rows_updated_total", with("table", "second")),
              rank == 0 ? 0 : 2);
    EXPECT_EQ(metrics.at("shardrec_table_ids_out_of_range_total", with("table", "second")), 0);
    EXPECT_DOUBLE_EQ(metrics.at("shardrec_imbalance_ratio", mine), 8.0 / 7.0);
    const auto same = [&](const char* family, shardrec_stat stat, const Parsed::Labels& labels) {
      double value = -1;
      SR_EXPECT_OK(shardrec_collection_stat(tables, stat, SHARDREC_ALL_TABLES, &value));
      EXPECT_EQ(metrics.at(family, labels), value) << family;
    };
    same("shardrec_table_memory_bytes", SHARDREC_STAT_BYTES_TABLES, mine);
    same("shardrec_buffer_memory_bytes", SHARDREC_STAT_BYTES_BUFFERS, mine);
    same("shardrec_ids_sent_total", SHARDREC_STAT_IDS_SENT, mine);
    same("shardrec_ids_looked_up_total", SHARDREC_STAT_IDS_RECEIVED, mine);
    same("shardrec_threads_seen", SHARDREC_STAT_THREADS_SEEN, mine);
    same("shardrec_saturated_total", SHARDREC_STAT_SATURATED, mine);
    same("shardrec_exchange_bytes_total", SHARDREC_STAT_BYTES_INPUT, with("exchange", "input"));
    same("shardrec_exchange_bytes_total", SHARDREC_STAT_BYTES_OUTPUT, with("exchange", "output"));
    same("shardrec_exchange_bytes_total", SHARDREC_STAT_BYTES_GRADIENT,
         with("exchange", "gradient"));
    same("shardrec_exchange_bytes_total", SHARDREC_STAT_BYTES_SYNC, with("exchange", "sync"));
    same("shardrec_rows_synced_total", SHARDREC_STAT_ROWS_SYNCED, mine);
    double seconds = 0;
    SR_EXPECT_OK(shardrec_collection_stat(tables, SHARDREC_STAT_SECONDS_UPDATE, SHARDREC_ALL_TABLES,
                                          &seconds));
    EXPECT_GT(seconds, 0);
    EXPECT_DOUBLE_EQ(metrics.at("shardrec_phase_seconds_total", with("phase", "update")), seconds);
    EXPECT_EQ(metrics.samples.at("shardrec_phase_seconds_total").size(), 16u);
  });
  const Parsed after = parse(counters_text());
  EXPECT_TRUE(std::isnan(after.at("shardrec_steps_total", {})));
  EXPECT_EQ(after.at("shardrec_live_objects", {}), 0);
}

// The phases of a rank's call, in their order.
std::vector<std::string> phases_of(const nlohmann::json& trace, int rank, const std::string& call) {
  const auto& events = trace.at("traceEvents");
  const auto is_call = [&](const nlohmann::json& event) {
    return event.at("pid") == rank && event.at("ph") == "X" && event.at("name") == call;
  };
  const auto found = std::find_if(events.begin(), events.end(), is_call);
  if (found == events.end()) return {};
  const double start = found->at("ts");
  const double end = start + found->at("dur").get<double>();
  std::multimap<double, std::string> phases;  // short ones may begin at one time
  for (const auto& event : events) {
    if (event.at("pid") != rank || event.at("ph") != "X" || event == *found) continue;
    const double at = event.at("ts");
    if (at >= start && at < end) phases.emplace(at, event.at("name"));
  }
  std::vector<std::string> names;
  for (const auto& [at, name] : phases) names.push_back(name);
  return names;
}

TEST_F(Observe, TraceHoldsThePhasesOfEachRankInsideTheirCalls) {
  SR_OK(shardrec_trace_start(1000));
  run_step([](int, shardrec_collection*) {});
  shardrec_trace_stop();
  const nlohmann::json trace = trace_json();
  EXPECT_EQ(trace.at("otherData").at("dropped_events"), 0);
  const std::map<std::string, std::set<std::string>> calls = {
      {"begin", {"route"}},
      {"forward", {"input exchange", "lookup", "output exchange"}},
      {"backward", {"gradient exchange", "index plan", "update"}}};
  for (const int rank : {0, 1}) {
    std::map<std::string, int> count;
    for (const auto& event : trace.at("traceEvents")) {
      if (event.at("pid") != rank || event.at("ph") != "X") continue;
      EXPECT_EQ(event.at("tid"), 0);
      ++count[event.at("name")];
      const double start = event.at("ts");
      const double end = start + event.at("dur").get<double>();
      const auto call = calls.find(event.at("name"));
      if (call == calls.end()) continue;
      for (const auto& phase : trace.at("traceEvents")) {
        if (phase.at("pid") != rank || phase.at("ph") != "X") continue;
        if (phase.at("ts") < start || phase.at("ts") >= end) continue;
        EXPECT_LE(phase.at("ts").get<double>() + phase.at("dur").get<double>(), end + 0.001);
      }
    }
    EXPECT_EQ(count["begin"], 2);
    EXPECT_EQ(count["forward"], 2);
    EXPECT_EQ(count["backward"], 1);
    EXPECT_EQ(count["skip"], 1);
    EXPECT_EQ(count["gradient"], 1);
    for (const auto& [call, phases] : calls) {
      for (const std::string& phase : phases) EXPECT_GT(count[phase], 0) << phase;
    }
    EXPECT_EQ(count["update"], 1);
    EXPECT_EQ(phases_of(trace, rank, "backward"),
              (std::vector<std::string>{"gradient exchange", "index plan", "gradient exchange",
                                        "index plan", "update", "gradient exchange"}))
        << "rows are grouped while gradients travel";
  }
}

TEST_F(Observe, TraceIsBoundedAndTellsWhatItDropped) {
  SR_OK(shardrec_trace_start(5));
  run_step([](int, shardrec_collection*) {});
  shardrec_trace_stop();
  const nlohmann::json trace = trace_json();
  int events = 0;
  for (const auto& event : trace.at("traceEvents")) events += event.at("ph") == "X" ? 1 : 0;
  EXPECT_EQ(events, 5);
  EXPECT_GT(trace.at("otherData").at("dropped_events"), 20);
}

TEST_F(Observe, NothingIsTracedBeforeTheStartAndAfterTheStop) {
  SR_OK(shardrec_trace_start(1000));
  shardrec_trace_stop();
  shardrec_trace_stop();  // there is none any more
  run_step([](int, shardrec_collection*) {});
  EXPECT_TRUE(trace_json().at("traceEvents").empty());
}

TEST_F(Observe, MetricsAndTraceCanBeReadWhileStepsRun) {
  SR_OK(shardrec_trace_start(64));
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop) {
      parse(counters_text());
      trace_json();
    }
  });
  for (int i = 0; i < 3; ++i) run_step([](int, shardrec_collection*) {});
  stop = true;
  reader.join();
  shardrec_trace_stop();
}

TEST_F(Observe, MalformedCallsAreRefused) {
  EXPECT_EQ(shardrec_counters_text(nullptr), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(shardrec_trace_json(nullptr), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(shardrec_trace_start(0), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(shardrec_trace_start(-1), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(shardrec_trace_start((1 << 24) + 1), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(shardrec_trace_start(INT64_MAX), SHARDREC_INVALID_ARGUMENT);
  run_step([](int, shardrec_collection* tables) {
    double value = -77;
    const auto stat = [&](shardrec_stat which, int32_t table) {
      return shardrec_collection_stat(tables, which, table, &value);
    };
    EXPECT_EQ(stat(SHARDREC_STAT_TABLE_IDS, 2), SHARDREC_NOT_FOUND);
    EXPECT_EQ(stat(SHARDREC_STAT_TABLE_IDS, -2), SHARDREC_NOT_FOUND);
    EXPECT_EQ(stat(SHARDREC_STAT_STEPS, 0), SHARDREC_INVALID_ARGUMENT);
    EXPECT_EQ(stat(SHARDREC_STAT_SECONDS_LOOKUP, 0), SHARDREC_INVALID_ARGUMENT);
    for (const int none : {0, 13, 110, 200, 205, 999}) {
      EXPECT_EQ(stat(static_cast<shardrec_stat>(none), SHARDREC_ALL_TABLES),
                SHARDREC_INVALID_ARGUMENT)
          << none;
    }
    EXPECT_EQ(shardrec_collection_stat(tables, SHARDREC_STAT_STEPS, SHARDREC_ALL_TABLES, nullptr),
              SHARDREC_INVALID_ARGUMENT);
    EXPECT_EQ(shardrec_collection_stat(nullptr, SHARDREC_STAT_STEPS, SHARDREC_ALL_TABLES, &value),
              SHARDREC_INVALID_HANDLE);
    EXPECT_EQ(value, -77);
  });
}

}  // namespace
}  // namespace shardrec::test
