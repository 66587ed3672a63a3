// The occurrences of the rows of some parts in one batch, grouped by row: made by a back end, in its
// memory, read by its operations on rows. Occurrences of a row are in canonical order: (feature in
// model order, global sample, position in the bag).
//
// Thread rule: that of the back end, which outlives it.
#pragma once

#include <cstdint>
#include <span>

#include "compute/bags.h"
#include "compute/kernels.h"

namespace shardrec::compute {

// Gradients of a row are summed in blocks of so many consecutive samples of the global batch.
constexpr int64_t kBlockSamples = 512;

// The ids of one feature from one source.
struct GroupedBlock {
  const Bags* bags = nullptr;
  Ids ids;
  const float* weights = nullptr;  // null: all 1
  int64_t first_sample = 0;        // number of the first one among those of all sources
  size_t feature = 0;              // among those of the part
  bool sequence = false;           // each id is a bag of its own

  // Bags that are not empty.
  int64_t rows() const { return sequence ? bags->ids : bags->bags; }
};

struct GroupedPart {
  int64_t rows = 0;                      // of the part
  std::span<const GroupedBlock> blocks;  // in canonical order: none, and the part has no rows
};

class RowGroups {
 public:
  // A part has fewer ids.
  static constexpr int64_t kMostIds = int64_t{1} << 32;

  virtual ~RowGroups() = default;
  RowGroups(const RowGroups&) = delete;
  RowGroups& operator=(const RowGroups&) = delete;

  // The blocks of the next build() are written by operations so far: it takes place beside those that are called
  // from now on, up to join(). False: the back end builds nothing beside others, and groups had better be built
  // where they are needed.
  [[nodiscard]] virtual bool fork() { return false; }
  // weighted: has any block weights? most_samples: of a feature, from all sources together. Forks, unless fork()
  // was called for it. If it throws, nothing reads the blocks any more.
  virtual void build(std::span<const GroupedPart> parts, bool weighted, int64_t most_samples) = 0;
  // Operations from now on take place behind the build: before the first that reads the groups, or that writes
  // to the memory of the blocks.
  virtual void join() {}

  // After build(), and join() for operations: how many rows of a part were touched, at most; and how many, in
  // the memory of the back end, for its operations. Null: the same.
  virtual int64_t most_rows(size_t part) const = 0;
  virtual const int64_t* row_count(size_t part) const = 0;
  // Does the host know how many without a wait?
  virtual bool counted() = 0;
  // The touched rows of a part, ascending, and where the occurrences of each begin. Where the host does
  // not know how many there are, these wait.
  virtual std::span<const int64_t> rows(size_t part) = 0;
  virtual std::span<const int64_t> run(size_t part) = 0;  // [rows + 1]
  // Fills in the fields of a job that say which bags go to which row, and the block of each bag.
  // Bags are numbered in the order of the part's blocks.
  virtual void describe(size_t part, RowUpdate& job) const = 0;

 protected:
  RowGroups() = default;
};

}  // namespace shardrec::compute
