// Parameters of a sharded set, their states too, as a checkpoint holds them: whole, in memory of their own, on every
// rank, as long as this object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/memory.h"
#include "dense/fsdp/fsdp.h"

namespace shardrec::checkpoint {

class WholeArrays {
 public:
  // Throws INVALID_STATE before the set's commit and inside a step.
  explicit WholeArrays(dense::Fsdp& set);

  // The array is there after make_room(), data() from then on. Returns its number. what: a shardrec_fsdp_array, or
  // SHARDREC_FSDP_STATE + the number of a state.
  size_t add(int64_t parameter, int32_t what);
  // Throws OUT_OF_MEMORY.
  void make_room();
  std::byte* data(size_t array) const noexcept { return memory_->data() + arrays_[array].at; }

  // Collective over the set's sharding group, between steps: the arrays get what the ranks have.
  void gather();
  // After gather(): this rank's parts get what the arrays have.
  void apply() noexcept;

  dense::Fsdp& set() const noexcept { return *set_; }

 private:
  struct Array {
    int64_t parameter = 0;
    int32_t what = 0;
    size_t at = 0;  // of the memory, in bytes
    dense::Fsdp::Shard part{};
  };
  float* floats(const Array& array) const noexcept;

  dense::Fsdp* set_;
  std::vector<Array> arrays_;
  size_t bytes_ = 0;
  std::shared_ptr<core::Pages> memory_;
};

}  // namespace shardrec::checkpoint
