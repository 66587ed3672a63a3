// A stack of layers as a checkpoint holds it: parameters under their names, optimizer states as
// "<parameter>.<state>", the step count, a learning rate that was set, of stacks with dropout the number of
// forwards in training, of stacks in FLOAT16 the loss scale, and a description from which the stack can be made again.
// A stack whose parameters are sharded is whole in it, with the states, steps and learning rate of its set.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/contents/whole_arrays.h"
#include "checkpoint/format/tensors.h"
#include "core/error.h"
#include "dense/fsdp/fsdp.h"
#include "dense/layers/mlp.h"

namespace shardrec::checkpoint {

// All tensors of a stack. Numbers that are no arrays of the stack have a place here: they are those
// of the stack when this is made, and apply() sets the stack's to what a load has put there.
class LayersState {
 public:
  // set: that has the parameters of the stack, or null. Throws INVALID_STATE of a set in a step, or without an
  // optimizer; OUT_OF_MEMORY.
  LayersState(dense::Mlp& mlp, dense::Fsdp* set);

  bool is_sharded() const noexcept { return whole_.has_value(); }
  // Collective over the set's sharding group, of a stack that is sharded.
  void gather() { whole_->gather(); }
  // to_load: what a checkpoint of a stack in any precision has, too.
  std::vector<DenseTensor> tensors(bool to_load) const;
  void apply() noexcept;
  // inputs, layers, optimizer as JSON.
  std::string description() const;

 private:
  // The optimizer that steps the stack's parameters.
  const plan::Optimizer& optimizer() const noexcept;
  std::vector<DenseTensor> arrays() const;

  struct Numbers {
    int64_t steps = 0;
    double learning_rate = 0;  // NaN: none was set
    int64_t dropout_forwards = 0;
    double loss_scale = 1;
    int64_t finite_backwards = 0;
  };
  dense::Mlp* mlp_;
  // Of a stack that is sharded: each parameter, followed by its states.
  std::optional<WholeArrays> whole_;
  std::unique_ptr<Numbers> numbers_;  // stays in place
};

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
