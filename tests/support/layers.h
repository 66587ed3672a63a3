// Layers of a stack in one expression, for tests of the C functions.
#pragma once

#include "shardrec/layers.h"

namespace shardrec {

// layer: designated members; struct_size is set here.
inline shardrec_status add_layer(shardrec_mlp* mlp, shardrec_layer layer) {
  layer.struct_size = sizeof layer;
  return shardrec_mlp_add(mlp, &layer);
}

inline shardrec_status add_linear(shardrec_mlp* mlp, int64_t outputs,
                                  shardrec_activation activation) {
  return add_layer(mlp, {.activation = activation, .outputs = outputs});
}

}  // namespace shardrec
