// A small model in training, all of which goes into checkpoints: three tables of different dtypes
// and optimizers, a stack of layers, parameters of the host's in a DDP handle, and the position in
// the data, which each rank keeps for itself.
//
// Deterministic: what it holds after a number of steps depends on that number, on how many ranks
// there are and on how many hold one replica.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "shardrec/shardrec.hpp"

namespace shardrec::checkpoint_faults {

struct Shape {
  int ranks = 2;
  int sharding = 2;  // ranks that hold one replica; all: no mesh
  std::string text() const {
    return std::to_string(ranks) + " ranks, " + std::to_string(sharding) + " per replica";
  }
};

class Training {
 public:
  // keep_last 0: all checkpoints stay.
  Training(Comm& comm, const Shape& shape, const std::string& root, int64_t keep_last);

  // Opens the newest checkpoint, or that of a step, and loads it. False: there is none.
  bool load(int64_t step = -1);
  // The same; throws std::runtime_error when the position in the data is not that of the step.
  bool resume(int64_t step = -1);

  void train();  // a step
  int64_t steps() const { return steps_; }
  void commit();        // as number steps()
  void commit_delta();  // the same, of what has changed since the last commit
  // The same two in the background, while a step is taken beyond it.
  void commit_while_training();
  void commit_delta_while_training();

  // Of the tables with their states, of the layers' and the host's parameters, and of the number of
  // steps. Collective; the same on all ranks.
  uint64_t digest();
  // Whether the tables refuse calls because a load has filled them in part. Collective.
  bool filled_in_part();

  Checkpoint& checkpoint() { return *checkpoint_; }
  Collection& tables() { return *tables_; }

 private:
  Comm& comm_;
  std::optional<Mesh> mesh_;
  std::optional<Collection> tables_;
  std::optional<Lookup> lookup_;
  std::optional<Mlp> layers_;
  std::optional<Ddp> layers_ddp_;
  std::vector<float> bias_ = {0.25F};
  std::vector<float> bias_gradient_ = {0};
  std::optional<Ddp> bias_ddp_;
  std::optional<Checkpoint> checkpoint_;
  int64_t steps_ = 0;
};

// The digests after 0, 1, ... steps of a training that nothing has happened to.
const std::vector<uint64_t>& reference_digests(const Shape& shape);

// Runs body(comm, rank) on threads; returns what the ranks threw, a line each.
std::string run_ranks(int ranks, const std::function<void(Comm&, int)>& body);

// SHARDREC_OK or what the call has thrown.
shardrec_status status_of(const std::function<void()>& call, std::string* sentence = nullptr);

}  // namespace shardrec::checkpoint_faults
