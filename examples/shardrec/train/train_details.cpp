// The fields of a report, in the order in which it shows them.
#include "train/train_details.h"

#include <algorithm>
#include <cmath>

#include "command/machine.h"
#include "launch/engines.h"
#include "train/train_report.h"

namespace shardrec::cli {
namespace {

using Json = nlohmann::ordered_json;

// Counts are whole numbers; ratios need not be.
Json number(double value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (std::abs(value) < kExact && value == std::floor(value)) return static_cast<int64_t>(value);
  return value;
}

template <typename Of>
Json by_rank(const std::vector<RankCounters>& ranks, const Of& of) {
  Json values = Json::array();
  for (const RankCounters& rank : ranks) values.push_back(number(of(rank)));
  return values;
}

// The options as they are on the command line, with what they are by default.
void add_settings(const std::string& text, Json& json) {
  const Json saved = Json::parse(text);
  Json& settings = json["settings"] = Json::array();
  for (const auto& [name, value] : saved.items()) {
    if (!name.starts_with("--")) continue;
    std::string shown;
    if (value.is_array()) {
      for (const Json& part : value) shown += (shown.empty() ? "" : ",") + part.dump();
    } else {
      shown = value.is_string() ? value.get<std::string>() : value.dump();
    }
    settings.push_back({{"option", name}, {"value", shown}});
  }
  json["data"] = saved.at("data");
}

void add_history(const std::vector<HistoryPoint>& points, Json& json) {
  Json& history = json["history"] = Json::array();
  for (const HistoryPoint& point : points) {
    const bool known = point.known_samples > 0;
    Json& added = history.emplace_back();
    added["step"] = point.step;
    added["samples"] = point.samples;
    added["seconds"] = point.seconds;
    added["samples_per_second"] =
        point.seconds > 0 ? static_cast<double>(point.samples) / point.seconds : 0;
    added["loss"] = point.loss;
    added["ne"] = known ? Json(point.normalised_entropy) : Json();
    added["auc"] = known ? Json(point.auc) : Json();
  }
}

// names: of times that `of(rank)` has in this order.
template <typename Names, typename NameOf, typename Of>
Json times(const TrainResult& result, const Names& names, const NameOf& name_of, const Of& of) {
  Json phases = Json::array();
  for (size_t i = 0; i < names.size(); ++i) {
    Json seconds = Json::array();
    for (const RankReport& rank : result.ranks) seconds.push_back(of(rank)[i]);
    phases.push_back({{"name", name_of(names[i])}, {"seconds", std::move(seconds)}});
  }
  return phases;
}

void add_counters(const std::vector<RankCounters>& ranks, Json& json) {
  Json& counters = json["counters"] = Json::array();
  for (size_t i = 0; i < kRankCounters.size(); ++i) {
    Json& added = counters.emplace_back();
    added["name"] = kRankCounters[i].name;
    added["what"] = kRankCounters[i].what;
    added["values"] = by_rank(ranks, [i](const RankCounters& rank) { return rank.counts[i]; });
  }
  Json& tables = json["table_counters"] = Json::array();
  for (size_t i = 0; i < kTableCounters.size(); ++i) {
    Json values = Json::array();
    for (size_t t = 0; t < ranks.front().tables.size(); ++t) {
      double sum = 0;
      for (const RankCounters& rank : ranks) sum += rank.tables[t][i];
      values.push_back(number(sum));
    }
    Json& added = tables.emplace_back();
    added["name"] = kTableCounters[i].name;
    added["what"] = kTableCounters[i].what;
    added["values"] = std::move(values);
  }
}

}  // namespace

void add_details(const TrainOptions& options, const TrainResult& result, Json& json) {
  const TrainDetails& details = *result.details;
  json["started"] = details.started;
  add_settings(details.settings, json);
  add_history(details.history, json);
  json["phases"] = times(
      result, kPhaseNames, [](const char* name) { return name; },
      [](const RankReport& rank) -> const auto& { return rank.phases; });
  json["table_phases"] = times(
      result, kTableStats, [](const TableStat& stat) { return stat.name; },
      [](const RankReport& rank) -> const auto& { return rank.table_seconds; });
  json["plan"] = details.plan;
  Json& memory = json["memory"];
  const std::vector<RankCounters>& ranks = details.counters;
  memory["table_bytes"] = by_rank(ranks, [](const auto& rank) { return rank.table_bytes; });
  memory["buffer_bytes"] = by_rank(ranks, [](const auto& rank) { return rank.buffer_bytes; });
  // Threads share a process.
  memory["process_peak_bytes"] =
      by_rank(in_processes(options.engine) ? ranks : std::vector<RankCounters>{ranks.front()},
              [](const auto& rank) { return rank.peak_bytes; });
  add_counters(ranks, json);
  json["machine"] = machine_json();
}

}  // namespace shardrec::cli
