// RoutingOperations::count_ids and write_ids on the CPU: a task per feature, for which there are three ways.
// A feature that goes to its blocks whole is copied (routing_whole.cpp), in pieces where its ids
// only have to be narrowed; one whose ranges of rows each go somewhere as a whole is written a
// stream per range (routing_streams.cpp); any other is written id by id (routing_cut.cpp).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compute/cpu/tasks/context.h"
#include "compute/routing_operations.h"

namespace shardrec::compute::cpu {

// What blocks get, counted id by id: last_bag is one more than the last bag that a block got ids of; 0: none.
struct BlockCounts {
  std::span<BlockCount> counts;
  std::span<uint32_t> last_bag;
};

// How far sections have been written. last_bag: as BlockCounts has it.
struct WriteCursor {
  uint32_t ids = 0;
  uint32_t bags = 0;
  uint32_t last_bag = 0;
  uint32_t next_chunk = 0;
};

class IdRouting {
 public:
  void count(std::span<const RoutedIds> features, std::span<CheckedIds> checked,
             std::span<BlockCount> counts, const Context& context);
  void write(std::span<const RoutedIds> features, const WrittenBlocks& blocks,
             std::span<CheckedIds> checked, const Context& context);

 private:
  // A share of the writing of a feature: all but its ids, which others narrow; or ids
  // [first, last) of them.
  struct Piece {
    size_t feature = 0;
    int64_t first = 0;
    int64_t last = 0;
    bool good = true;
  };
  void cut_pieces(std::span<const RoutedIds> features);

  std::vector<uint32_t> last_bags_;   // by block
  std::vector<WriteCursor> cursors_;  // by sections
  std::vector<Piece> pieces_;
};

// Are the ids of a feature checked while they are written, in pieces?
inline bool writes_in_pieces(const RoutedIds& feature) {
  return feature.intervals == nullptr && feature.ids.is_64 && !feature.writes_64 &&
         feature.policy == SHARDREC_OUT_OF_RANGE_ERROR;
}
// Is it written as streams?
inline bool is_streams(const RoutedIds& feature) {
  return feature.intervals != nullptr && feature.intervals->streams && !feature.sequence &&
         feature.interval_of == nullptr;
}

// The first id that the policy refuses.
WrongInteger first_wrong(const RoutedIds& feature);

// Of one feature. counts: of all blocks, 0 before.
CheckedIds count_whole(const RoutedIds& feature, std::span<BlockCount> counts);
CheckedIds count_cut(const RoutedIds& feature, const BlockCounts& counts);
CheckedIds count_streams(const RoutedIds& feature, std::span<BlockCount> counts);
// out_of_range: of the ids. Without with_ids, everything but the ids is written.
void write_whole(const RoutedIds& feature, bool with_ids, int64_t out_of_range,
                 const WrittenBlocks& blocks);
void write_cut(const RoutedIds& feature, const WrittenBlocks& blocks,
               std::span<WriteCursor> cursors);
void write_streams(const RoutedIds& feature, const WrittenBlocks& blocks);
// Writes ids [first, last) of a feature that writes_in_pieces. Are all of them in range?
bool narrow_ids(const RoutedIds& feature, int64_t first, int64_t last, const WrittenBlocks& blocks,
                const Kernels& kernels);

}  // namespace shardrec::compute::cpu
