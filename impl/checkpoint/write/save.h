// Writing a checkpoint into a directory: a safetensors file per rank that has something to write,
// then the manifest, by which it becomes a checkpoint. Nothing that is there is written to or
// removed: files get names of their own, and the manifest appears under its name only when no other
// has taken it, so that of two savers one is refused.
//
// Collective: ends the same way on all ranks; an error of one rank (status, path) is thrown on
// every rank, naming it. After an error the directory holds no new checkpoint, and what this save
// wrote is gone. control, which may be null, counts bytes and cancels between chunks.
//
// Thread rule: one thread at a time per Group.
#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/contents/contents.h"
#include "core/control.h"
#include "core/environment.h"
#include "core/function_ref.h"

namespace shardrec::checkpoint {

struct SaveAs {
  std::string directory;
  int64_t step = 0;
  std::string run = {};
  int64_t commit = 0;
  // Must the directory be new? Else it may hold anything but a checkpoint.
  bool new_directory = false;
};

// published: runs on rank 0 when the manifest has its name; where it throws, the manifest loses it
// again. Throws INVALID_ARGUMENT (a checkpoint is there, a bad path), IO_ERROR, CANCELLED,
// OUT_OF_MEMORY, DISAGREEMENT (ranks bring different things); INTERNAL when boxes do not tile.
void save(const Group& group, const SaveAs& as, const Contents& contents, core::Control* control,
          core::FunctionRef<void()> published,
          core::Environment& environment = core::default_environment());
void save(const Group& group, const SaveAs& as, const Contents& contents, core::Control* control,
          core::Environment& environment = core::default_environment());

}  // namespace shardrec::checkpoint
