// Lists of commands that come again, as CUDA graphs. A list is known by all its bytes: one of another shape, or with
// other memory, is another list.
//
// Thread rule: one thread at a time.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardrec::compute::cuda {

// Runs the command whose values begin at `words`, and moves on to the next one.
using CommandRunner = cudaError_t (*)(const uint64_t*& words, cudaStream_t stream);

// Each command: its runner, then the words that this reads.
struct Commands {
  std::vector<uint64_t> words;
  int64_t count = 0;
};

class CommandGraphs {
 public:
  CommandGraphs() = default;
  ~CommandGraphs();
  CommandGraphs(const CommandGraphs&) = delete;
  CommandGraphs& operator=(const CommandGraphs&) = delete;

  // Enqueues the commands, one by one, or as the graph of an equal list, and removes them from the list: where one
  // fails, those before it.
  cudaError_t run(Commands& list, cudaStream_t stream);

 private:
  struct Graph {
    std::vector<uint64_t> words;
    size_t hash = 0;
    cudaGraphExec_t executable = nullptr;
    int64_t launches = 0;  // of kernels
    uint64_t last_run = 0;
  };

  // Steps take turns with memory, four at most in each of their phases (host/arguments.h).
  static constexpr size_t kMost = 48;
  static constexpr size_t kRemembered = 96;   // lists that no graph was made of
  static constexpr uint64_t kLongAgo = 1024;  // that many lists ago, a graph was in use

  // Null: the list is run command by command.
  Graph* graph_of(const Commands& list, cudaStream_t stream);
  Graph* find(const Commands& list, size_t hash);
  // Did the list come before? From now on it did.
  bool came_before(size_t hash);
  // Null where all graphs that there is room for are in use; where CUDA makes none, and from then on.
  Graph* make(const Commands& list, size_t hash, cudaStream_t stream);
  Graph* keep(Graph graph);
  bool has_room() const;
  std::vector<Graph>::const_iterator longest_unused() const;

  std::vector<Graph> graphs_;
  std::array<size_t, kRemembered> hashes_{};
  size_t next_hash_ = 0;
  uint64_t runs_ = 0;
  bool makes_graphs_ = true;
};

}  // namespace shardrec::compute::cuda
