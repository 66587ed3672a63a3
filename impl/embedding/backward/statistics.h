// Sums over whole rows of tables that are cut by columns (what optimizers sum, and the norms of
// max_norm): the owners of a row see the same ids, hence the same list of touched rows; they
// exchange a few floats per row and column range, by position, and add them by ascending column.
// Not used by tables whose rows are whole, nor with `shard` statistics.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "comm/bodies/carrier.h"
#include "comm/communicator.h"
#include "compute/backend.h"
#include "compute/buffer.h"
#include "embedding/tables/layout.h"
#include "embedding/tables/shard.h"

namespace shardrec::embedding {

class SharedStatistics {
 public:
  // values: by table, floats per row and range; 0 for tables that have nothing to add up.
  SharedStatistics(const Layout& layout, std::span<const Shard> shards, std::span<const int> values,
                   comm::BodyCarrier& bodies);

  // Does any table need the exchange? The same on all ranks.
  bool needed() const { return needed_; }
  // Does own shard i take part?
  bool shares(size_t shard) const { return shared_[shard]; }
  // Column ranges that an own shard contributes.
  std::span<const compute::ColumnRange> ranges(size_t shard) const;

  // rows[i]: the touched rows of own shard i, ascending, counted from the part's first, in the memory
  // of the back end. Makes room for sums(): what an operation is to fill in, [rows, ranges, values].
  void prepare(std::span<const std::span<const int64_t>> rows);
  float* sums(size_t shard) { return own_sums_[shard]; }

  // Writes the messages into buffer: bodies only.
  void pack(comm::MessageBuffer& buffer);
  std::span<const comm::ConstBytes> messages() const { return messages_; }

  // Adds up: totals() are [rows, values] of each own shard that shares. Throws CORRUPT_DATA.
  void add_up(std::span<const comm::ConstBytes> messages);
  const float* totals(size_t shard) const { return totals_[shard]; }

 private:
  // Another part of the table whose rows overlap those of an own shard.
  struct Neighbour {
    int32_t part = 0;
    // Of the step: touched rows of the own shard in the overlap, as positions, and their sums.
    int64_t first_unique = 0;
    int64_t last_unique = 0;
    const float* sums = nullptr;
  };
  // A piece of a message from `source`: what its shard of `part` adds to an own one.
  struct Arrival {
    int source = 0;
    int32_t part = 0;
    size_t shard = 0;
    size_t neighbour = 0;  // of that shard
  };
  // One column range of a contribution while it is added up: its first column, of the table.
  struct Range {
    int64_t col = 0;
    compute::RowAddend addend;
  };

  const Part& own_part(size_t shard) const;
  std::span<const compute::ColumnRange> ranges_of(int32_t part) const;
  size_t floats_per_row(int32_t part) const;
  // Finds the touched rows in the overlaps with neighbours.
  void find_overlaps();
  void open(std::span<const comm::ConstBytes> messages);
  void list_addends(size_t shard);

  const Layout& layout_;
  compute::Backend& backend_;
  bool needed_ = false;
  std::vector<int> values_;                         // by table
  std::vector<bool> shared_;                        // by own shard
  std::vector<std::vector<Neighbour>> neighbours_;  // by own shard, in part order
  std::vector<Arrival> arrivals_;                   // in the order of the messages
  std::map<int32_t, std::vector<compute::ColumnRange>>
      ranges_;                                  // by part, of those that are shared
  std::vector<std::span<const int64_t>> rows_;  // by own shard
  compute::Buffer memory_;
  std::vector<float*> own_sums_;  // by own shard; null where not shared
  std::vector<float*> totals_;
  std::vector<comm::ConstBytes> messages_;
  std::unique_ptr<comm::ReceivedBodies> received_;
  std::vector<int64_t> bounds_;  // of the overlaps, first and last row of each, counted as rows_
  std::vector<int64_t> before_;  // touched rows before each bound
  std::vector<compute::RowSearch> searches_;
  std::vector<Range> ranges_of_shard_;       // while they are sorted
  std::vector<compute::RowAddend> addends_;  // of all shards
  std::vector<compute::RowTotals> sums_of_shards_;
};

}  // namespace shardrec::embedding
