// The tensors of a caller's batch as operations reach them: where they lie, or copied where they lie in the host's memory
// and operations do not reach that (compute::HostStaging). The host waits for no operation but those
// that were called before the batch before had been read, and has read the host's tensors when read() returns.
//
// Thread rule: one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>

#include "compute/backend.h"
#include "compute/host_staging.h"
#include "shardrec/tensor.h"

namespace shardrec::embedding {

enum class Given : uint8_t { kValues, kLengths, kWeights, kInverse };  // kLengths: or offsets

class GivenTensors {
 public:
  static constexpr size_t kMost = 4;

  // Compact tensors of one dimension by Given; null: not given. What was read before is gone.
  void read(const std::array<const shardrec_tensor*, kMost>& tensors, compute::Backend& backend);
  // All operations that read the tensors have been called.
  void release();

  // Of a tensor that was given: valid up to release().
  const void* elements(Given which) const { return elements_[static_cast<size_t>(which)]; }
  // The staging, if all of these tensors were copied; else null, and the back end counts and sorts.
  compute::HostStaging* staging_of(std::initializer_list<Given> which) const;

 private:
  std::shared_ptr<compute::HostStaging> staging_;  // null: nothing had to be copied so far
  std::array<const void*, kMost> elements_{};
  std::array<bool, kMost> is_copied_{};
};

}  // namespace shardrec::embedding
