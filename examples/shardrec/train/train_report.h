// What `train` tells at its end: quality, time by phase, and the line of JSON.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/phase_times.h"
#include "train/rank_trainer.h"
#include "train/train_details.h"
#include "train/train_mesh.h"
#include "train/train_options.h"

namespace shardrec::cli {

// The library's own times inside the phases of the tables.
struct TableStat {
  shardrec_stat stat;
  const char* name;
};
inline constexpr std::array<TableStat, 8> kTableStats{{
    {SHARDREC_STAT_SECONDS_ROUTE, "route"},
    {SHARDREC_STAT_SECONDS_INPUT_EXCHANGE, "input exchange"},
    {SHARDREC_STAT_SECONDS_INDEX_PLAN, "index plan"},
    {SHARDREC_STAT_SECONDS_LOOKUP, "lookup"},
    {SHARDREC_STAT_SECONDS_OUTPUT_EXCHANGE, "output exchange"},
    {SHARDREC_STAT_SECONDS_GRADIENT, "scale gradients"},
    {SHARDREC_STAT_SECONDS_GRADIENT_EXCHANGE, "gradient exchange"},
    {SHARDREC_STAT_SECONDS_UPDATE, "update"},
}};

struct RankReport {
  std::array<double, kPhaseNames.size()> phases{};
  std::array<double, kTableStats.size()> table_seconds{};
  std::vector<double> first_losses;
};

// As numbers, for the rank that prints.
std::vector<double> numbers_of(const RankReport& report);
RankReport report_from(const std::vector<double>& numbers);

struct TrainResult {
  std::vector<RankReport> ranks;
  std::optional<MeshGroups> mesh;
  Quality test;
  bool labelled = true;  // else test has samples only
  std::optional<double> best_auc;
  bool interrupted = false;
  TrainPosition position;  // of the whole run
  int64_t samples_trained = 0;
  double seconds_trained = 0;
  double seconds = 0;
  int64_t unreadable_lines = 0;
  std::string load_report;              // JSON of the library; empty without --load-rules
  std::optional<TrainDetails> details;  // with --report
};

// AUC of the true probabilities on the test rows, where the data come from `generate` and are what
// their .meta.json says (as many test rows and clicks were seen).
std::optional<double> planted_best_auc(const TrainOptions& options, const Quality& test);

// The line of --json, without a newline.
std::string json_line(const TrainOptions& options, const TrainResult& result);

// line: what json_line has given; empty: not asked for.
void print_report(const TrainOptions& options, const TrainResult& result, const std::string& line);

}  // namespace shardrec::cli
