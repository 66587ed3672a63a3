// One rank of `bench sync`: replicas of tables that are trained on this rank's share of the batches, and averaged.
#pragma once

#include <cstdint>
#include <deque>
#include <shardrec/shardrec.hpp>
#include <string>
#include <vector>

#include "bench/bench_tensors.h"
#include "bench/sync_options.h"

namespace shardrec::cli {

// What a sync took on a rank.
struct SyncTimes {
  double step = 0;         // seconds of a step before it, mean
  double begin = 0;        // seconds; of a blocking sync 0
  double wait = 0;         // seconds; of a blocking sync all of it
  double meanwhile = 0;    // seconds of a step between the two, mean; of a blocking sync 0
  double bytes = 0;        // sent to other replicas
  double rows = 0;         // averaged
  double step_bytes = 0;   // sent by a step's own exchanges, mean
  double table_bytes = 0;  // of weights and states
};

class SyncRank {
 public:
  // Collective: makes the mesh, the tables and the batches that rotate. rows: what option REPLICA_SYNC takes.
  SyncRank(const SyncBenchOptions& options, Comm& comm, int rank, const std::string& rows);

  // Takes the steps, then the sync, begun by all ranks together; that of replicas that are trained together averages
  // nothing. Collective.
  SyncTimes blocking();
  // The same in two halves, with so many steps between them.
  SyncTimes overlapped(int64_t steps_meanwhile);

 private:
  struct Batch {
    Vector ids;
    Vector lengths;
  };

  void make_batches(const SyncBenchOptions& options, int rank);
  // Returns the seconds of one, mean. Collective.
  double take_steps(int64_t count);
  // What has changed since: `before` is what this returned.
  SyncTimes counted() const;
  SyncTimes counted_since(const SyncTimes& before) const;

  Comm& comm_;
  int64_t device_;
  int64_t size_;  // samples of this rank
  int64_t steps_;
  Mesh mesh_;
  Collection tables_;
  Lookup lookup_;
  BenchTensors tensors_;
  std::deque<std::vector<int64_t>> numbers_;
  std::vector<Batch> batches_;
  int64_t taken_ = 0;  // steps
  LineBytes out_bytes_;
  LineBytes gradient_bytes_;
  Matrix out_ = nullptr;
  Matrix gradient_ = nullptr;
};

}  // namespace shardrec::cli
