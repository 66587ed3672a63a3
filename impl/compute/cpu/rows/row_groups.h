// RowGroups on the CPU. No sort of the whole batch: occurrences go into buckets by the upper bits of
// their rows, in one pass over all parts; then each bucket, small enough for a cache, is sorted by one
// thread. The result depends neither on threads nor on where the cuts are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compute/cpu/rows/row_sort.h"
#include "compute/cpu/tasks/context.h"
#include "compute/row_groups.h"
#include "core/memory.h"

namespace shardrec::compute::cpu {

class BucketedRows final : public RowGroups {
 public:
  // context outlives it.
  explicit BucketedRows(const Context& context)
      : context_(context),
        sorted_memory_(context.memory),
        bag_memory_(context.memory),
        unique_memory_(context.memory) {}

  void build(std::span<const GroupedPart> parts, bool weighted, int64_t most_samples) override;
  int64_t most_rows(size_t part) const override { return std::ssize(parts_[part].rows); }
  const int64_t* row_count(size_t) const override { return nullptr; }
  bool counted() override { return true; }
  std::span<const int64_t> rows(size_t part) override { return parts_[part].rows; }
  std::span<const int64_t> run(size_t part) override { return parts_[part].run; }
  void describe(size_t part, RowUpdate& job) const override;

 private:
  struct OfPart {
    GroupedPart given;
    bool wide = false;  // rows need 64 bits
    int64_t occurrences = 0;
    int64_t bags = 0;
    int shift = 0;  // bucket of a row: row >> shift
    size_t buckets = 0;
    size_t first_bucket = 0;
    std::byte* entries[2] = {};
    std::span<uint32_t> bag_of;
    std::span<float> weight_of;  // empty: all 1
    std::span<uint32_t> block_of;
    std::span<int64_t> rows;
    std::span<int64_t> run;
  };
  // Bags of one block from one source, read by one thread.
  struct Task {
    size_t part = 0;
    const GroupedBlock* block = nullptr;
    BagCursor from;
    BagCursor to;
    int64_t first_bag = 0;      // ordinal among the part's of the block's first row
    uint32_t* place = nullptr;  // by bucket: occurrences, then where the next one goes
  };
  struct Bucket {
    size_t part = 0;
    int64_t begin = 0;  // among the part's occurrences
    int64_t end = 0;
    int side = 0;  // of entries, when sorted
    // Of a row that so many of them name that they are not sorted with the others.
    int64_t common = 0;
    int64_t common_row = 0;
    int64_t before_common = 0;  // others, in its order
    int64_t unique = 0;
    int64_t first_unique = 0;
  };

  void measure(std::span<const GroupedPart> parts);
  void cut_tasks();
  void make_room(bool weighted);
  static void count(const OfPart& part, const Task& task);
  void place_buckets();
  void place_rows();
  template <class Row, bool kWeighted>
  void write(const Task& task) const;
  template <class Row, bool kWeighted>
  void sort(Bucket& bucket) const;
  template <class Row, bool kWeighted>
  void take_common(Bucket& bucket, std::span<Occurrence<Row, kWeighted>> entries) const;
  template <class Row, bool kWeighted>
  void list(const Bucket& bucket) const;

  const Context& context_;
  int64_t blocks_per_feature_ = 0;
  std::vector<OfPart> parts_;
  std::vector<Task> tasks_;
  std::vector<Bucket> buckets_;
  Buffer sorted_memory_;  // bag and weight of each occurrence
  Buffer bag_memory_;     // block of each bag
  Buffer unique_memory_;  // rows, run
};

}  // namespace shardrec::compute::cpu
