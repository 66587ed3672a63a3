// What `bench dense` was asked to measure. The same on all ranks; read only while they run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/devices.h"

namespace shardrec::cli {

struct DenseBenchOptions {
  std::string layers = "512-1024-1024-512-1";
  std::vector<int64_t> widths;  // made of it: of the input, then of each layer's output
  int64_t batch = 128;          // of all ranks together
  std::string optimizer = "sgd";
  double learning_rate = 1e-3;
  std::string precision = "float32";
  std::string dense = "ddp";  // how ranks keep the layers
  std::string fsdp_strategy = "full_shard";
  int fsdp_prefetch = 1;
  bool overlap = true;  // gradients travel during the backward, else all of them after it
  std::optional<bool> ddp_thread;  // exchanges during the backward; none: the library chooses
  int threads = 0;                 // per rank; 0 before it is known: processors / ranks
  int batches = 6;                 // that rotate
  double seconds = 3;
  bool serve = false;
  std::string report;  // file for a page about it
  int ranks = 1;
  std::string engine = "local";
  std::string device = "cpu";
  TablesOn layers_on;  // what device means here
  uint64_t seed = 7;
};

inline RankGroup group_of(const DenseBenchOptions& options) {
  return {.ranks = options.ranks, .ranks_per_node = options.ranks, .engine = options.engine};
}

// "512-1024-1" as numbers; throws UserError.
std::vector<int64_t> parse_layers(const std::string& text);

}  // namespace shardrec::cli
