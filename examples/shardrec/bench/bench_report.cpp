// Medians, shares and limits as the line of JSON.
#include "bench/bench_report.h"

#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "bench/step_statistics.h"

namespace shardrec::cli {
namespace {

using Json = nlohmann::ordered_json;
using Pick = std::function<double(const StepTimes&)>;

void add_times(Json& json, const std::vector<RankTimes>& ranks) {
  const auto add = [&](const std::string& name, const Pick& pick) {
    const std::vector<double> values = slowest_milliseconds(ranks, pick);
    json[name + "_ms_median"] = median(values);
    json[name + "_ms_min"] = *std::min_element(values.begin(), values.end());
  };
  json["steps"] = ranks.front().steps.size();
  add("begin", [](const StepTimes& t) { return t.begin; });
  add("forward", [](const StepTimes& t) { return t.forward; });
  add("backward", [](const StepTimes& t) { return t.backward; });
  add("step", [](const StepTimes& t) { return t.forward + t.backward; });
  for (size_t p = 0; p < kBenchPhases.size(); ++p) {
    json[std::string(kBenchPhases[p].first) + "_ms_median"] =
        median(slowest_milliseconds(ranks, [p](const StepTimes& t) { return t.phases[p]; }));
  }
}

// Processor time of the process (all ranks) while rank 0 was in its steps.
void add_cpu(Json& json, const RankTimes& rank) {
  std::vector<double> steps;
  double cpu = 0;
  double wall = 0;
  for (const StepTimes& t : rank.steps) {
    steps.push_back(1e3 * t.cpu);
    cpu += t.cpu;
    wall += t.forward + t.backward;
  }
  json["cpu_ms_median"] = median(steps);
  json["cpu_over_wall"] = cpu / wall;
}

// Tables' counts of all ranks together.
std::vector<double> sum(const std::vector<RankTimes>& ranks,
                        std::vector<double> RankTimes::* counts) {
  std::vector<double> total((ranks.front().*counts).size(), 0.0);
  for (const RankTimes& rank : ranks) {
    for (size_t t = 0; t < total.size(); ++t) total[t] += (rank.*counts)[t];
  }
  return total;
}

int64_t whole(const std::vector<double>& counts) {
  return static_cast<int64_t>(std::accumulate(counts.begin(), counts.end(), 0.0));
}

// What a part of a step has to move at the least, and how long that takes at the probed bandwidth.
struct Moved {
  const char* name;
  double bytes = 0;
  std::optional<double> seconds;
};

// Bandwidths: the least bytes over the median. Shares: the time that they take at the probed bandwidth over the
// median. null: there is nothing to hold the median against, or the median is 0.
void add_bandwidths(Json& json, const LeastTraffic& least) {
  const auto both = [&]() -> std::optional<double> {
    if (!least.forward_seconds || !least.backward_seconds) return std::nullopt;
    return *least.forward_seconds + *least.backward_seconds;
  };
  const std::array<Moved, 6> parts{{{"begin", least.begin_bytes, least.begin_seconds},
                                    {"forward", least.forward_bytes, least.forward_seconds},
                                    {"lookup", least.forward_bytes, least.forward_seconds},
                                    {"backward", least.backward_bytes, least.backward_seconds},
                                    {"update", least.backward_bytes, least.backward_seconds},
                                    {"step", least.forward_bytes + least.backward_bytes, both()}}};
  for (const Moved& part : parts) {
    const std::string name = part.name;
    const double seconds = 1e-3 * json.at(name + "_ms_median").get<double>();
    json[name + "_gb_per_second"] = seconds > 0 ? Json(1e-9 * part.bytes / seconds) : Json();
    json[name + "_share"] = seconds > 0 && part.seconds ? Json(*part.seconds / seconds) : Json();
  }
}

void add_limits(Json& json, const BenchOptions& options, const std::vector<RankTimes>& ranks,
                const ProbedMemory* probed) {
  const std::vector<double> ids = sum(ranks, &RankTimes::ids);
  const std::vector<double> unique_rows = sum(ranks, &RankTimes::unique_rows);
  const LeastTraffic least = least_traffic(options, ids, unique_rows, probed);
  json["bytes_min"] = static_cast<int64_t>(least.forward_bytes + least.backward_bytes);
  json["begin_bytes_min"] = static_cast<int64_t>(least.begin_bytes);
  json["forward_bytes_min"] = static_cast<int64_t>(least.forward_bytes);
  json["backward_bytes_min"] = static_cast<int64_t>(least.backward_bytes);
  json["ids"] = whole(ids);
  json["unique_rows"] = whole(unique_rows);
  json["limit"] = probed == nullptr ? Json() : Json(probed->of_device() ? "probed" : "cached");
  const auto add = [&](const char* name, std::optional<double> seconds) {
    json[name] = seconds ? Json(1e3 * *seconds) : Json();
  };
  add("begin_limit_ms", least.begin_seconds);
  add("forward_limit_ms", least.forward_seconds);
  add("backward_limit_ms", least.backward_seconds);
  add_bandwidths(json, least);
}

// Of the steps that were measured, on each rank. calls: of all ranks together.
void add_calls(Json& json, const DeviceCalls& calls, double steps) {
  json["kernel_launches"] = calls.launches / steps;
  json["driver_calls"] = calls.calls / steps;
  json["host_waits"] = calls.waits / steps;
}

}  // namespace

std::string bench_report(const BenchOptions& options, const std::vector<RankTimes>& ranks,
                         const ProbedMemory* probed) {
  Json json;
  json["version"] = 1;
  json["tables"] = options.shape.tables.size();
  if (options.sizes.empty()) {
    json["rows"] = options.rows;
    json["dim"] = options.dim;
  } else {
    json["sizes"] = options.sizes;
  }
  json["batch"] = options.shape.batch;
  json["pooling"] = options.pooling;
  json["dtype"] = options.dtype;
  json["output_dtype"] = options.output_dtype;
  json["forward_compression"] = options.forward_compression;
  json["backward_compression"] = options.backward_compression;
  json["id_distribution"] = options.ids;
  json["optimizer"] = options.optimizer;
  json["row_statistics"] = options.row_statistics;
  json["borrow"] = options.borrow;
  json["device"] = options.device;
  json["device_wait"] = options.device_wait;
  json["threads"] = options.threads;
  json["ranks"] = options.ranks;
  json["sharding"] = options.sharding;
  add_times(json, ranks);
  add_cpu(json, ranks.front());
  json["create_ms"] = 1e3 * ranks.front().create;
  json["destroy_ms"] = 1e3 * ranks.front().destroy;
  add_limits(json, options, ranks, probed);
  if (!options.tables_on.on_cpu()) {
    add_calls(json, ranks.front().calls,
              static_cast<double>(ranks.front().steps.size() * ranks.size()));
  }
  return json.dump();
}

}  // namespace shardrec::cli
