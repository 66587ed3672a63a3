// A set of DDP parameters as a checkpoint holds it: values under their names; where the set has an
// optimizer, its states as "optimizer.<state>.<parameter>", the step count and a learning rate that
// was set.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "checkpoint/format/tensors.h"
#include "dense/ddp/ddp.h"

namespace shardrec::checkpoint {

// Numbers that are no arrays of the set have a place here, as in LayersState.
class DdpState {
 public:
  explicit DdpState(dense::Ddp& ddp);

  std::vector<DenseTensor> tensors() const;
  void apply() noexcept;

 private:
  struct Numbers {
    int64_t steps = 0;
    double learning_rate = 0;  // NaN: none was set
  };
  dense::Ddp* ddp_;
  std::unique_ptr<Numbers> numbers_;  // stays in place
};

}  // namespace shardrec::checkpoint
