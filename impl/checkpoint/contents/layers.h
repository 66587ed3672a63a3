// A stack of layers as a checkpoint holds it: parameters under their names, optimizer states as
// "<parameter>.<state>", the step count, a learning rate that was set, of stacks with dropout the number of
// forwards in training, of stacks in FLOAT16 the loss scale, and a description from which the stack can be made again.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/format/tensors.h"
#include "core/error.h"
#include "dense/layers/mlp.h"

namespace shardrec::checkpoint {

// The parameters and states of a stack, in place.
std::vector<DenseTensor> layer_tensors(const dense::Mlp& mlp);

// All tensors of a stack. Numbers that are no arrays of the stack have a place here: they are those
// of the stack when this is made, and apply() sets the stack's to what a load has put there.
class LayersState {
 public:
  explicit LayersState(dense::Mlp& mlp);

  // to_load: what a checkpoint of a stack in any precision has, too.
  std::vector<DenseTensor> tensors(bool to_load) const;
  void apply() noexcept;

 private:
  struct Numbers {
    int64_t steps = 0;
    double learning_rate = 0;  // NaN: none was set
    int64_t dropout_forwards = 0;
    double loss_scale = 1;
    int64_t finite_backwards = 0;
  };
  dense::Mlp* mlp_;
  std::unique_ptr<Numbers> numbers_;  // stays in place
};

// inputs, layers, optimizer as JSON.
std::string describe_layers(const dense::Mlp& mlp);

// What such a description says. Throws CORRUPT_DATA.
struct LayersDescription {
  int64_t inputs = 0;
  std::vector<dense::LayerShape> layers;
  plan::Optimizer optimizer;
};
LayersDescription read_description(const std::string& description, const std::string& path);

// A stack as described; options but the optimizer are the caller's. Throws CORRUPT_DATA, and what
// the stack's making throws.
std::unique_ptr<dense::Mlp> make_layers(const std::string& description, dense::MlpOptions options,
                                        const std::string& path);

}  // namespace shardrec::checkpoint
