// One rank of `bench dense`: a stack of layers trained data-parallel, its share of the batches, and
// one timed step.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <shardrec/shardrec.hpp>
#include <vector>

#include "bench/dense_options.h"
#include "data/floats.h"

namespace shardrec::cli {

// The parts of a step, in this order; together they are the step. all_reduce: what of the exchange of gradients the
// backward has not hidden.
inline constexpr std::array kDenseParts{"forward", "loss", "backward", "all_reduce", "update"};

struct DenseStep {  // seconds
  std::array<double, kDenseParts.size()> parts{};
  double cpu = 0;  // of the whole process, during this rank's step

  [[nodiscard]] double whole() const;
};

class DenseRank {
 public:
  // Collective: makes the layers, equal on all ranks, and the batches that rotate. Samples depend on
  // their number in the global batch only, not on the number of ranks. Where the layers are on a device, so are
  // the inputs; outputs and the loss are here.
  DenseRank(const DenseBenchOptions& options, Comm& comm, int rank);

  // Step `number`, begun by all ranks together. Collective.
  DenseStep step(int64_t number);

  // This rank's part of the mean squared error over the global batch of the last step.
  [[nodiscard]] double loss() const { return loss_; }
  [[nodiscard]] int64_t parameters() const { return parameters_; }

 private:
  struct Batch {
    explicit Batch(int64_t device) : inputs(device) {}

    Floats inputs;
    std::vector<float> targets;
  };

  void add_parameters();
  void make_batches(const DenseBenchOptions& options, int64_t first);
  // The squared error and, in gradient_, its gradient.
  void compute_loss(const std::vector<float>& targets);

  Comm& comm_;
  int64_t inputs_;
  int64_t outputs_;
  int64_t size_;    // samples of this rank
  double divisor_;  // elements of the global batch's output
  double ranks_;
  bool overlap_;
  int64_t device_;  // as SHARDREC_OPTION_DEVICE has it
  Mlp layers_;
  std::optional<Ddp> ddp_;    // either
  std::optional<Fsdp> fsdp_;  // or
  int64_t parameters_ = 0;
  double loss_ = 0;
  std::deque<Batch> batches_;
  std::vector<float> out_;
  std::vector<float> gradient_;
};

}  // namespace shardrec::cli
