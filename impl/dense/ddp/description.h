// What the ranks must agree on before they reduce gradients, and who differs in what.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "shardrec/tensor.h"

namespace shardrec::dense {

struct OptionText {
  std::string_view name;  // "DDP_AVERAGE"
  std::string value;
};

struct ParameterText {
  std::string_view name;
  shardrec_dtype dtype = SHARDREC_FLOAT32;
  std::span<const int64_t> shape{};
};

// One rank's message. Read by compare_descriptions() of the same release of the library only.
std::string describe(std::span<const OptionText> options,
                     std::span<const ParameterText> parameters);

// Throws DISAGREEMENT with the first difference of the lowest rank that differs from rank 0, the same
// on all ranks: they read the same messages. call: of the error, such as "ddp: commit".
void compare_descriptions(const char* call, std::span<const comm::ConstBytes> messages);

}  // namespace shardrec::dense
