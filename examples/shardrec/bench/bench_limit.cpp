// The least traffic of a step, and the probed rates that it is divided by.
#include "bench/bench_limit.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <shardrec/shardrec.hpp>
#include <string>
#include <tuple>

namespace shardrec::cli {
namespace {

double element_bytes(const std::string& dtype) { return dtype == "float32" ? 4 : 2; }

// Floats of optimizer state for a row.
double state_floats(const std::string& optimizer, double dim) {
  if (optimizer == "rowwise_adagrad") return 1;
  if (optimizer == "adagrad" || optimizer == "lars_sgd") return dim;
  if (optimizer == "adam" || optimizer == "lamb") return 2 * dim;
  if (optimizer.starts_with("partial_rowwise")) return dim + 1;
  return 0;
}

double ratio(double a, double b) { return std::max(a, b) / std::max(1.0, std::min(a, b)); }

// Adds the time of some bytes; unknown once one of the bandwidths is.
void add_time(std::optional<double>& seconds, double bytes, std::optional<double> gb_per_second) {
  if (!gb_per_second) seconds.reset();
  if (seconds) *seconds += bytes / (1e9 * *gb_per_second);
}

}  // namespace

std::optional<ProbedMemory> ProbedMemory::cached() {
  const auto json = find_probe_cached_json();
  if (!json) return std::nullopt;
  return ProbedMemory(*json);
}

ProbedMemory ProbedMemory::of_device(int64_t device) {
  return ProbedMemory(probe_json("cuda:" + std::to_string(device)));
}

ProbedMemory::ProbedMemory(const std::string& json) {
  const auto profile = nlohmann::json::parse(json);
  const auto& machine = profile.at("machine");
  of_device_ = machine.contains("device");
  cache_bytes_ = machine.at(of_device_ ? "l2_bytes" : "l3_bytes");
  for (const auto& row : profile.at("rows")) {
    rates_.push_back({.gather = row.at("access") == "gather",
                      .row_bytes = row.at("row_bytes"),
                      .bag_length = row.at("bag_length"),
                      .threads = row.value("threads", 0),
                      .gb_per_second = row.at("gb_per_second")});
  }
  for (const auto& copy : profile.value("copies", nlohmann::json::array())) {
    const bool own = !of_device_ || (copy.at("from") == "device" && copy.at("to") == "device");
    if (!own) continue;
    copies_.push_back(
        {.threads = copy.value("threads", 0), .gb_per_second = copy.at("gb_per_second")});
  }
}

std::optional<double> ProbedMemory::gather(double row_bytes, double bag_length, int threads) const {
  const Rate* nearest = nullptr;
  const auto farness = [&](const Rate& rate) {
    return std::tuple(ratio(rate.bag_length, bag_length), ratio(rate.row_bytes, row_bytes));
  };
  for (const Rate& rate : rates_) {
    if (!rate.gather || (rate.threads != threads && !of_device_)) continue;
    if (nearest == nullptr || farness(rate) < farness(*nearest)) nearest = &rate;
  }
  return nearest == nullptr ? std::nullopt : std::optional(nearest->gb_per_second);
}

std::optional<double> ProbedMemory::update(double row_bytes, int threads) const {
  if (of_device_) return gather(row_bytes, 1, threads);
  const Rate* nearest = nullptr;
  for (const Rate& rate : rates_) {
    if (rate.gather || rate.threads != threads) continue;
    if (nearest == nullptr ||
        ratio(rate.row_bytes, row_bytes) < ratio(nearest->row_bytes, row_bytes))
      nearest = &rate;
  }
  return nearest == nullptr ? std::nullopt : std::optional(nearest->gb_per_second);
}

std::optional<double> ProbedMemory::copy(int threads) const {
  for (const CopyRate& rate : copies_) {
    if (of_device_ || rate.threads == threads) return rate.gb_per_second;
  }
  return std::nullopt;
}

LeastTraffic least_traffic(const BenchOptions& options, const std::vector<double>& ids,
                           const std::vector<double>& unique_rows, const ProbedMemory* probed) {
  const std::vector<BenchTable>& tables = options.shape.tables;
  const double element = element_bytes(options.dtype);
  const auto row_bytes = [&](size_t t) { return element * static_cast<double>(tables[t].dim); };
  double different = 0;
  for (size_t t = 0; t < tables.size(); ++t) different += unique_rows[t] * row_bytes(t);
  // The C library tells of all third-level caches of a package together.
  const double cache = probed != nullptr && probed->cache_bytes() > 0
                           ? probed->cache_bytes()
                           : static_cast<double>(std::max(0L, sysconf(_SC_LEVEL3_CACHE_SIZE)));
  const std::vector<double>& fetched = different <= cache ? unique_rows : ids;

  LeastTraffic least;
  const bool has_limit = probed != nullptr && (options.ranks == 1 || probed->of_device());
  if (has_limit) least.begin_seconds = least.forward_seconds = least.backward_seconds = 0;
  for (size_t t = 0; t < tables.size(); ++t) {
    const auto dim = static_cast<double>(tables[t].dim);
    const double index = 8 * ids[t];
    const double output =
        element_bytes(options.output_dtype) * dim * static_cast<double>(options.shape.batch);
    const double state = 4 * state_floats(options.optimizer, dim);
    const double forward = index + fetched[t] * row_bytes(t) + output;
    const double backward = index + output + 2 * unique_rows[t] * (row_bytes(t) + state);
    least.begin_bytes += index;
    least.forward_bytes += forward;
    least.backward_bytes += backward;
    if (!has_limit) continue;
    add_time(least.begin_seconds, index, probed->copy(options.threads));
    add_time(least.forward_seconds, forward,
             probed->gather(row_bytes(t), options.shape.lengths.mean(), options.threads));
    add_time(least.backward_seconds, backward, probed->update(row_bytes(t), options.threads));
  }
  const auto devices =
      static_cast<double>(std::max<int64_t>(1, options.tables_on.devices_of(group_of(options))));
  for (auto* seconds : {&least.begin_seconds, &least.forward_seconds, &least.backward_seconds}) {
    if (*seconds) **seconds /= devices;
  }
  return least;
}

}  // namespace shardrec::cli
