// Recorded cases: NAME.json describes them, NAME.safetensors holds their arrays (format
// "shardrec-cases-1").
#pragma once

#include <cstdint>
#include <optional>
#include <shardrec/shardrec.hpp>
#include <string>
#include <vector>

#include "data/safetensors.h"
#include "replay/ddp_case.h"

namespace shardrec::cli {

struct CaseTable {
  std::string name;
  int64_t rows = 0;
  int64_t dim = 0;
  std::string dtype;
  std::string pooling;
  std::vector<std::string> features;
  std::string sharding;
  std::vector<Plan::Box> boxes;  // empty: not recorded
};

struct CaseOptimizer {
  std::string type;
  std::vector<double> learning_rates;  // one, or one per step
  std::optional<double> eps;
  std::optional<double> weight_decay;
  std::optional<double> max_gradient;
  std::optional<double> beta1;
  std::optional<double> beta2;
  std::optional<double> momentum;
  std::optional<double> eta;
  std::optional<double> max_norm;
  // Not recorded for optimizers whose formula has one kind of decay only.
  std::optional<std::string> weight_decay_mode;
  bool shard_statistics = false;
  std::vector<std::string> other_settings;  // names that no option of the library answers to

  [[nodiscard]] double learning_rate(int64_t step) const {
    return learning_rates.size() == 1 ? learning_rates[0]
                                      : learning_rates[static_cast<size_t>(step - 1)];
  }
};

struct RecordedCase {
  std::string name;
  int world_size = 1;
  int local_world_size = 1;
  // 2D parallel: replicas of the tables, each on a group of so many ranks, averaged after some
  // steps.
  int sharding_group_size = 1;
  std::string placement;
  std::vector<int64_t> sync_after;
  std::vector<CaseTable> tables;
  CaseOptimizer optimizer;
  bool mean_gradients = true;  // over the ranks; else summed
  int64_t batch_size = 0;      // per recorded rank
  int64_t steps = 0;
  double rtol = 0;
  double atol = 0;
  std::optional<DdpCase> ddp;  // of kind "ddp": without tables

  [[nodiscard]] bool replicas() const { return sharding_group_size != world_size; }
  [[nodiscard]] int64_t features() const;
  [[nodiscard]] int64_t width() const;  // columns of the output
  [[nodiscard]] int64_t global_batch() const { return batch_size * world_size; }
};

// UserError when the file is not what the format promises.
std::vector<RecordedCase> read_cases(const std::string& path);
std::string case_arrays_path(const std::string& path);  // NAME.safetensors for NAME.json

// One step's data of all recorded ranks, and the part of it that falls to global samples [first,
// last).
class CaseStep {
 public:
  CaseStep(const RecordedCase& recorded, const Safetensors& arrays, int64_t step);

  struct Part {
    std::vector<int64_t> lengths;  // feature-major
    std::vector<int64_t> values;
    std::vector<float> weights;   // empty: the case has none
    std::vector<float> gradient;  // [samples, width]
    std::vector<float> out;
  };
  [[nodiscard]] Part part(int64_t first, int64_t last) const;

 private:
  struct RankData {
    std::vector<int64_t> lengths;
    std::vector<size_t> bag_start;
    std::vector<int64_t> values;
    std::vector<float> weights;
    std::vector<float> gradient;
    std::vector<float> out;
  };
  int64_t features_;
  int64_t width_;
  int64_t batch_;
  std::vector<RankData> ranks_;
};

}  // namespace shardrec::cli
