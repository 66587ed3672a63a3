// Medians of a dense step and its parts as the line of JSON.
#include "bench/dense_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/step_statistics.h"
#include "launch/engines.h"

namespace shardrec::cli {
namespace {

using Json = nlohmann::ordered_json;

void add_times(Json& json, const std::vector<DenseTimes>& ranks) {
  const auto add = [&](const std::string& name, const auto& pick) {
    const std::vector<double> values = slowest_milliseconds(ranks, pick);
    json[name + "_ms_median"] = median(values);
    json[name + "_ms_min"] = *std::min_element(values.begin(), values.end());
  };
  for (size_t p = 0; p < kDenseParts.size(); ++p) {
    add(kDenseParts[p], [p](const DenseStep& step) { return step.parts[p]; });
  }
  add("step", [](const DenseStep& step) { return step.whole(); });
}

// Processor time of all ranks; ranks that are threads share their process, whose time each has.
void add_cpu(Json& json, const DenseBenchOptions& options, const std::vector<DenseTimes>& ranks) {
  const size_t processes = in_processes(options.engine) ? ranks.size() : 1;
  std::vector<double> steps(ranks.front().steps.size(), 0.0);
  double cpu = 0;
  double wall = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    for (size_t r = 0; r < processes; ++r) steps[i] += 1e3 * ranks[r].steps[i].cpu;
    cpu += steps[i];
    wall += 1e3 * ranks.front().steps[i].whole();
  }
  json["cpu_ms_median"] = median(steps);
  json["cpu_over_wall"] = cpu / wall;
}

}  // namespace

std::vector<double> numbers_of(const DenseTimes& times) {
  std::vector<double> numbers{times.loss};
  for (const DenseStep& step : times.steps) {
    numbers.insert(numbers.end(), step.parts.begin(), step.parts.end());
    numbers.push_back(step.cpu);
  }
  return numbers;
}

DenseTimes dense_times_from(const std::vector<double>& numbers) {
  DenseTimes times;
  times.loss = numbers.front();
  for (auto at = numbers.begin() + 1; at != numbers.end();) {
    DenseStep& step = times.steps.emplace_back();
    for (double& part : step.parts) part = *at++;
    step.cpu = *at++;
  }
  return times;
}

std::string dense_report(const DenseBenchOptions& options, int64_t parameters,
                         const std::vector<DenseTimes>& ranks) {
  Json json;
  json["version"] = 1;
  json["layers"] = options.layers;
  json["parameters"] = parameters;
  json["batch"] = options.batch;
  json["optimizer"] = options.optimizer;
  json["precision"] = options.precision;
  json["threads"] = options.threads;
  json["ranks"] = options.ranks;
  json["engine"] = options.engine;
  json["device"] = options.device;
  json["dense"] = options.dense;
  if (options.dense == "fsdp") {
    json["fsdp_strategy"] = options.fsdp_strategy;
    json["fsdp_prefetch"] = options.fsdp_prefetch;
  }
  json["overlap"] = options.overlap;
  json["steps"] = ranks.front().steps.size();
  add_times(json, ranks);
  const double steps_per_second = 1e3 / json["step_ms_median"].get<double>();
  json["steps_per_second"] = steps_per_second;
  json["samples_per_second"] = steps_per_second * static_cast<double>(options.batch);
  add_cpu(json, options, ranks);
  double loss = 0;
  for (const DenseTimes& rank : ranks) loss += rank.loss;
  json["loss"] = loss;
  return json.dump();
}

}  // namespace shardrec::cli
