// A stack of layers in a set of data-parallel parameters: all its parameters are in the set, and its
// backward marks them as their gradients become whole.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "dense/ddp/ddp.h"
#include "dense/layers/mlp.h"

namespace shardrec::dense {

// Adds the parameters of the stack under prefix + "layer.0.weight" and so on, all or none. The stack
// stays as long as the set does; a set that is gone, or in no step, is not told of gradients. Returns
// the first index. Throws what Ddp::add() and Mlp::set_listener() do.
int64_t add_layers(const std::shared_ptr<Ddp>& set, const std::string& prefix,
                   const std::shared_ptr<Mlp>& layers);

}  // namespace shardrec::dense
