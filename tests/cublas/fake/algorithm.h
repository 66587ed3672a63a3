// What an algorithm of the library remembers: what product it is for, and what it asks for.
#pragma once

#include <cstdint>

#include "problem.h"

namespace fake_cublaslt {

struct AlgorithmParts {
  uint64_t magic;
  uint64_t fingerprint;
  uint64_t workspace;
  uint32_t align_a, align_b, align_c, align_d;
  uint32_t align_bias, align_mask;
};
static_assert(sizeof(AlgorithmParts) <= sizeof(Algorithm));

// The one that there is for the problem.
AlgorithmParts choose_algorithm(const Problem& problem, const PreferenceType& preference);

struct Addresses {
  const void* a;
  const void* b;
  const void* c;
  const void* d;
  const void* workspace;
  uint64_t workspace_bytes;
};
// False, and a violation: it cannot be used for this.
bool fits(const AlgorithmParts& algorithm, const Problem& problem, const Addresses& addresses);

}  // namespace fake_cublaslt
