// What `serve-bench` was asked to measure; read only while its threads run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/bench_ids.h"

namespace shardrec::cli {

struct ServeOptions {
  std::string directory;           // empty: tables of `sizes`
  std::vector<std::string> sizes;  // COUNTxROWSxDIM
  int64_t step = -1;
  std::string collection;
  std::string tables = "memory";
  std::string calls = "all";
  int threads = 0;  // 0 before it is known: processors
  double seconds = 3;
  int64_t batch = 128;
  std::string pooling = "1..20";
  std::string ids = "uniform";
  int batches = 64;          // of each thread, that rotate
  double refresh_every = 0;  // seconds; 0: never
  bool scaling = false;
  bool json = false;
  bool serve = false;
  uint64_t seed = 7;
};

}  // namespace shardrec::cli
