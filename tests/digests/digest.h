// The digest of a run: XXH3 of every output, weight gradient, table and state of every rank; all NaNs
// count as one (support/one_nan.h).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "digests/configurations.h"

namespace shardrec::test {

// Trains as a rank of comm, whose size is configuration.world. Collective; the same on all ranks.
uint64_t digest_of(const Configuration& configuration, shardrec_comm* comm);

// The recorded ones, by name, in the order of configurations(): a line "<digest> <name>" each.
std::vector<std::pair<std::string, uint64_t>> recorded_digests();

}  // namespace shardrec::test
