// Elements, and reductions of them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fake_nccl {

// 0: it is none that is known.
size_t bytes_of_element(int32_t dtype) noexcept;
bool is_reduction(int32_t reduction) noexcept;

// into[i] = into[i] (reduction) from[i], each rounded to its type; an average is a sum until it is divided.
void reduce(int32_t dtype, int32_t reduction, void* into, const void* from, size_t count) noexcept;
void divide(int32_t dtype, void* sums, size_t count, int ranks) noexcept;

}  // namespace fake_nccl
