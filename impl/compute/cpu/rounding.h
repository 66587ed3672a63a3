// What stochastic rounding and the cut of a part into columns of its table have in common in all
// sets of kernels (element.h).
#pragma once

#include <cstdint>

#include "compute/kernels.h"
#include "core/philox.h"

namespace shardrec::compute::cpu {

enum class RoundingUse : uint32_t { kStep = 1, kMaxNorm = 2 };

inline core::PhiloxKey rounding_key(const Rounding& rounding, RoundingUse use) noexcept {
  const core::PhiloxCounter words = core::philox(
      {static_cast<uint32_t>(rounding.seed), static_cast<uint32_t>(rounding.seed >> 32),
       static_cast<uint32_t>(rounding.step >> 32), static_cast<uint32_t>(use)},
      core::philox_key(rounding.table_key));
  return {words[0], words[1]};
}

// The counter of quad 0 of unique row u; its word 2 is the quad.
inline core::PhiloxCounter rounding_counter(const RowUpdate& job, int64_t u) noexcept {
  const auto row = static_cast<uint64_t>(job.first_row + job.rows[u]);
  return {static_cast<uint32_t>(row), static_cast<uint32_t>(row >> 32), 0,
          static_cast<uint32_t>(job.rounding.step)};
}

}  // namespace shardrec::compute::cpu
