// The lists of rows of a delta, read and verified.
//
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "checkpoint/read/files.h"
#include "compute/buffer.h"
#include "core/control.h"
#include "core/function_ref.h"

namespace shardrec::checkpoint {

class RowLists {
 public:
  // files: of the delta; both outlive this. control may be null.
  RowLists(const Opened& delta, Files& files, core::Control* control)
      : delta_(delta), files_(files), control_(control) {}

  // The rows of the table that a list names, ascending; valid until forget(). A list is read once until then, and
  // stays in memory. Throws CORRUPT_DATA where they do not match their checksums, or are none of the list's.
  std::span<const int64_t> read(int32_t list);
  void forget() noexcept { in_memory_.clear(); }

  // Chunks of a tensor of the delta, each verified: take(rows, bytes), the numbers of its rows in the table, and their
  // values one behind the other.
  using TakeChunk =
      core::FunctionRef<void(std::span<const int64_t> rows, std::span<const std::byte> bytes)>;
  void for_each_chunk(const ManifestTensor& tensor, TakeChunk take);

 private:
  const Opened& delta_;
  Files& files_;
  core::Control* control_;
  std::map<int32_t, std::vector<int64_t>> in_memory_;  // by list
  compute::Buffer chunk_{compute::cpu_memory()};
};

}  // namespace shardrec::checkpoint
