// RowGroups on a device: one stable sort of the occurrences of all parts, by rows that are counted
// through over the parts. How many rows each part has, operations read on the device; the host does when it is
// asked, once for all parts.
//
// They are built in another stream than that of the back end's other operations, and all memory here is in its
// order. The two streams wait for each other: a build for operations that have written the blocks, and have read
// the groups before; operations that read the groups, or write to the memory of the blocks, for the build.
//
// Thread rule: that of the streams.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "compute/cuda/host/bag_index.h"
#include "compute/cuda/host/results.h"
#include "compute/cuda/host/tiles.h"
#include "compute/row_groups.h"

namespace shardrec::compute::cuda::host {

class SortedRows final : public RowGroups {
 public:
  // stream: where groups are built; operations: the stream of what reads them.
  SortedRows(std::shared_ptr<Stream> stream, std::shared_ptr<Stream> operations);
  ~SortedRows() override;

  [[nodiscard]] bool fork() override;
  // Bags are those of checked blocks. Does not wait.
  void build(std::span<const GroupedPart> parts, bool weighted, int64_t most_samples) override;
  void join() override;

  int64_t most_rows(size_t part) const override { return parts_[part].occurrences; }
  const int64_t* row_count(size_t part) const override { return job_.row_counts + part; }
  bool counted() override;
  std::span<const int64_t> rows(size_t part) override { return {parts_[part].rows, rows_of(part)}; }
  std::span<const int64_t> run(size_t part) override {
    return {parts_[part].run, rows_of(part) + 1};
  }
  void describe(size_t part, RowUpdate& job) const override;

 private:
  struct Sizes {
    int64_t occurrences = 0;
    int64_t bags = 0;
    uint64_t keys = 0;
  };

  void enqueue(std::span<const GroupedPart> parts, bool weighted, int64_t most_samples);
  Sizes list(std::span<const GroupedPart> parts, uint32_t blocks_per_feature);
  void make_room(const Sizes& sizes, bool weighted);
  // Waits.
  size_t rows_of(size_t part) {
    counted();
    return static_cast<size_t>(results_.get<int64_t>()[part]);
  }

  std::shared_ptr<Stream> stream_;
  std::shared_ptr<Stream> operations_;
  Event fork_;              // in operations_
  bool is_forked_ = false;  // for the next build
  bool is_joined_ = true;   // operations_ is behind the last build
  uint64_t joined_at_ = 0;  // events from this place of operations_ on are behind it
  BagIndex index_;
  Arguments arguments_;
  Results results_;
  // What stays: bags and weights of occurrences, blocks of bags, rows and runs.
  Buffer sorted_;
  Buffer bags_;
  Buffer unique_;
  // Keys and values, unsorted and sorted, and the room of the sort.
  Buffer work_;
  Buffer room_;
  shardrec_cuda_row_grouping job_ = {};
  std::vector<const Bags*> indexed_;
  std::vector<shardrec_cuda_grouped_block> blocks_;
  Tiles block_tiles_;
  std::vector<shardrec_cuda_grouped_part> parts_;
  Tiles part_tiles_;
  std::vector<size_t> first_bag_;  // by part: bags of the parts before
  uint32_t* block_of_ = nullptr;   // by bag of all parts
};

}  // namespace shardrec::compute::cuda::host
