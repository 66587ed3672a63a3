// Reads the tables of a checkpoint for serving. Not collective: one process reads all of them, and
// verifies every byte as it does.
#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/read/files.h"
#include "core/control.h"
#include "plan/model/model.h"
#include "serving/served_table.h"

namespace shardrec::serving {

// Bytes that load_tables() reads: the weights of one collection.
int64_t bytes_of_tables(const checkpoint::Manifest& manifest, int32_t collection);

// By table of the model, which is the collection's own. control may be null. Throws CORRUPT_DATA,
// IO_ERROR, CANCELLED, OUT_OF_MEMORY.
std::vector<ServedTable> load_tables(const checkpoint::Opened& opened, int32_t collection,
                                     const plan::Model& model, shardrec_served_tables kind,
                                     core::Control* control, core::Environment& environment);

}  // namespace shardrec::serving
