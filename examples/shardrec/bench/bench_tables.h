// One rank of a benchmark: its tables, its share of the batches, and one timed step.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <shardrec/shardrec.hpp>
#include <utility>
#include <vector>

#include "bench/bench_options.h"

namespace shardrec::cli {

// Where a step's time goes, by the collection's own clocks; in the library's order.
inline constexpr std::array<std::pair<const char*, shardrec_collection_stat>, 8> kBenchPhases{{
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

struct StepTimes {  // seconds
  double begin = 0;
  double forward = 0;   // begin and forward: with the validation of the batch
  double backward = 0;  // set_gradient and backward, with the building of the index plan
  double cpu = 0;       // of the whole process, from this rank's begin to the end of its backward
  BenchPhases phases{};
};

// Bytes that begin a cache line, as hosts keep their matrices.
template <typename T>
struct LineAllocator {
  using value_type = T;
  LineAllocator() = default;
  template <typename U>
  explicit LineAllocator(const LineAllocator<U>& /*other*/) {}
  T* allocate(size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t{64}));
  }
  void deallocate(T* memory, size_t /*count*/) noexcept {
    ::operator delete(memory, std::align_val_t{64});
  }
  bool operator==(const LineAllocator& /*other*/) const = default;
};
using LineBytes = std::vector<std::byte, LineAllocator<std::byte>>;

class BenchRank {
 public:
  // Collective: makes the tables and the batches that rotate.
  BenchRank(const BenchOptions& options, Comm& comm, int rank);

  // Step `number`, begun by all ranks together. Collective.
  StepTimes step(int64_t number);

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
  int64_t size_;       // samples of this rank
  int64_t width_ = 0;  // columns of the output
  double started_;     // when the tables began to be made
  Collection tables_;
  Lookup lookup_;
  double create_seconds_;
  std::vector<BenchBatch> batches_;
  std::vector<double> ids_;
  std::vector<double> unique_rows_;
  LineBytes out_;
  LineBytes gradient_;
};

}  // namespace shardrec::cli
