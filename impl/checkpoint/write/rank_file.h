// The file that one rank adds to a checkpoint: its boxes of tables and its dense tensors, in the
// safetensors format, and what the manifest says of them.
#pragma once

#include <string>

#include "checkpoint/contents/contents.h"
#include "core/control.h"
#include "core/environment.h"

namespace shardrec::checkpoint {

// Bytes of what this rank writes.
int64_t bytes_to_write(const Contents& contents, int rank);

// Describes what this rank writes: collections and tables as all ranks have them, items and tensors
// of this rank only, as of file 0 of the given name; no file where there is nothing to write.
// Checksums and sizes are set by write_rank_file.
Manifest describe_rank(const Contents& contents, int rank, const std::string& file_name);

// Writes, syncs and closes the empty file that `own` describes, and fills in sizes, offsets and
// checksums.
void write_rank_file(core::WriteFile& file, const Contents& contents, core::Control* control,
                     Manifest& own);

}  // namespace shardrec::checkpoint
