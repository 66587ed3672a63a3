// A unit of a set: parameters that are gathered and reduced together, and this rank's shard of them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/memory.h"
#include "dense/fsdp/unit_layout.h"

namespace shardrec::dense {

// Names of a unit's operations, "fsdp: all_gather of unit "tower"". They are kept until the process ends: what
// records operations may show them when the set is gone.
struct UnitOperations {
  const char* gather = "";
  const char* reduce = "";
  const char* replicas = "";
};
UnitOperations operations_of(const std::string& unit);

struct Unit {
  std::string name;
  UnitLayout layout;
  UnitOperations operations{};
  // [shard elements], float32. Peers read the values where they are, also when the set is gone.
  std::shared_ptr<core::Pages> values{};
  core::Pages gradients{};
  bool has_gradients = false;  // else they count as zeros, and are overwritten by the next ones

  std::span<float> value_elements() const noexcept { return floats(values->data()); }
  std::span<float> gradient_elements() noexcept { return floats(gradients.data()); }

 private:
  std::span<float> floats(std::byte* data) const noexcept {
    return {static_cast<float*>(static_cast<void*>(data)),
            static_cast<size_t>(layout.shard_elements())};
  }
};

}  // namespace shardrec::dense
