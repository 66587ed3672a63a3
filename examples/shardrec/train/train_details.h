// What the line of JSON of `train` has with --report, beside what it has without.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "train/history.h"
#include "train/train_counters.h"
#include "train/train_options.h"

namespace shardrec::cli {

struct TrainResult;

struct TrainDetails {
  std::string started;   // of the process, in UTC
  std::string settings;  // settings_json
  nlohmann::json plan;   // planned_json, of the ranks that share a copy of the tables
  std::vector<HistoryPoint> history;
  std::vector<RankCounters> counters;  // by rank
};

// Adds the fields that JSON.md calls "optional: with --report". details: of the result.
void add_details(const TrainOptions& options, const TrainResult& result,
                 nlohmann::ordered_json& json);

}  // namespace shardrec::cli
