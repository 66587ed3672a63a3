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
  const int idle = processors() - options.ranks * (options.layers_on_device ? 1 : options.threads);
  return std::clamp(in_processes(options.engine) ? idle / options.ranks : idle, 1, kMostThreads);
}

}  // namespace shardrec::cli
