// A set of sharded parameters as a checkpoint holds it: whole, under the names that a set of DDP
// parameters has (ddp_parameters.h), so that either loads what the other has saved. Whole parameters
// and states have memory of their own here, on every rank, as long as this object.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/format/tensors.h"
#include "core/memory.h"
#include "dense/fsdp/fsdp.h"

namespace shardrec::checkpoint {

class FsdpState {
 public:
  // Makes the memory. Throws INVALID_STATE before the set's commit and inside a step, OUT_OF_MEMORY.
  explicit FsdpState(dense::Fsdp& fsdp);

  // Of the memory.
  std::vector<DenseTensor> tensors() const;
  // Collective over the set's sharding group: the memory gets what the ranks have.
  void gather();
  // After gather(): this rank's parts get what the memory has.
  void apply() noexcept;

 private:
  struct Array {
    std::string name;
    size_t parameter = 0;
    int32_t what = 0;
    size_t at = 0;  // of the memory, in bytes
    dense::Fsdp::Shard part{};
  };
  struct Numbers {
    int64_t steps = 0;
    double learning_rate = 0;  // NaN: none was set
  };
  float* floats(const Array& array) const noexcept;

  dense::Fsdp* fsdp_;
  std::vector<Array> arrays_;
  std::shared_ptr<core::Pages> memory_;
  std::unique_ptr<Numbers> numbers_;  // stays in place
};

}  // namespace shardrec::checkpoint
