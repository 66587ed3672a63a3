// What ranks leave of the processors, shared among those who read.
#include "train/parse_share.h"

#include <algorithm>

#include "launch/engines.h"

namespace shardrec::cli {
namespace {

// The reader thread itself is then the limit.
constexpr int kMostThreads = 16;

}  // namespace

int parse_threads(const TrainOptions& options, int (*processors)()) {
  if (options.parse_threads > 0) return options.parse_threads;
  if (!options.layers_on_device && options.threads == 0) return 1;
  const bool processes = in_processes(options.engine);
  const int ranks = processes ? options.ranks_per_node : options.ranks;
  const int idle = processors() - ranks * (options.layers_on_device ? 1 : options.threads);
  return std::clamp(processes ? idle / ranks : idle, 1, kMostThreads);
}

}  // namespace shardrec::cli
