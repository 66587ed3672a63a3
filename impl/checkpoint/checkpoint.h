// Checkpoints: a directory of safetensors files, one per rank that owns something, and
// manifest.json with the logical box, length and checksum of every tensor, written last. Whatever
// plan and number of ranks wrote it, any plan and number of ranks reads it. Works on plain memory:
// whoever owns tables describes them as pieces. The format: impl/checkpoint/FORMAT.md.
//
// Both calls are collective and end the same way on all ranks: an error of one rank (status, path)
// is thrown on every rank, naming it. Files are read and written in blocks of 1 MiB; control, which
// may be null, counts their bytes and cancels between blocks.
//
// Thread rule: one thread at a time per Group.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "comm/collectives.h"
#include "core/control.h"
#include "core/environment.h"
#include "plan/model.h"

namespace shardrec::checkpoint {

enum class Part : uint8_t {
  kWeights,  // rows x cols elements of the table's dtype
  kState,    // the first state of the table's optimizer, float32 (plan::states_of)
  kState2,   // the second
};

// What the elements of a part are.
struct Layout {
  bool by_row = false;  // one element per row; else rows x cols
  shardrec_dtype dtype = SHARDREC_FLOAT32;

  int64_t row_width(int64_t cols) const { return by_row ? 1 : cols; }  // elements
  int64_t element_bytes() const;

  bool operator==(const Layout&) const = default;
};

// A box of a table in this rank's memory. For a state that is one value per row, [col, col + cols)
// are the columns over which it is taken: 0 and dim for ROW statistics, the box's columns for SHARD
// statistics; it is loaded only from a state over the same columns.
struct Piece {
  int32_t table = 0;  // index in the model
  Part part = Part::kWeights;
  Layout layout = {};  // what the model says of the part
  int64_t row = 0;
  int64_t rows = 0;
  int64_t col = 0;
  int64_t cols = 0;
  std::byte* data = nullptr;  // first element; saving only reads
  int64_t stride = 0;         // elements from row to row: >= layout.row_width(cols)
};

// The ranks that save or load together.
struct Group {
  comm::Collectives& collectives;
  int rank = 0;
  int size = 1;
};

// The parts of a table, which are in every checkpoint, and what their elements are; throws INTERNAL
// for a part that the table has not.
int part_count(shardrec_optimizer optimizer);
Layout layout_of(shardrec_dtype table_dtype, shardrec_optimizer optimizer, Part part);

// Writes a checkpoint. pieces: this rank's. Over all ranks they tile each part of each table
// exactly once (a replicated table, or a state that several ranks hold, is passed by one of them).
// The directory is made when missing; it must not hold a checkpoint yet. After a failure it holds
// none, and files that were written are gone. INVALID_ARGUMENT (a checkpoint is there, a bad path),
// IO_ERROR, CANCELLED, OUT_OF_MEMORY, MISMATCH (directories or models differ); INTERNAL when the
// pieces do not tile.
void save(const Group& group, const std::string& directory, const plan::Model& model, int64_t step,
          std::span<const Piece> pieces, core::Control* control,
          core::Environment& environment = core::default_environment());

// Fills the pieces from a checkpoint and returns its step. Tables are matched by name and must
// agree in rows, dim, dtype and the kind of their optimizer; the model may list them in another
// order. Pieces of several ranks, or of one, may overlap. Every checksum of the checkpoint is
// verified (the work is shared by the ranks) before any rank writes to its pieces; only a file that
// becomes unreadable between that and the second reading can leave them half written. NOT_FOUND (no
// checkpoint, a table missing), CORRUPT_DATA, INVALID_ARGUMENT (another shape or optimizer),
// UNSUPPORTED (a state over other columns), IO_ERROR, CANCELLED, OUT_OF_MEMORY, MISMATCH.
int64_t load(const Group& group, const std::string& directory, const plan::Model& model,
             std::span<const Piece> pieces, core::Control* control,
             core::Environment& environment = core::default_environment());

}  // namespace shardrec::checkpoint
