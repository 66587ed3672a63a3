// A set of sharded parameters as a checkpoint holds it: whole, under the names that a set of DDP
// parameters has (ddp_parameters.h), so that either loads what the other has saved.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/contents/whole_arrays.h"
#include "checkpoint/format/tensors.h"
#include "dense/fsdp/fsdp.h"

namespace shardrec::checkpoint {

class FsdpState {
 public:
  // Makes the memory. Throws INVALID_STATE before the set's commit and inside a step, OUT_OF_MEMORY.
  explicit FsdpState(dense::Fsdp& fsdp);

  // Of the memory.
  std::vector<DenseTensor> tensors() const;
  // Collective over the set's sharding group: the memory gets what the ranks have.
  void gather() { arrays_.gather(); }
  // After gather(): this rank's parts get what the memory has.
  void apply() noexcept;

 private:
  struct Named {
    std::string name;
    int64_t parameter = 0;
  };
  struct Numbers {
    int64_t steps = 0;
    double learning_rate = 0;  // NaN: none was set
  };

  WholeArrays arrays_;
  std::vector<Named> names_;          // by array
  std::unique_ptr<Numbers> numbers_;  // stays in place
};

}  // namespace shardrec::checkpoint
