// What `bench sync` was asked to measure. The same on all ranks; read only while they run.
#pragma once

#include <cstdint>
#include <string>

#include "bench/bench_ids.h"
#include "launch/devices.h"

namespace shardrec::cli {

struct SyncBenchOptions {
  int64_t tables = 8;
  int64_t rows = 1000000;
  int64_t dim = 64;
  std::string pooling = "20";
  std::string dtype = "float32";
  std::string ids = "uniform";
  std::string optimizer = "rowwise_adagrad";
  std::string sharding = "table_wise";
  int threads = 0;    // per rank; 0 before it is known: processors / ranks
  int batches = 6;    // that rotate
  int64_t steps = 1;  // between two syncs
  int64_t syncs = 5;  // of each kind
  int ranks = 2;
  int sharding_group_size = 1;
  std::string engine = "local";
  std::string device = "cpu";
  TablesOn tables_on;  // what device means here
  uint64_t seed = 7;
  BenchShape shape;  // made of the above; batch: of all ranks together
};

inline RankGroup group_of(const SyncBenchOptions& options) {
  return {.ranks = options.ranks, .ranks_per_node = options.ranks, .engine = options.engine};
}

}  // namespace shardrec::cli
