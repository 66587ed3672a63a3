// Reads the tables of a checkpoint for serving. Not collective: one process reads all of them, and
// verifies every byte as it does.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "checkpoint/read/files.h"
#include "core/control.h"
#include "plan/model/model.h"
#include "serving/served_table.h"

namespace shardrec::serving {

// Bytes that load_tables() reads: the weights of one collection, and of a delta the rows that have changed.
int64_t bytes_of_tables(const checkpoint::Opened& opened, int32_t collection);

// The tables of `now` with the rows that deltas behind it have changed staged beside them (ServedTable::staged), in the
// same memory. None where they cannot be served so: tables that are mapped, and rows in 8 bits of which only some
// columns have changed.
std::optional<std::vector<ServedTable>> stage_tables(
    const checkpoint::Opened& opened, std::span<const checkpoint::Opened* const> deltas,
    int32_t collection, const plan::Model& model, const std::vector<ServedTable>& now,
    core::Control* control, core::Environment& environment);

// By table of the model, which is the collection's own. Of a delta, tables in which rows have changed are in memory
// also where kind is MAPPED; INT8 tables are read as those of a whole one, and the rows that have changed are staged
// beside them until they are written, but for tables of which deltas have some columns only: these are read into
// elements of their own dtype first, all rows. control may be null. Throws CORRUPT_DATA, IO_ERROR, CANCELLED,
// OUT_OF_MEMORY.
std::vector<ServedTable> load_tables(const checkpoint::Opened& opened, int32_t collection,
                                     const plan::Model& model, shardrec_served_tables kind,
                                     core::Control* control, core::Environment& environment);

}  // namespace shardrec::serving
