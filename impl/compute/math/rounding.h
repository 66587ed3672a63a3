// The random words of stochastic rounding (element.h): where they stand in Philox's sequence.
#pragma once

#include <cstdint>

#include "compute/element.h"
#include "compute/math/scalar.h"

namespace shardrec::compute::math {

enum class RoundingUse : uint32_t { kStep = 1, kMaxNorm = 2 };

SHARDREC_HOST_DEVICE inline PhiloxKey rounding_key(const Rounding& rounding,
                                                   RoundingUse use) noexcept {
  const PhiloxCounter words =
      philox({static_cast<uint32_t>(rounding.seed), static_cast<uint32_t>(rounding.seed >> 32),
              static_cast<uint32_t>(rounding.step >> 32), static_cast<uint32_t>(use)},
             philox_key(rounding.table_key));
  return {words[0], words[1]};
}

// The counter of quad 0 of a row of the whole table; its word 2 is the quad.
SHARDREC_HOST_DEVICE inline PhiloxCounter rounding_counter(const Rounding& rounding,
                                                           uint64_t row) noexcept {
  return {static_cast<uint32_t>(row), static_cast<uint32_t>(row >> 32), 0,
          static_cast<uint32_t>(rounding.step)};
}

}  // namespace shardrec::compute::math
