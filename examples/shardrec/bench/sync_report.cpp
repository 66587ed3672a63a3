// Medians of syncs as the line of JSON.
#include "bench/sync_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/step_statistics.h"

namespace shardrec::cli {
namespace {

using Json = nlohmann::ordered_json;

// The median over the syncs of what pick() gives of each, all ranks together.
template <class Pick>
double median_sum(const std::vector<MeasuredSyncs>& ranks, const Pick& pick) {
  std::vector<double> sums(ranks.front().steps.size(), 0.0);
  for (const MeasuredSyncs& rank : ranks) {
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += pick(rank.steps[i]);
  }
  return median(sums);
}

double blocked(const SyncTimes& sync) { return sync.begin + sync.wait; }

// What a sync keeps the ranks from training, and what it moves.
void add_kind(Json& json, const std::string& name, const std::vector<MeasuredSyncs>& ranks) {
  const std::vector<double> times = slowest_milliseconds(ranks, blocked);
  json[name + "_ms_median"] = median(times);
  json[name + "_ms_min"] = *std::min_element(times.begin(), times.end());
  json[name + "_bytes"] = median_sum(ranks, [](const SyncTimes& sync) { return sync.bytes; });
  json[name + "_rows"] = median_sum(ranks, [](const SyncTimes& sync) { return sync.rows; });
  json[name + "_step_ms_median"] =
      median(slowest_milliseconds(ranks, [](const SyncTimes& sync) { return sync.step; }));
}

// The steps of a way to train replicas, and what a step sends of each kind.
void add_steps(Json& json, const std::string& name, const std::vector<MeasuredSyncs>& ranks,
               int64_t steps) {
  const auto count = static_cast<double>(steps);
  json[name + "_step_ms_median"] =
      median(slowest_milliseconds(ranks, [](const SyncTimes& sync) { return sync.step; }));
  json[name + "_step_bytes"] =
      median_sum(ranks, [](const SyncTimes& sync) { return sync.step_bytes; });
  json[name + "_step_sync_bytes"] =
      median_sum(ranks, [count](const SyncTimes& sync) { return sync.bytes / count; });
  json[name + "_table_bytes"] =
      median_sum(ranks, [](const SyncTimes& sync) { return sync.table_bytes; });
}

}  // namespace

std::vector<double> numbers_of(const MeasuredSyncs& syncs) {
  std::vector<double> numbers;
  for (const SyncTimes& sync : syncs.steps) {
    numbers.insert(numbers.end(), {sync.step, sync.begin, sync.wait, sync.meanwhile, sync.bytes,
                                   sync.rows, sync.step_bytes, sync.table_bytes});
  }
  return numbers;
}

MeasuredSyncs syncs_from(const std::vector<double>& numbers) {
  MeasuredSyncs syncs;
  for (auto at = numbers.begin(); at != numbers.end(); at += 8) {
    syncs.steps.push_back({.step = at[0],
                           .begin = at[1],
                           .wait = at[2],
                           .meanwhile = at[3],
                           .bytes = at[4],
                           .rows = at[5],
                           .step_bytes = at[6],
                           .table_bytes = at[7]});
  }
  return syncs;
}

std::string sync_report(const SyncBenchOptions& options, const SyncKinds& kinds,
                        int64_t steps_meanwhile) {
  Json json;
  json["version"] = 1;
  json["tables"] = options.tables;
  json["rows"] = options.rows;
  json["dim"] = options.dim;
  json["batch"] = options.shape.batch;
  json["pooling"] = options.pooling;
  json["id_distribution"] = options.ids;
  json["dtype"] = options.dtype;
  json["optimizer"] = options.optimizer;
  json["sharding"] = options.sharding;
  json["ranks"] = options.ranks;
  json["sharding_group_size"] = options.sharding_group_size;
  json["engine"] = options.engine;
  json["device"] = options.device;
  json["threads"] = options.threads;
  json["steps"] = options.steps;
  json["syncs"] = options.syncs;
  add_kind(json, "full", kinds.full);
  add_kind(json, "touched", kinds.touched);
  add_kind(json, "overlapped", kinds.overlapped);
  const auto part = [&](const char* name, double SyncTimes::* of) {
    json[name] = median(
        slowest_milliseconds(kinds.overlapped, [of](const SyncTimes& sync) { return sync.*of; }));
  };
  part("overlapped_begin_ms_median", &SyncTimes::begin);
  part("overlapped_wait_ms_median", &SyncTimes::wait);
  part("overlapped_steps_ms_median", &SyncTimes::meanwhile);
  json["overlapped_steps"] = steps_meanwhile;
  const auto ratio = [&](const char* name, const char* of, const char* to) {
    json[name] = json[of].get<double>() / json[to].get<double>();
  };
  json["touched_step_bytes"] =
      median_sum(kinds.touched, [](const SyncTimes& sync) { return sync.step_bytes; });
  json["touched_table_bytes"] =
      median_sum(kinds.touched, [](const SyncTimes& sync) { return sync.table_bytes; });
  add_steps(json, "exact", kinds.exact, options.steps);
  add_steps(json, "sharded", kinds.sharded, options.steps);
  ratio("touched_bytes_ratio", "full_bytes", "touched_bytes");
  ratio("touched_time_ratio", "full_ms_median", "touched_ms_median");
  ratio("overlapped_time_share", "overlapped_ms_median", "touched_ms_median");
  return json.dump();
}

}  // namespace shardrec::cli
