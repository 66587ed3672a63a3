// Which way of keeping replicated tables in step sends the fewest bytes.
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace shardrec::plan {

// ROWS and DENSE deal the rows of a table out in slots, one per rank, and number the rows of a slot
// in 32 bits.
constexpr int64_t kMostSlotRows = int64_t{1} << 32;
constexpr bool fits_slots(int64_t rows, int32_t ranks) {
  return (rows - 1) / ranks < kMostSlotRows;
}

// Bytes that a rank sends per step to keep a replicated table in step; replication is not AUTO.
double replication_bytes(const Model& model, size_t table, int32_t ranks,
                         shardrec_replication replication, const PlanOptions& expected);

// The option's choice; AUTO: the least bytes, SAMPLES where they are equal, the batch is unknown or
// the table has too many rows for slots.
shardrec_replication choose_replication(const Model& model, size_t table, int32_t ranks,
                                        const PlanOptions& options);

}  // namespace shardrec::plan
