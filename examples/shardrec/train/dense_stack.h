// Stacks of layers as the options of `train` ask for them.
#pragma once

#include <cstdint>
#include <shardrec/shardrec.hpp>
#include <string>
#include <vector>

#include "train/train_options.h"

namespace shardrec::cli {

struct StackShape {
  uint64_t number = 0;  // of the stack: those of a model draw different initial values
  int64_t inputs = 0;
  int64_t cross_layers = 0;  // in front of the hidden layers, of rank --cross-rank
  std::vector<int64_t>
      hidden;  // widths; behind each its layer norm and its dropout, where they are asked for
  int64_t outputs = 0;  // of the last layer, which has no activation
};

// Biases start at 0. rank: with --dropout each rank drops elements of its own; initial values that differ by that are
// those of rank 0 when a DDP set of the stack is committed. device: as SHARDREC_OPTION_DEVICE has it.
Mlp make_stack(const TrainOptions& train, int rank, int64_t device, const StackShape& shape);

// Writes a parameter, wherever it is.
void set_parameter(const Tensor& value, const std::vector<float>& floats);

// Reads the parameters that an earlier release has saved of a stack of linear layers.
void load_parameters(const std::string& path, Mlp& stack);

}  // namespace shardrec::cli
