#include "bench_report.h"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

namespace shardrec::cli {
namespace {

using Json = nlohmann::ordered_json;
using Pick = std::function<double(const StepTimes&)>;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

// A step is as long as its slowest rank.
std::vector<double> milliseconds(const std::vector<RankTimes>& ranks, const Pick& pick) {
  std::vector<double> result(ranks.front().steps.size(), 0.0);
  for (const RankTimes& rank : ranks) {
    for (size_t i = 0; i < result.size(); ++i) {
      result[i] = std::max(result[i], 1e3 * pick(rank.steps[i]));
    }
  }
  return result;
}

void add_times(Json& json, const std::vector<RankTimes>& ranks) {
  const auto add = [&](const std::string& name, const Pick& pick) {
    const std::vector<double> values = milliseconds(ranks, pick);
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
        median(milliseconds(ranks, [p](const StepTimes& t) { return t.phases[p]; }));
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

// Floats of optimizer state for a row.
double state_floats(const std::string& optimizer, double dim) {
  if (optimizer == "rowwise_adagrad") return 1;
  if (optimizer == "adagrad" || optimizer == "lars_sgd") return dim;
  if (optimizer == "adam" || optimizer == "lamb") return 2 * dim;
  if (optimizer.starts_with("partial_rowwise")) return dim + 1;
  return 0;
}

// The least traffic a step can do with: rows that are asked for again come from the cache if the
// distinct rows of a batch fit in it.
void add_bytes(Json& json, const BenchOptions& options, const std::vector<RankTimes>& ranks) {
  const std::vector<BenchTable>& tables = options.shape.tables;
  const double element = options.dtype == "float32" ? 4 : 2;
  double ids = 0;
  double unique = 0;
  double rows = 0;  // bytes, of every id
  double unique_rows = 0;
  double state = 0;
  double width = 0;
  for (size_t t = 0; t < tables.size(); ++t) {
    const auto dim = static_cast<double>(tables[t].dim);
    width += dim;
    for (const RankTimes& rank : ranks) {
      ids += rank.ids[t];
      unique += rank.unique_rows[t];
      rows += rank.ids[t] * element * dim;
      unique_rows += rank.unique_rows[t] * element * dim;
      state += rank.unique_rows[t] * 4 * state_floats(options.optimizer, dim);
    }
  }
  const double output = (options.output_dtype == "float32" ? 4.0 : 2.0) * width *
                        static_cast<double>(options.shape.batch);
  const double cache = static_cast<double>(std::max(0L, sysconf(_SC_LEVEL3_CACHE_SIZE)));
  const double forward = 8 * ids + (unique_rows <= cache ? unique_rows : rows) + output;
  const double backward = 8 * ids + output + 2 * unique_rows + 2 * state;
  json["bytes_min"] = static_cast<int64_t>(forward + backward);
  json["forward_bytes_min"] = static_cast<int64_t>(forward);
  json["backward_bytes_min"] = static_cast<int64_t>(backward);
  json["ids"] = static_cast<int64_t>(ids);
  json["unique_rows"] = static_cast<int64_t>(unique);
}

}  // namespace

std::string bench_report(const BenchOptions& options, const std::vector<RankTimes>& ranks) {
  Json json;
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
  json["id_distribution"] = options.ids;
  json["optimizer"] = options.optimizer;
  json["row_statistics"] = options.row_statistics;
  json["borrow"] = options.borrow;
  json["threads"] = options.threads;
  json["ranks"] = options.ranks;
  json["sharding"] = options.sharding;
  add_times(json, ranks);
  add_cpu(json, ranks.front());
  json["create_ms"] = 1e3 * ranks.front().create;
  json["destroy_ms"] = 1e3 * ranks.front().destroy;
  add_bytes(json, options, ranks);
  return json.dump();
}

}  // namespace shardrec::cli
