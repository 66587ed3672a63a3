// Which rank reads which chunk of a checkpoint's tables, and who else needs it. Computed alike by
// every rank from the manifest and the boxes of all ranks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/contents/contents.h"

namespace shardrec::checkpoint {

// A box of some rank, as it is told to all other ranks: the bytes of this struct travel.
struct BoxNote {
  int32_t rank = 0;
  int32_t index = 0;       // in the order in which that rank lists its boxes
  int32_t collection = 0;  // of the manifest, as table
  int32_t table = 0;
  plan::Rectangle cells = {};
  int32_t part = 0;
  int32_t padding = 0;
};
static_assert(sizeof(BoxNote) == 56);

// The cells of the table that a tensor of the checkpoint and a box of a rank share.
// For a state by row, all of the tensor's columns.
struct Need {
  int32_t rank = 0;
  int32_t box = 0;  // BoxNote::index
  plan::Rectangle cells = {};
};

// Rows [row, row + rows) of the table, of one tensor: the chunk that checksums[number] is of.
struct Chunk {
  int32_t tensor = 0;  // index in Manifest::tensors
  int32_t reader = 0;  // rank
  int64_t number = 0;
  int64_t row = 0;
  int64_t rows = 0;
};

class LoadPlan {
 public:
  // notes: of all ranks. Throws UNSUPPORTED when a state is wanted over other columns than it has.
  LoadPlan(const Manifest& manifest, std::span<const BoxNote> notes, int ranks,
           const std::string& path);

  // Which cells of the chunk each rank needs, in the same order on all ranks.
  void needs_of(const Chunk& chunk, std::vector<Need>& out) const;

  // Chunks that only their reader needs, by tensor.
  std::span<const Chunk> own() const { return own_; }
  // Chunks that several ranks need, in rounds: in a round a rank reads one chunk at most and is
  // sent kMostReceived bytes at most (one chunk where that is larger).
  std::span<const std::vector<Chunk>> rounds() const { return rounds_; }

  static constexpr int64_t kMostReceived = int64_t{16} << 20;
  // At most so many bytes are read in order by one rank before another one goes on.
  static constexpr int64_t kStretch = int64_t{64} << 20;

 private:
  void cut(const Manifest& manifest, int ranks);
  void make_rounds(const Manifest& manifest, std::vector<std::vector<Chunk>>& shared);

  std::vector<std::vector<Need>> needs_;  // by tensor, by row
  std::vector<Chunk> own_;
  std::vector<std::vector<Chunk>> rounds_;
};

}  // namespace shardrec::checkpoint
