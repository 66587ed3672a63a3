// Row statistics of tables that are cut by columns: the owners of a row see the same ids, hence the
// same list of unique rows; they exchange one float per unique row and column range, by position,
// and add them by ascending column. Not used by tables whose rows are whole, nor with `shard`
// statistics.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "core/memory.h"
#include "embedding/index_plan.h"
#include "embedding/layout.h"
#include "embedding/shard.h"

namespace shardrec::embedding {

class SharedStatistics {
 public:
  SharedStatistics(const Layout& layout, std::span<const Shard> shards);

  // Does any table need the exchange? The same on all ranks.
  bool needed() const { return needed_; }
  // Column ranges that a part contributes.
  const std::vector<compute::ColumnRange>& ranges(int32_t part) const {
    return ranges_[static_cast<size_t>(part)];
  }

  // own_sums[i]: for own shard i, [unique, ranges] sums of squares. Writes the messages into
  // buffer.
  void pack(std::span<const IndexPlan> plans, std::span<float* const> own_sums,
            core::Scratch& buffer);
  std::span<const comm::ConstBytes> messages() const { return messages_; }

  // Adds up: totals[i] = [unique] for each own shard that shares its statistic. Throws
  // CORRUPT_DATA.
  void add_up(std::span<const IndexPlan> plans, std::span<float* const> own_sums,
              std::span<const comm::ConstBytes> messages, std::span<float* const> totals);

 private:
  // Another part of the table whose rows overlap those of an own shard.
  struct Neighbour {
    int32_t part = 0;
    int64_t first_row = 0;  // overlap, rows of the table
    int64_t last_row = 0;
  };
  // One column range of a contribution while it is added up.
  struct Range {
    int64_t col = 0;
    const float* sums = nullptr;  // of the first unique row of the overlap
    int64_t stride = 0;           // floats between unique rows
    int64_t first_unique = 0;     // of the own shard
    int64_t last_unique = 0;
  };

  const Layout& layout_;
  bool needed_ = false;
  std::vector<bool> shared_;                               // by own shard
  std::vector<std::vector<Neighbour>> neighbours_;         // by own shard, in part order
  std::vector<std::vector<compute::ColumnRange>> ranges_;  // by part, empty where not shared
  std::vector<comm::ConstBytes> messages_;
  std::vector<Range> adding_;
};

}  // namespace shardrec::embedding
