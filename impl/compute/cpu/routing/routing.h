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

// A block while it is counted or written.
struct BlockWriter : BlockSections {
  int64_t ids_done = 0;
  int64_t bags_done = 0;
  int64_t last_sample = -1;
  int64_t next_chunk = 0;
};

class IdRouting {
 public:
  void count(std::span<const RoutedIds> features, std::span<CheckedIds> checked,
             std::span<BlockCount> counts, const Context& context);
  void write(std::span<const RoutedIds> features, std::span<const BlockSections> blocks,
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

  std::vector<BlockWriter> writers_;  // by block
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

// Of one feature. writers: of all blocks; where a feature is counted, their counts are 0.
CheckedIds count_whole(const RoutedIds& feature, std::span<BlockWriter> writers);
CheckedIds count_cut(const RoutedIds& feature, std::span<BlockWriter> writers);
CheckedIds count_streams(const RoutedIds& feature, std::span<BlockWriter> writers);
// out_of_range: of the ids. Without with_ids, everything but the ids is written.
void write_whole(const RoutedIds& feature, bool with_ids, int64_t out_of_range,
                 std::span<const BlockWriter> writers);
void write_cut(const RoutedIds& feature, std::span<BlockWriter> writers);
void write_streams(const RoutedIds& feature, std::span<const BlockWriter> writers);
// Writes ids [first, last) of a feature that writes_in_pieces. Are all of them in range?
bool narrow_ids(const RoutedIds& feature, int64_t first, int64_t last,
                std::span<const BlockWriter> writers, const Kernels& kernels);

}  // namespace shardrec::compute::cpu
