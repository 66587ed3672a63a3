// A checkpoint to serve where the user has none: tables of given sizes with random numbers, one
// pooled feature each, in a temporary folder.
#pragma once

#include <string>
#include <vector>

#include "bench/bench_ids.h"

namespace shardrec::cli {

class MadeUpCheckpoint {
 public:
  // Layers of a DLRM stand beside the tables where all have as many columns.
  explicit MadeUpCheckpoint(const std::vector<BenchTable>& tables);
  MadeUpCheckpoint(const MadeUpCheckpoint&) = delete;
  MadeUpCheckpoint& operator=(const MadeUpCheckpoint&) = delete;
  ~MadeUpCheckpoint();  // removes it; what is open, or mapped, stays readable

  [[nodiscard]] const std::string& directory() const { return directory_; }

 private:
  std::string directory_;
};

}  // namespace shardrec::cli
