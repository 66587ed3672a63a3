// What `bench` was asked to measure. The same on all ranks; read only while they run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/bench_ids.h"
#include "launch/devices.h"

namespace shardrec::cli {

struct BenchOptions {
  std::string name = "bench lookup";  // or "bench step"
  int64_t tables = 8;                 // of one size: what `sizes` replaces
  int64_t rows = 1000000;
  int64_t dim = 64;
  std::vector<std::string> sizes;  // COUNTxROWSxDIM, in this order
  std::string pooling = "20";
  std::string dtype = "float32";
  std::string output_dtype = "float32";
  std::string ids = "uniform";
  std::string optimizer = "rowwise_adagrad";
  std::string row_statistics = "row";
  bool borrow = true;
  int threads = 0;  // per rank; 0 before it is known: processors / ranks
  int batches = 6;  // that rotate, so that no step finds its rows in the cache
  double seconds = 3;
  bool serve = false;
  std::string report;  // file for a page about it
  bool json = false;   // says what is so without it
  bool text = false;   // a table for people in place of the line of JSON
  int ranks = 1;
  int ranks_per_node = 0;  // 0: all on one node
  std::string engine = "local";
  std::string device = "cpu";
  std::string device_wait = "sleep";
  TablesOn tables_on;  // what device means here
  std::string forward_compression = "none";
  std::string backward_compression = "none";
  std::string sharding = "table_wise";
  std::string replication = "auto";
  std::string balance = "bytes";
  uint64_t seed = 7;
  BenchShape shape;  // made of the above; batch: of all ranks together
};

inline RankGroup group_of(const BenchOptions& options) {
  return {
      .ranks = options.ranks, .ranks_per_node = options.ranks_per_node, .engine = options.engine};
}

}  // namespace shardrec::cli
