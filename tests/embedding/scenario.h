// Random training runs: a model, a plan for some number of ranks, batches and output gradients that
// are the same samples however they are dealt out to ranks.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "shardrec/shardrec.h"

namespace shardrec::test {

struct OptimizerSpec {
  shardrec_optimizer kind = SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD;
  double learning_rate = 0.1;
  double eps = 1e-3;
  double weight_decay = 0;
  shardrec_weight_decay decay_mode = SHARDREC_WEIGHT_DECAY_NONE;
  double max_gradient = 0;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double momentum = 0.9;
  double eta = 0.1;
  double max_norm = 0;
  double momentum_scale = 1;
  bool shard_statistics = false;

  // Does an update need sums over the row?
  bool has_sums() const;
  // Is each state one value per row?
  std::vector<bool> states_by_row() const;
};

struct TableSpec {
  int64_t rows = 1;
  int64_t dim = 1;
  shardrec_out_of_range out_of_range = SHARDREC_OUT_OF_RANGE_ERROR;
  shardrec_dtype dtype = SHARDREC_FLOAT32;
  shardrec_rounding rounding = SHARDREC_ROUNDING_NEAREST;
  std::optional<OptimizerSpec> optimizer = {};  // empty: the scenario's
};

struct FeatureSpec {
  int32_t table = 0;
  bool mean = false;
  bool sequence = false;
};

struct BoxSpec {
  int32_t rank = 0;
  int64_t row = 0;
  int64_t rows = 0;
  int64_t col = 0;
  int64_t cols = 0;
};

struct TablePlanSpec {
  bool replicated = false;
  std::vector<BoxSpec> boxes;
  shardrec_replication replication = SHARDREC_REPLICATION_SAMPLES;
};

// One sample of one step: a bag per feature and the gradient of its output row.
struct Sample {
  std::vector<std::vector<int64_t>> bags;   // by feature
  std::vector<std::vector<float>> weights;  // by feature
  std::vector<float> gradient;              // [width]
  // By feature: [ids * dim] for a sequence, else empty.
  std::vector<std::vector<float>> sequence_gradients = {};
};

struct Scenario {
  std::vector<TableSpec> tables;
  std::vector<FeatureSpec> features;
  OptimizerSpec optimizer;
  bool weighted = false;
  bool ids_are_32 = false;
  bool by_offsets = false;
  double divisor = 2;  // custom, so that it does not depend on the number of ranks
  int64_t seed = 0;
  std::vector<std::vector<Sample>> steps;  // the global batches
  std::vector<bool> accumulates;           // by step, missing: false
  // A table that is frozen in steps [freeze_from, freeze_to).
  int32_t frozen_table = -1;
  size_t freeze_from = 0;
  size_t freeze_to = 0;

  const OptimizerSpec& optimizer_of(size_t table) const {
    return tables[table].optimizer ? *tables[table].optimizer : optimizer;
  }
  bool accumulates_at(size_t step) const { return step < accumulates.size() && accumulates[step]; }
  bool frozen_at(size_t table, size_t step) const {
    return static_cast<int32_t>(table) == frozen_table && step >= freeze_from && step < freeze_to;
  }
  int64_t updates() const;  // steps that do not accumulate
  int64_t width() const;
  // First column of a pooled feature in output 0, worked out anew: tables in order, within them
  // features.
  int64_t column(size_t feature) const;
};

// How a rank's samples become a batch.
enum class BatchForm : uint8_t {
  kPlain,
  kVariableIdentity,  // batch sizes of features, every bag of its own
  kVariableUnique,    // ..., equal bags of a pooled feature given once
};

struct Deal {
  int ranks = 1;
  int ranks_per_node = 1;
  int replicas = 1;    // more than one: of a mesh, each with `ranks` ranks
  int sync_every = 1;  // steps, on a mesh; and after the last one
  shardrec_replica_sync sync = SHARDREC_REPLICA_SYNC_TOUCHED;         // on a mesh
  shardrec_placement placement = SHARDREC_PLACEMENT_INTRA_NODE_SYNC;  // likewise
  shardrec_divisor divisor = SHARDREC_DIVISOR_CUSTOM;                 // of Scenario::divisor
  int threads = 1;
  BatchForm form = BatchForm::kPlain;
  shardrec_dtype output_dtype = SHARDREC_FLOAT32;
  bool deduplicate = false;
  bool hierarchical = false;  // not with forward compression
  shardrec_compression forward_compression = SHARDREC_COMPRESSION_NONE;
  shardrec_compression backward_compression = SHARDREC_COMPRESSION_NONE;
  bool borrow = false;           // gradients stay there until backward, else they go at once
  bool weight_gradient = false;  // not with kVariableUnique
  uint64_t sends_early = 0;      // bits: see sends_early_in()
  bool look_up_all = false;      // at the end, every rank looks up all rows
  std::vector<TablePlanSpec> plan;
  std::vector<std::vector<int64_t>> share;  // by step: samples of each rank, in order

  int world() const { return ranks * replicas; }
  // Some of those that send early, and some that do not, take the step on the lookup's thread.
  bool in_background(size_t step, int rank) const {
    return sends_early != 0 && (step + 2 * static_cast<size_t>(rank)) % 3 == 0;
  }
  // Does a rank send its gradients ahead of backward? It must not matter.
  bool sends_early_in(size_t step, int rank) const {
    return (sends_early >> ((step * 5 + static_cast<size_t>(rank)) % 64) & 1) != 0;
  }
};

// How many of so many random scenarios are tried: a quarter of them where a sanitizer slows them
// down, whose errors are not those of one scenario.
constexpr int seeds(int number) { return SHARDREC_SANITIZED ? (number + 3) / 4 : number; }

// The numbers of ranks that a promise is tried with.
inline std::vector<int> world_sizes() {
  return SHARDREC_SANITIZED ? std::vector<int>{1, 3, 8} : std::vector<int>{1, 2, 3, 4, 8};
}

// What comes out of a run.
struct Outcome {
  std::vector<std::vector<std::vector<float>>> outputs;  // by step, by sample of the global batch
  // Rows of the sequences, by step, sample and feature (empty for pooled ones): [ids * dim].
  std::vector<std::vector<std::vector<std::vector<float>>>> sequences;
  std::vector<std::vector<float>> tables;               // final weights, [rows * dim]
  std::vector<std::vector<std::vector<float>>> states;  // by table, as SHARDREC_TABLE_STATE, _2
  std::vector<std::vector<float>> initial;
  // Gradients of the ids' weights, by step, sample and feature, where the deal asks for them.
  std::vector<std::vector<std::vector<std::vector<float>>>> weight_gradients;
  // Outputs of all rows, where the deal asks for them: by rank, output 0 and the sequences.
  std::vector<std::vector<std::vector<float>>> all_rows;
  std::vector<int64_t> out_of_range;  // by table, counted by all ranks
  int64_t threads_seen = 0;
  // Sent to other ranks, by all ranks.
  int64_t bytes_input = 0;
  int64_t bytes_output = 0;
  int64_t bytes_gradient = 0;
  int64_t saturated = 0;
};

// For Deal::sends_early, by a number: no rank in any step, all in all, or some in some.
uint64_t early_senders(int64_t number);

// The tables, features and optimizers of a scenario. The caller destroys it.
shardrec_model* make_model(const Scenario& scenario);

Scenario random_scenario(std::mt19937_64& random, int steps);
Deal one_rank(const Scenario& scenario);
Deal random_deal(const Scenario& scenario, std::mt19937_64& random, int ranks);
// A named kind of sharding; the boxes are filled in by the library.
Deal named_deal(const Scenario& scenario, std::mt19937_64& random, int ranks, int ranks_per_node,
                shardrec_sharding kind);

// What one rank of deal.world() does; the ranks may share an outcome, and lock it.
void train_rank(const Scenario& scenario, const Deal& deal, int rank, shardrec_comm* comm,
                std::mutex& mutex, Outcome& outcome);
// An outcome with a place for all that train_rank() writes.
Outcome empty_outcome(const Scenario& scenario, const Deal& deal);

// Trains through the C API, on threads as ranks. Fails the current test on any status that is not
// OK.
Outcome train(const Scenario& scenario, const Deal& deal);

}  // namespace shardrec::test
