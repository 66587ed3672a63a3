// FILE.meta.json beside a generated FILE: its seed, rows and every planted number, so that anybody
// can compute the probabilities and the best reachable AUC again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/planted.h"

namespace shardrec::cli {

struct PlantedMeta {
  uint64_t seed = 0;
  int64_t rows = 0;
  std::vector<int64_t> values;  // per column
};

struct PlantedResult {
  int64_t rows = 0;
  double click_rate = 0;
  double best_auc = 0;       // of the true probabilities, over all rows
  double best_auc_test = 0;  // over the test rows of split seed 0
};

std::string planted_meta_path(const std::string& data_path);
void write_planted_meta(const std::string& path, uint64_t seed, const PlantedClicks& clicks,
                        const PlantedResult& result);

// Nothing where there is no such file; UserError where there is one that cannot be understood.
std::optional<PlantedMeta> read_planted_meta(const std::string& data_path);

}  // namespace shardrec::cli
