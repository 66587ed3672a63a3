// generate: writes a click log with planted weights, and a description of it beside.
#include <iostream>
#include <memory>

#include "command/commands.h"
#include "command/numbers.h"
#include "command/progress_line.h"
#include "command/text_table.h"
#include "data/best_auc.h"
#include "data/click_log.h"
#include "data/line_sink.h"
#include "data/planted.h"
#include "data/planted_meta.h"

namespace shardrec::cli {
namespace {

struct GenerateOptions {
  int64_t rows = 1000000;
  uint64_t seed = 1;
  std::string output;
};

std::string describe(const GenerateOptions& options, const PlantedClicks& clicks,
                     const PlantedResult& result) {
  const PlantedParameters& parameters = clicks.parameters();
  TextTable table({{"parameter", TextTable::Align::kLeft}, {"value", TextTable::Align::kLeft}});
  table.add({"rows", with_separators(result.rows)});
  table.add({"seed", std::to_string(options.seed)});
  std::string values;
  for (const auto& column : clicks.columns()) values += std::to_string(column.weights.size()) + " ";
  table.add({"values of C1..C26", values});
  table.add({"value frequencies", "Zipf " + fixed(parameters.zipf, 2)});
  table.add({"value weights", "N(0, " + fixed(parameters.value_deviation, 2) + ")"});
  std::string means;
  std::string weights;
  for (const auto& dense : clicks.dense()) {
    means += fixed(dense.mean, 4) + "/" + fixed(dense.deviation, 4) + " ";
    weights += fixed(dense.weight, 4) + " ";
  }
  table.add({"I1..I13", "floor(exp(N(mu, 1))), mu = 1, 1.25, ... 4"});
  table.add({"log1p mean/deviation", means});
  table.add({"dense weights", "N(0, " + fixed(parameters.dense_deviation, 2) + "): " + weights});
  std::string pairs;
  for (const auto& pair : parameters.pairs) {
    pairs += "C" + std::to_string(pair.first + 1) + " x C" + std::to_string(pair.second + 1) +
             " * " + fixed(pair.coefficient, 2) + "  ";
  }
  table.add({"interactions", pairs});
  table.add({"missing", fixed(parameters.missing, 2)});
  table.add({"intercept", fixed(clicks.intercept(), 6)});
  table.add({"click rate", fixed(result.click_rate, 6)});
  table.add({"best reachable AUC", fixed(result.best_auc, 6)});
  table.add({"... on the test rows of seed 0", fixed(result.best_auc_test, 6)});
  return table.text();
}

void write_rows(const GenerateOptions& options, const PlantedClicks& clicks, BestAuc& all,
                BestAuc& test) {
  LineSink sink(options.output);
  ProgressLine progress("generating", true);
  std::string text;
  constexpr size_t kFlush = size_t{1} << 20;
  for (int64_t i = 0; i < options.rows; ++i) {
    const PlantedRow row = clicks.row(i);
    clicks.append_line(row, text);
    all.add(row.probability, row.click);
    if (is_test_row(0, static_cast<uint64_t>(i))) test.add(row.probability, row.click);
    if (text.size() >= kFlush) {
      sink.write(text);
      text.clear();
      progress.show(static_cast<double>(i + 1) / static_cast<double>(options.rows),
                    with_separators(i + 1) + " rows");
    }
  }
  sink.write(text);
  sink.finish();
}

int generate(const GenerateOptions& options) {
  const PlantedClicks clicks(options.seed);
  BestAuc all;
  BestAuc test;
  write_rows(options, clicks, all, test);

  PlantedResult result;
  result.rows = options.rows;
  result.best_auc = all.value(SHARDREC_METRIC_AUC);
  result.best_auc_test = test.value(SHARDREC_METRIC_AUC);
  result.click_rate = options.rows > 0 ? all.value(SHARDREC_METRIC_CTR) : 0;
  const bool to_stdout = options.output == "-";
  std::ostream& report = to_stdout ? std::cerr : std::cout;
  report << describe(options, clicks, result);
  if (!to_stdout) {
    write_planted_meta(planted_meta_path(options.output), options.seed, clicks, result);
    report << "All numbers, the weight of each value too: " << planted_meta_path(options.output)
           << "\n";
  }
  report.flush();
  return 0;
}

}  // namespace

Run add_generate(CLI::App& app) {
  auto options = std::make_shared<GenerateOptions>();
  CLI::App* command = app.add_subcommand(
      "generate", "Write a click log in Criteo's TSV format with planted weights.");
  command->add_option("--rows", options->rows, "Rows to write")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "The same seed gives the same bytes")
      ->capture_default_str();
  command
      ->add_option(
          "--output", options->output,
          "File (gzip format where its name ends with .gz), or - for standard output; a file "
          "gets FILE.meta.json beside it")
      ->required();
  return [options] { return generate(*options); };
}

}  // namespace shardrec::cli
