// One rank of a benchmark: its tables, its share of the batches, and one timed step.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <shardrec/shardrec.hpp>
#include <utility>
#include <vector>

#include "bench/bench_options.h"
#include "bench/bench_tensors.h"

namespace shardrec::cli {

// Where a step's time goes, by the collection's own clocks; in the library's order.
inline constexpr std::array<std::pair<const char*, shardrec_stat>, 8> kBenchPhases{{
    {"route", SHARDREC_STAT_SECONDS_ROUTE},
    {"input_exchange", SHARDREC_STAT_SECONDS_INPUT_EXCHANGE},
    {"index_plan", SHARDREC_STAT_SECONDS_INDEX_PLAN},
    {"lookup", SHARDREC_STAT_SECONDS_LOOKUP},
    {"output_exchange", SHARDREC_STAT_SECONDS_OUTPUT_EXCHANGE},
    {"gradient", SHARDREC_STAT_SECONDS_GRADIENT},
    {"gradient_exchange", SHARDREC_STAT_SECONDS_GRADIENT_EXCHANGE},
    {"update", SHARDREC_STAT_SECONDS_UPDATE},
}};
using BenchPhases = std::array<double, kBenchPhases.size()>;

struct StepTimes {  // seconds; each until what was called for is over
  double begin = 0;
  double forward = 0;   // begin and forward: with the validation of the batch
  double backward = 0;  // set_gradient and backward, with the building of the index plan
  double cpu = 0;       // of the whole process, from this rank's begin to the end of its backward
  BenchPhases phases{};
};

class BenchRank {
 public:
  // Collective: makes the tables and the batches that rotate.
  BenchRank(const BenchOptions& options, Comm& comm, int rank);

  // Step `number`, begun by all ranks together. with_phases: on a device, the first such step starts its clock, which
  // takes time in all steps from then on. Collective.
  StepTimes step(int64_t number, bool with_phases);

  // Seconds that making the model, the plan and the tables took.
  [[nodiscard]] double create_seconds() const { return create_seconds_; }
  // Destroys the tables; nothing else may be called afterwards. Returns the seconds.
  double destroy();

  // Of this rank's batches, for each table; means over the batches that rotate.
  [[nodiscard]] const std::vector<double>& ids() const { return ids_; }
  [[nodiscard]] const std::vector<double>& unique_rows() const { return unique_rows_; }

 private:
  [[nodiscard]] BenchPhases phases() const;

  void make_batches(const BenchOptions& options, int rank);

  Comm& comm_;
  shardrec_dtype output_dtype_;
  int64_t device_;     // of the tables
  int64_t size_;       // samples of this rank
  int64_t width_ = 0;  // columns of the output
  double started_;     // when the tables began to be made
  Collection tables_;
  Lookup lookup_;
  double create_seconds_;
  std::vector<BenchBatch> batches_;
  std::vector<double> ids_;
  std::vector<double> unique_rows_;
  LineBytes out_bytes_;
  LineBytes gradient_bytes_;
  BenchTensors tensors_;
  std::vector<Vector> batch_ids_;  // of the batches that rotate
  std::vector<Vector> batch_lengths_;
  Matrix out_ = nullptr;
  Matrix gradient_ = nullptr;
};

}  // namespace shardrec::cli
