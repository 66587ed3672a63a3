// A stack of layers as one safetensors file: every parameter under its name, optimizer states as
// "<parameter>.<state>", and "steps", the step count (I64 [1]).
#pragma once

#include <string>

#include "core/environment.h"
#include "dense/mlp.h"

namespace shardrec::checkpoint {

// Replaces what is at `path`, whole or not at all. Throws IO_ERROR, OUT_OF_MEMORY.
void save_mlp(const dense::Mlp& mlp, const std::string& path,
              core::Environment& environment = core::default_environment());

// Throws INVALID_ARGUMENT when the file is of another stack or optimizer, NOT_FOUND, IO_ERROR,
// CORRUPT_DATA, OUT_OF_MEMORY; then the stack is as it was.
void load_mlp(dense::Mlp& mlp, const std::string& path,
              core::Environment& environment = core::default_environment());

}  // namespace shardrec::checkpoint
