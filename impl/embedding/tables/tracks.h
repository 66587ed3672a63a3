// The rows of traces that a collection is in: its calls and phases on the host, and what its device does.
#pragma once

#include <cstdint>

#include "embedding/tables/counters.h"

namespace shardrec::embedding {

// Before the collection is in use.
void trace_as(Counters& counters, int32_t rank, uint32_t collection) noexcept;

}  // namespace shardrec::embedding
