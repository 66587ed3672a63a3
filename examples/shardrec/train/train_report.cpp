// How the end of a run is told: tables for people, one line of JSON.
#include "train/train_report.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "command/numbers.h"
#include "command/text_table.h"
#include "data/best_auc.h"
#include "data/planted_meta.h"

namespace shardrec::cli {
namespace {

struct Spread {
  double mean = 0;
  double most = 0;
};

template <typename F>
Spread over_ranks(const TrainResult& result, const F& seconds) {
  Spread spread;
  for (const RankReport& rank : result.ranks) {
    spread.mean += seconds(rank) / static_cast<double>(result.ranks.size());
    spread.most = std::max(spread.most, seconds(rank));
  }
  return spread;
}

std::string phase_table(const TrainResult& result) {
  TextTable table({{"phase", TextTable::Align::kLeft}, {"seconds"}, {"slowest rank"}, {"share"}});
  double total = 0;
  for (size_t i = 0; i < kPhaseNames.size(); ++i) {
    total += over_ranks(result, [&](const RankReport& rank) { return rank.phases[i]; }).mean;
  }
  for (size_t i = 0; i < kPhaseNames.size(); ++i) {
    const Spread spread =
        over_ranks(result, [&](const RankReport& rank) { return rank.phases[i]; });
    const double share = total > 0 ? 100 * spread.mean / total : 0;
    table.add(
        {kPhaseNames[i], fixed(spread.mean, 3), fixed(spread.most, 3), fixed(share, 1) + " %"});
  }
  for (size_t i = 0; i < kTableStats.size(); ++i) {
    const Spread spread =
        over_ranks(result, [&](const RankReport& rank) { return rank.table_seconds[i]; });
    table.add({std::string("  inside tables: ") + kTableStats[i].name, fixed(spread.mean, 3),
               fixed(spread.most, 3)});
  }
  return table.text();
}

std::vector<double> first_losses(const TrainResult& result) {
  std::vector<double> losses(result.ranks.front().first_losses.size(), 0.0);
  for (const RankReport& rank : result.ranks) {
    for (size_t i = 0; i < losses.size(); ++i) losses[i] += rank.first_losses[i];
  }
  return losses;
}

double samples_per_second(const TrainResult& result) {
  return result.seconds_trained > 0
             ? static_cast<double>(result.samples_trained) / result.seconds_trained
             : 0;
}

}  // namespace

std::vector<double> numbers_of(const RankReport& report) {
  std::vector<double> numbers(report.phases.begin(), report.phases.end());
  numbers.insert(numbers.end(), report.table_seconds.begin(), report.table_seconds.end());
  numbers.insert(numbers.end(), report.first_losses.begin(), report.first_losses.end());
  return numbers;
}

RankReport report_from(const std::vector<double>& numbers) {
  RankReport report;
  const auto phases = numbers.begin() + std::ssize(report.phases);
  const auto seconds = phases + std::ssize(report.table_seconds);
  std::copy(numbers.begin(), phases, report.phases.begin());
  std::copy(phases, seconds, report.table_seconds.begin());
  report.first_losses.assign(seconds, numbers.end());
  return report;
}

std::optional<double> planted_best_auc(const TrainOptions& options, const Quality& test) {
  if (options.format != "criteo" || test.samples == 0 || options.data.size() != 1)
    return std::nullopt;
  const std::string& data = options.data.front();
  const auto meta = read_planted_meta(data);
  if (!meta) return std::nullopt;
  const PlantedClicks clicks(meta->seed);
  BestAuc best;
  int64_t samples = 0;
  int64_t clicked = 0;
  for (int64_t i = 0; i < meta->rows; ++i) {
    if (!is_test_row(options.seed, static_cast<uint64_t>(i))) continue;
    const PlantedRow row = clicks.row(i);
    best.add(row.probability, row.click);
    ++samples;
    clicked += row.click ? 1 : 0;
  }
  const auto seen = static_cast<double>(test.samples) * test.click_rate;
  if (samples != test.samples || std::abs(seen - static_cast<double>(clicked)) > 0.5) {
    std::cerr << planted_meta_path(data) << " describes other data than " << data
              << "; the best reachable AUC is not known.\n";
    return std::nullopt;
  }
  return best.value(SHARDREC_METRIC_AUC);
}

std::string json_line(const TrainOptions& options, const TrainResult& result) {
  nlohmann::ordered_json json;
  json["version"] = 1;
  json["test_auc"] = nullptr;
  json["test_ne"] = nullptr;
  if (result.test.known) {
    json["test_auc"] = result.test.auc;
    json["test_ne"] = result.test.normalised_entropy;
  }
  if (result.best_auc) json["best_auc"] = *result.best_auc;
  json["samples_per_second"] = samples_per_second(result);
  json["seconds"] = result.seconds;
  json["train_samples"] = result.position.samples;
  json["steps"] = result.position.steps;
  json["test_samples"] = result.test.samples;
  json["unreadable_lines"] = result.unreadable_lines;
  json["interrupted"] = result.interrupted;
  json["ranks"] = options.ranks;
  json["sharding"] = options.sharding;
  json["seed"] = options.seed;
  if (result.mesh) {
    json["mesh"] = {{"sharding_group_size", options.sharding_group_size},
                    {"placement", options.placement},
                    {"sync_every", options.sync_every},
                    {"sync", options.sync},
                    {"sync_overlap", options.sync_overlap},
                    {"sharding_groups", result.mesh->sharding},
                    {"replica_groups", result.mesh->replica}};
  }
  if (!result.load_report.empty()) json["load"] = nlohmann::ordered_json::parse(result.load_report);
  json["first_losses"] = first_losses(result);
  if (result.details) add_details(options, result, json);
  return json.dump();
}

void print_report(const TrainOptions& options, const TrainResult& result, const std::string& line) {
  std::cout << "\n" << phase_table(result) << "\n";
  std::cout << with_separators(result.samples_trained) << " samples trained in "
            << fixed(result.seconds_trained, 2)
            << " s: " << with_separators(static_cast<int64_t>(samples_per_second(result)))
            << " samples/s; " << fixed(result.seconds, 2) << " s in all\n";
  if (!options.save.empty()) {
    std::cout << "saved to " << options.save << ", step " << with_separators(result.position.steps)
              << "\n";
  }
  if (result.interrupted) {
    std::cout << "stopped by an interrupt\n";
  } else if (result.test.known) {
    std::cout << "test: AUC " << fixed(result.test.auc, 5) << ", normalised entropy "
              << fixed(result.test.normalised_entropy, 5) << ", "
              << with_separators(result.test.samples) << " samples";
    if (result.best_auc) std::cout << "; best reachable AUC " << fixed(*result.best_auc, 5);
    std::cout << "\n";
  } else {
    std::cout << "test: " << with_separators(result.test.samples)
              << (result.labelled ? " samples, not both labels among them; no AUC\n"
                                  : " samples without labels\n");
  }
  if (!options.output.empty() && !result.interrupted) {
    std::cout << "predictions of the test samples: " << options.output << "\n";
  }
  if (!options.report.empty()) std::cout << "report: " << options.report << "\n";
  if (options.json) std::cout << line << "\n";
  std::cout << std::flush;
}

}  // namespace shardrec::cli
