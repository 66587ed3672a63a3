// Reading a checkpoint, whatever plan and number of ranks wrote it.
//
// Tables are read chunk by chunk, each chunk by one of the ranks that hold some of it: that rank
// verifies what it has read and sends the others their share, so that every byte is read once by
// all ranks together, and what is checked is what is loaded. Of a delta the whole checkpoint is read so, and then
// its deltas in their order (load_deltas.h). Dense tensors are read and verified
// before any table changes, and copied when all tables are there.
//
// Collective, but for the calls that say otherwise; ends the same way on all ranks. control, which
// may be null, counts the bytes that this rank reads and cancels between chunks.
//
// Thread rule: one thread at a time per Group.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "checkpoint/contents/contents.h"
#include "checkpoint/read/load_rules.h"
#include "checkpoint/read/opened.h"
#include "core/control.h"
#include "core/environment.h"
#include "core/function_ref.h"

namespace shardrec::checkpoint {

// As open_directory on every rank; IO_ERROR where a rank sees another checkpoint than rank 0.
Opened open(const Group& group, const std::string& directory,
            core::Environment& environment = core::default_environment());

// Fills the boxes and tensors of `wanted`. Of a collection, step and tables (learning rates, what
// is frozen) are set to what the checkpoint says, in the model's order. Tables are matched by name
// and must agree in rows, dim, dtype and the kind of their optimizer.
//
// before_writing runs on every rank when all is checked but the bytes of the tables, and before any
// box changes: an error without that call has changed nothing; after it, boxes may be filled in
// part, dense tensors are as before. CORRUPT_DATA, NOT_FOUND (a name that the checkpoint has not),
// INVALID_ARGUMENT (another shape or optimizer), UNSUPPORTED (a state over other columns),
// IO_ERROR, CANCELLED, OUT_OF_MEMORY, MISMATCH.
void load(const Group& group, const Opened& opened, Contents& wanted, core::Control* control,
          core::FunctionRef<void()> before_writing,
          core::Environment& environment = core::default_environment());

// The same under rules, which all ranks give alike. Of a collection, step and tables are set where the rules
// have them loaded. take_report runs on every rank when all rows are there and nothing else has changed: what it
// throws on one is every rank's error.
struct RuledLoad {
  const LoadRules& rules;
  core::FunctionRef<void(const std::string& report)> take_report;
};
void load(const Group& group, const Opened& opened, Contents& wanted, const RuledLoad& ruled,
          core::Control* control, core::FunctionRef<void()> before_writing,
          core::Environment& environment = core::default_environment());

// Reads everything and compares every checksum; the ranks share the work.
void verify(const Group& group, const Opened& opened, core::Control* control,
            core::Environment& environment = core::default_environment());

// Not collective. Fills `out`, all bytes of the tensor, once its checksum matches.
void read_dense(const Opened& opened, const ManifestDense& tensor, std::span<std::byte> out,
                core::Environment& environment = core::default_environment());

}  // namespace shardrec::checkpoint
