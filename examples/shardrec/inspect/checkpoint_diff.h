// What differs between two checkpoints: by checksums where both cut a table alike, else, and for the
// largest difference, by values. Memory: one table of each.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <shardrec/shardrec.hpp>
#include <string>
#include <vector>

namespace shardrec::cli {

// A checkpoint that is open, on a communicator of one rank.
struct OpenCheckpoint {
  Comm& comm;
  std::string directory;
  Checkpoint handle;
  int64_t step = 0;
};
// step -1: the newest.
OpenCheckpoint open_checkpoint(Comm& comm, const std::string& directory, int64_t step);
// Its list of what it holds (Checkpoint::contents_json), parsed.
nlohmann::json contents_of(const OpenCheckpoint& checkpoint);

struct Difference {
  std::string what;                 // "table", "layers", "parameters" or "tensor"
  std::string name;                 // of it
  std::string part;                 // "weights", "state/sum", "layer 0 W", "rank 1"; may be empty
  std::string verdict;              // "differs", "other shape", "only in A", "only in B"
  std::optional<double> largest{};  // absolute difference of two elements
};

struct Comparison {
  std::vector<Difference> differences;
  int64_t compared = 0;  // parts of tables, tensors of layers and of the host, in both
  [[nodiscard]] bool same() const { return differences.empty(); }
};

// Stops with CANCELLED when it is interrupted.
Comparison compare(const OpenCheckpoint& a, const OpenCheckpoint& b);

}  // namespace shardrec::cli
