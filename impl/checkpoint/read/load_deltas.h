// Fills the rows of this rank's boxes that a delta has changed. Not collective: each rank reads and verifies what of
// the delta is of rows and columns of its own boxes, also where other ranks read it, too.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "checkpoint/read/convert.h"
#include "checkpoint/read/files.h"
#include "checkpoint/read/load_plan.h"
#include "checkpoint/read/row_lists.h"

namespace shardrec::checkpoint {

// What a load has of boxes: notes of all ranks, and this rank's own, by BoxNote::index.
struct LoadedBoxes {
  std::span<const BoxNote> notes;
  std::span<const BoxTensor* const> own;
  int32_t rank = 0;
};

class DeltaLoader {
 public:
  // delta: not whole. narrowed: as TableLoader has it; numbers of a delta are counted by the first rank that reads them.
  DeltaLoader(const Opened& delta, const LoadedBoxes& boxes, std::span<NarrowedTable> narrowed,
              core::Control* control, core::Environment& environment);

  // Bytes that this rank reads.
  int64_t bytes_to_read() const;
  void check_share(int size) { files_.check_share(boxes_.rank, size); }
  // Throws CORRUPT_DATA, UNSUPPORTED (a state over other columns), IO_ERROR, CANCELLED, OUT_OF_MEMORY.
  void run();

 private:
  // Own boxes of the tensor's part of its table.
  std::span<const BoxNote* const> boxes_of(const ManifestTensor& tensor) const;
  bool is_read(const ManifestTensor& tensor) const;
  bool is_counted(const ManifestTensor& tensor) const;
  void write(const ManifestTensor& tensor, std::span<const int64_t> rows,
             std::span<const std::byte> bytes);
  void count_narrowed(const ManifestTensor& tensor, std::span<const int64_t> rows,
                      std::span<const std::byte> bytes);

  const Opened& delta_;
  const LoadedBoxes boxes_;
  std::map<std::tuple<int32_t, int32_t, int32_t>, std::vector<const BoxNote*>> own_;
  std::span<NarrowedTable> narrowed_;
  Files files_;
  RowLists lists_;
  Converter converter_;
  std::vector<int64_t> numbers_;
};

}  // namespace shardrec::checkpoint
