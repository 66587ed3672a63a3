// The least traffic that a step of a benchmark can do with, and how long it takes at the bandwidth
// that `shardrec probe` found for such rows: what measured times are held against.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/bench_options.h"

namespace shardrec::cli {

// What a probe found of the memory that the tables are in (shardrec/probe.h).
class ProbedMemory {
 public:
  // This machine's, as the library keeps it. Empty: nothing was probed, or what was kept is not used.
  static std::optional<ProbedMemory> cached();
  // Probes a device, in about a second.
  static ProbedMemory of_device(int64_t device);
  // json: of shardrec_probe_json.
  explicit ProbedMemory(const std::string& json);

  // GB/s of the fastest way with exactly so many threads, of the nearest bag length (bags are
  // ignored for updates), then the nearest row size; empty: not probed with so many threads. A device has
  // no threads, and what it gathers is what its updates are held against.
  [[nodiscard]] std::optional<double> gather(double row_bytes, double bag_length,
                                             int threads) const;
  [[nodiscard]] std::optional<double> update(double row_bytes, int threads) const;
  // Of a copy from this memory to itself, read and written bytes together; empty as above.
  [[nodiscard]] std::optional<double> copy(int threads) const;
  [[nodiscard]] bool of_device() const { return of_device_; }
  // Of the cache that is shared by all of its processors; 0: unknown.
  [[nodiscard]] double cache_bytes() const { return cache_bytes_; }

 private:
  struct Rate {
    bool gather;
    double row_bytes;
    double bag_length;
    int threads;  // 0: a device's
    double gb_per_second;
  };
  struct CopyRate {
    int threads;  // 0: a device's
    double gb_per_second;
  };
  std::vector<Rate> rates_;
  std::vector<CopyRate> copies_;
  double cache_bytes_ = 0;
  bool of_device_ = false;
};

struct LeastTraffic {
  double begin_bytes = 0;
  double forward_bytes =
      0;  // of begin too, and of the lookup, which is all of the forward but its routing
  double backward_bytes = 0;  // of the update too, which is all of the backward but its index plan
  // At the probed bandwidth; empty: it was not probed with the benchmark's threads, or the tables
  // are on several ranks of the CPU, whose exchange no probe knows. Ranks on devices are held against what the memory
  // of all their devices can do together, each as the first one's: the time of their exchange counts as lost.
  std::optional<double> begin_seconds;
  std::optional<double> forward_seconds;
  std::optional<double> backward_seconds;
};

// ids and unique_rows: per table, of a step. probed: null where there is none.
//   begin     8 bytes per id, as a copy reads them.
//   forward   8 bytes per id, the rows looked up, the outputs. Rows that are asked for again come
//             from the cache if the different rows of a step fit in it.
//   backward  8 bytes per id, the gradients of the outputs, the different rows and their optimizer
//             states twice.
LeastTraffic least_traffic(const BenchOptions& options, const std::vector<double>& ids,
                           const std::vector<double>& unique_rows, const ProbedMemory* probed);

}  // namespace shardrec::cli
