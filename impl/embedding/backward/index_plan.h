// Step 4 of the exchange: the occurrences of the rows of this rank's parts in one batch, grouped by
// row, in canonical order: (feature in model order, global sample, position in the bag).
//
// No sort of the whole batch: occurrences go into buckets by the upper bits of their rows, in one
// pass over all parts; then each bucket, small enough for a cache, is sorted by one thread. The
// result depends neither on threads nor on where the cuts are.
//
// It knows bags, not where their gradients lie, so that it can be built as soon as the ids have
// arrived: while the sums of other ranks travel, ahead of backward.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "compute/kernels.h"
#include "core/memory.h"
#include "core/threads.h"
#include "embedding/backward/index_sort.h"
#include "embedding/exchange/inbox.h"
#include "embedding/tables/layout.h"
#include "embedding/tables/step_context.h"

namespace shardrec::embedding {

class IndexPlan {
 public:
  // Of the rank's own parts, in the order of Layout::parts_of().
  explicit IndexPlan(const Layout& layout);

  // Of the batch in the inbox. wanted: by part, does it take part? The work memory of the context is
  // free again on return.
  void build(const Inbox& inbox, std::span<const uint8_t> wanted, const StepContext& context);
  // Forgets the batch.
  void clear() { built_ = false; }
  // Is it that of the batch since the last clear(), of just these parts?
  bool built(std::span<const uint8_t> wanted) const {
    return built_ && std::equal(wanted.begin(), wanted.end(), wanted_.begin(), wanted_.end());
  }

  std::span<const int64_t> rows(size_t part) const { return parts_[part].rows; }  // ascending
  std::span<const int64_t> run(size_t part) const { return parts_[part].run; }    // [rows + 1]
  size_t memory() const {
    return sorted_memory_.capacity() + bag_memory_.capacity() + unique_memory_.capacity();
  }

  // Throws UNSUPPORTED where a part has 2^32 ids and more: the plan is then without it. A batch that
  // is only looked up may have them.
  void check() const;

  // Of a part: its bags that are not empty (of a sequence, its ids) are numbered feature after
  // feature, source after source, in the order of the batch.
  int64_t bags(size_t part) const { return parts_[part].bags; }

  // Fills in the fields of a job that say which bags go to which row, and the block of each bag.
  void describe(size_t part, compute::RowUpdate& job) const;

 private:
  struct OfPart {
    // Of the layout.
    const Part* part = nullptr;
    size_t first_block = 0;  // in Layout::blocks_of(own rank)
    size_t features = 0;
    bool wide = false;  // rows need 64 bits
    // Of the batch.
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
    int source = 0;
    size_t block = 0;  // of the rank's blocks
    compute::BagCursor from;
    compute::BagCursor to;
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

  void measure(const Inbox& inbox, std::span<const uint8_t> wanted);
  void cut_tasks(const Inbox& inbox);
  void make_room(bool weighted, core::Scratch& work);
  void count(const Inbox& inbox, const Task& task) const;
  void place_buckets();
  void place_rows();
  template <class Row, bool kWeighted>
  void write(const Inbox& inbox, const Task& task) const;
  template <class Row, bool kWeighted>
  void sort(Bucket& bucket) const;
  template <class Row, bool kWeighted>
  void take_common(Bucket& bucket, std::span<Occurrence<Row, kWeighted>> entries) const;
  template <class Row, bool kWeighted>
  void list(const Bucket& bucket) const;

  const Layout& layout_;
  std::vector<OfPart> parts_;
  std::vector<uint8_t> wanted_;  // by part
  bool built_ = false;
  int64_t most_occurrences_ = 0;  // of a part
  std::vector<Task> tasks_;
  std::vector<Bucket> buckets_;
  core::Scratch sorted_memory_;  // bag and weight of each occurrence
  core::Scratch bag_memory_;     // block of each bag
  core::Scratch unique_memory_;  // rows, run
};

}  // namespace shardrec::embedding
