// Rates, latencies in their units, and how much faster more threads are.
#include "serve/serve_report.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "command/numbers.h"
#include "command/text_table.h"

namespace shardrec::cli {
namespace {

using Json = nlohmann::ordered_json;
using Align = TextTable::Align;

struct Quantile {
  const char* name;
  double share;
};
constexpr std::array<Quantile, 4> kQuantiles{
    {{"p50", 0.5}, {"p95", 0.95}, {"p99", 0.99}, {"max", 1.0}}};

std::string time_text(double seconds) {
  constexpr std::array kUnits{"us", "ms", "s"};
  double value = 1e6 * seconds;
  size_t unit = 0;
  for (; value >= 1000 && unit + 1 < kUnits.size(); ++unit) value /= 1000;
  return fixed(value, value < 10 ? 2 : value < 100 ? 1 : 0) + " " + kUnits[unit];
}

// Times the rate of one thread with the same calls; none where that was not measured.
std::optional<double> scaling_of(const ServeOptions& options, const ServeReport& report,
                                 const ServeResult& result) {
  const auto one = std::find_if(
      report.results.begin(), report.results.end(),
      [&](const ServeResult& each) { return each.call == result.call && each.threads == 1; });
  if (one == report.results.end() || result.threads == 1) return std::nullopt;
  const double rate = one->samples_per_second(options.batch);
  if (rate == 0) return std::nullopt;
  return result.samples_per_second(options.batch) / rate;
}

std::string rates_table(const ServeOptions& options, const ServeReport& report) {
  std::vector<TextTable::Column> columns{
      {"calls", Align::kLeft}, {"threads"}, {"samples/s"}, {"calls/s"}};
  for (const Quantile& quantile : kQuantiles) columns.push_back({quantile.name});
  if (options.scaling) columns.push_back({"scaling"});
  TextTable table(std::move(columns));
  for (const ServeResult& result : report.results) {
    const double rate = result.samples_per_second(options.batch);
    std::vector<std::string> row{
        name_of(result.call), std::to_string(result.threads),
        with_separators(static_cast<int64_t>(rate)),
        with_separators(static_cast<int64_t>(rate / static_cast<double>(options.batch)))};
    for (const Quantile& quantile : kQuantiles) {
      row.push_back(time_text(result.latencies.seconds(quantile.share)));
    }
    if (options.scaling) {
      const auto scaling = scaling_of(options, report, result);
      row.push_back(scaling ? fixed(*scaling, 2) : "");
    }
    table.add(std::move(row));
  }
  return table.text();
}

std::string refreshes_text(const ServeReport& report) {
  const Refresher::Counts& counts = report.refreshes;
  std::string text =
      with_separators(counts.refreshes) + (counts.refreshes == 1 ? " refresh, " : " refreshes, ") +
      with_separators(counts.swaps) + " of them to another checkpoint, the longest " +
      time_text(counts.longest) + "; answers came from step";
  std::set<int64_t> steps;
  for (const ServeResult& result : report.results) {
    steps.insert(result.steps.begin(), result.steps.end());
  }
  for (const int64_t step : steps) {
    text += (step == *steps.begin() ? " " : ", ") + with_separators(step);
  }
  return text + "\n";
}

}  // namespace

std::string serve_header(const ServeOptions& options, const ServeReport& report) {
  const ServedModel& model = report.model;
  const std::string what = options.directory.empty() ? "made-up tables" : options.directory;
  const char* kept = options.tables == "int8"     ? "in 8 bits"
                     : options.tables == "mapped" ? "mapped"
                                                  : "in memory";
  return what + ", step " + with_separators(report.step) + ": " + with_separators(model.tables) +
         (model.tables == 1 ? " table, " : " tables, ") + with_separators(model.rows) + " rows, " +
         bytes_text(report.table_bytes) + " " + kept +
         (model.scores > 0 ? "; with a dense half" : "; without a dense half") + "\nopened in " +
         time_text(report.open) + ", " + bytes_text(report.bytes_read) + " read\nbatches of " +
         with_separators(options.batch) + " samples, " + fixed(report.ids, 0) + " ids (" +
         options.pooling + " a bag, " + options.ids + "); " + fixed(options.seconds, 1) +
         " s a line\n\n";
}

std::string serve_rates(const ServeOptions& options, const ServeReport& report) {
  std::string text = rates_table(options, report);
  if (options.refresh_every > 0) text += "\n" + refreshes_text(report);
  return text;
}

std::string serve_json(const ServeOptions& options, const ServeReport& report) {
  Json json;
  json["version"] = 1;
  if (options.directory.empty()) {
    json["sizes"] = options.sizes;
  } else {
    json["directory"] = options.directory;
  }
  json["step"] = report.step;
  json["tables"] = report.model.tables;
  json["rows"] = report.model.rows;
  json["served_tables"] = options.tables;
  json["table_bytes"] = report.table_bytes;
  json["bytes_read"] = report.bytes_read;
  json["open_ms"] = 1e3 * report.open;
  json["dense_columns"] = report.model.dense_columns;
  json["scores"] = report.model.scores;
  json["batch"] = options.batch;
  json["pooling"] = options.pooling;
  json["id_distribution"] = options.ids;
  json["ids"] = report.ids;
  json["results"] = Json::array();
  for (const ServeResult& result : report.results) {
    Json line;
    line["call"] = name_of(result.call);
    line["threads"] = result.threads;
    line["seconds"] = result.seconds;
    line["calls"] = result.latencies.count();
    line["samples_per_second"] = result.samples_per_second(options.batch);
    for (const Quantile& quantile : kQuantiles) {
      line[std::string(quantile.name) + "_ms"] = 1e3 * result.latencies.seconds(quantile.share);
    }
    const auto scaling = scaling_of(options, report, result);
    line["scaling"] = scaling ? Json(*scaling) : Json();
    line["steps"] = result.steps;
    json["results"].push_back(std::move(line));
  }
  json["refreshes"] = report.refreshes.refreshes;
  json["swaps"] = report.refreshes.swaps;
  json["longest_refresh_ms"] = 1e3 * report.refreshes.longest;
  return json.dump();
}

std::string serve_round_json(const ServeOptions& options, const ServeLoad& load,
                             const ServeResult& result) {
  Json json;
  json["version"] = 1;
  json["call"] = name_of(result.call);
  json["threads"] = result.threads;
  json["served_tables"] = options.tables;
  json["batch"] = options.batch;
  json["steps"] = result.latencies.count();
  const double per_call = 1e3 / static_cast<double>(std::max<int64_t>(1, result.latencies.count()));
  json["step_ms_median"] = 1e3 * result.latencies.seconds(0.5);
  json["step_ms_min"] = 1e3 * result.latencies.least();
  json["rate_ms"] = per_call * result.seconds;  // of a call, over the calls of all threads
  json["cpu_ms"] = per_call * result.cpu;       // of a call
  json["samples_per_second"] = result.samples_per_second(options.batch);
  json["cpu_over_wall"] = result.seconds > 0 ? result.cpu / result.seconds : 0;
  json["ids"] = load.ids();
  json["unique_rows"] = load.unique_rows();
  return json.dump();
}

}  // namespace shardrec::cli
