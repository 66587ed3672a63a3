// Cases of kind "ddp": a stack of linear layers trained data-parallel, recorded from PyTorch.
#pragma once

#include <cstdint>
#include <map>
#include <shardrec/shardrec.hpp>
#include <string>
#include <utility>
#include <vector>

#include "data/safetensors.h"

namespace shardrec::cli {

struct CaseResult;
struct RecordedCase;

// An optimizer by PyTorch's names, with PyTorch's defaults.
struct TorchOptimizer {
  std::string type;
  std::map<std::string, double> numbers;     // by the name of the argument; of flags 0 or 1
  std::vector<std::string> other_arguments;  // that are no numbers

  // Throws Unsupported.
  [[nodiscard]] OptimizerOptions options() const;
};

struct DdpCase {
  std::vector<int64_t> layers;  // columns of the input, then of each layer's output
  int64_t bucket_bytes = 1;
  bool gradient_as_bucket_view = false;
  int64_t micro_steps = 1;
  float ranks_start_apart_by = 0;
  TorchOptimizer optimizer;

  [[nodiscard]] int64_t inputs() const { return layers.front(); }
  [[nodiscard]] int64_t outputs() const { return layers.back(); }
};

// Throws Unsupported for what the library does not offer: before ranks are started.
void require_offered(const RecordedCase& recorded, const Safetensors& arrays);

// One rank's way through a case: losses and reduced gradients are held against the recorded ones as
// what a step gives, final values as weights. Collective.
CaseResult run_ddp_case(const RecordedCase& recorded, const Safetensors& arrays, Comm& comm);

}  // namespace shardrec::cli
