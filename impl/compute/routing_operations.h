// The family of operations that check a batch as its caller gave it (integers in, checked numbers out, and the
// first one that is wrong), send its ids to the ranks that own their rows, on the source, and take them in,
// on the owner. Ids travel in blocks: those of one feature that fall into one range of rows of its table. A
// block has sections, each at a multiple of 8 bytes of a message: bag lengths, dense or sparse (bags.h), ids
// less the first row of the range, and weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "compute/bags.h"
#include "compute/kernels.h"
#include "shardrec/options.h"

namespace shardrec::compute {

// int32 or int64.
struct Integers {
  const void* data = nullptr;
  bool is_64 = false;
};

struct WrongInteger {
  int64_t position = -1;  // -1: none is wrong
  int64_t value = 0;
  int64_t before = 0;  // of an offset: the one before it
};

// The lengths of the bags of one feature: of the given integers, those from `first` on, or the
// differences of one more offsets. A length is wrong where it is not in [0, most], an offset where it
// is less than the one before. Differences fit 32 bits: the caller has compared the last offset.
struct BagLengths {
  Integers given;
  bool are_offsets = false;
  int64_t first = 0;
  int64_t bags = 0;
  int64_t most = 0;         // of lengths
  uint32_t* out = nullptr;  // [bags]
};
struct CheckedLengths {
  int64_t sum = 0;  // of the lengths; of offsets, the last one
  WrongInteger wrong;
};

// The samples of each bag of one feature, ascending: of sample s the bag is number bag_of[first + s].
// A number is wrong where it is not in [0, bags).
struct SamplesByBag {
  Integers bag_of;
  int64_t first = 0;
  int64_t count = 0;  // of samples
  int64_t bags = 0;
  uint32_t* starts = nullptr;   // [bags + 1]: where the samples of each bag begin
  uint32_t* samples = nullptr;  // [count]
};

// A block that the ids of an interval of rows go to.
struct BlockTarget {
  size_t block = 0;
  int64_t row = 0;  // first one of the block's range: ids are written less it
};

// Where the ids of a table go: interval i is rows [cuts[i], cuts[i + 1]), and its ids go to
// targets[first_target[i] .. first_target[i + 1]) of their feature. Everything is the host's.
struct RowIntervals {
  std::span<const int64_t> cuts;          // [intervals + 1]
  std::span<const int32_t> first_target;  // [intervals + 1]
  int64_t even = 0;                       // length of all intervals but the last; 0: uneven
  uint64_t reciprocal = 0;                // upper half of row * reciprocal = row / even; 0: divide
  // Has every target one interval, and are there at most kMostStreams of them?
  bool streams = false;

  size_t count() const { return cuts.size() - 1; }
};
inline constexpr size_t kMostStreams = 64;

// The ids of one feature of the batch, and where they go.
struct RoutedIds {
  Integers ids;  // of the whole batch; those of the feature are [first, first + count)
  int64_t first = 0;
  int64_t count = 0;
  const float* weights = nullptr;     // of the whole batch; null: all 1
  const uint32_t* lengths = nullptr;  // [bags]
  int64_t bags = 0;
  int64_t rows = 0;  // of the table
  shardrec_out_of_range policy = SHARDREC_OUT_OF_RANGE_ERROR;
  bool sequence = false;             // its items are ids, not bags
  bool writes_64 = false;            // ids travel as int64
  std::span<const uint32_t> blocks;  // all that it has, once each; the host's, as targets
  // Null: every block holds all ids of the feature, as they are.
  const RowIntervals* intervals = nullptr;
  std::span<const BlockTarget> targets;  // by interval
  // Written: bag lengths without the ids that are dropped, [bags], by count_ids; the interval of
  // each id, kDroppedId where it goes nowhere, [count], by write_ids. Null: not wanted.
  uint32_t* kept_lengths = nullptr;
  int32_t* interval_of = nullptr;

  int64_t chunks() const { return chunks_of(sequence ? count : bags); }
};

// What the checks of the ids of a feature found.
struct CheckedIds {
  WrongInteger wrong;        // the first id that its policy refuses
  int64_t out_of_range = 0;  // ids that were dropped or clamped
};
struct BlockCount {
  uint32_t ids = 0;
  uint32_t bags = 0;  // not empty
};

// Where a block is written to. chunk_rows and chunk_ids are as those of SentBags.
struct BlockSections {
  uint32_t* dense_lengths = nullptr;  // [bags of the feature], or
  SparseLength* sparse_lengths = nullptr;
  void* ids = nullptr;
  float* weights = nullptr;  // null: not wanted
  uint32_t* chunk_rows = nullptr;
  uint32_t* chunk_ids = nullptr;
};

// Where the blocks of a batch are written to. Of many ranks most get nothing: blocks without ids may be given
// the same sections, of which then only the chunks are written, by all of them alike.
class WrittenBlocks {
 public:
  WrittenBlocks() = default;  // none
  // Sections by block.
  explicit WrittenBlocks(std::span<const BlockSections> sections) : sections_(sections) {}
  // place: by block, which of the sections it has.
  WrittenBlocks(std::span<const uint32_t> place, std::span<const BlockSections> sections)
      : place_(place), sections_(sections) {}

  size_t blocks() const { return place_.empty() ? sections_.size() : place_.size(); }
  size_t place(size_t block) const { return place_.empty() ? block : place_[block]; }
  std::span<const uint32_t> places() const { return place_; }  // none: each block has its own
  std::span<const BlockSections> sections() const { return sections_; }
  const BlockSections& operator[](size_t block) const { return sections_[place(block)]; }

 private:
  std::span<const uint32_t> place_;
  std::span<const BlockSections> sections_;
};

// A written block whose different ids shall travel once where that takes fewer bytes (id_sections.h).
struct PlainBlock {
  size_t lengths_bytes = 0;
  int64_t ids = 0;
  bool is_64 = false;
  size_t weights_bytes = 0;
};
// Blocks of one message, one behind another. They are rewritten in place, each to where the one
// before it ends now. unique, by block: the number of different ids; 0: all of its ids stay.
struct DeduplicatedBlocks {
  std::byte* data = nullptr;
  std::span<const PlainBlock> blocks;
  std::span<int64_t> unique;
};

// What is wrong with the bag lengths of a received block: sparse ones do not ascend by sample, or
// one is 0 or beyond the samples; or there are not as many ids or bags as the block says.
enum class BagDefect : uint8_t { kNone, kOrder, kSum };

// Ids that travelled as codes: out[i] = unique_ids[codes[i]]. A code is wrong where it is not below
// unique.
struct CodedIds {
  const std::byte* codes = nullptr;  // code_bytes(unique) each
  int64_t count = 0;
  Ids unique_ids;
  int64_t unique = 0;
  void* out = nullptr;  // [count], as unique_ids
};

// The lengths of all features of a batch of so many ids, in the order of the features.
struct BatchLengths {
  std::span<const BagLengths> features;  // one at least; all offsets, or none
  std::span<CheckedLengths> checked;     // by feature: written
  int64_t ids = 0;
};

// Where the ids of each feature are, of lengths that were checked. False: as RoutingOperations::count_batch().
inline bool place_ids(const BatchLengths& lengths, std::span<RoutedIds> features) {
  int64_t end = 0;
  for (size_t f = 0; f < features.size(); ++f) {
    const CheckedLengths& checked = lengths.checked[f];
    if (checked.wrong.position >= 0) return false;
    features[f].first = end;
    end = checked.sum + (lengths.features[f].are_offsets ? 0 : end);
    features[f].count = end - features[f].first;
  }
  return end == lengths.ids;
}

class LocalBatch;

// When an operation is over, and the thread rule: backend.h. All results are the host's, and there when the
// calls return.
class RoutingOperations {
 public:
  virtual ~RoutingOperations() = default;
  RoutingOperations(const RoutingOperations&) = delete;
  RoutingOperations& operator=(const RoutingOperations&) = delete;

  // Begin: the caller's batch. The results are by feature.
  virtual void read_lengths(std::span<const BagLengths> features,
                            std::span<CheckedLengths> checked) = 0;
  virtual void sort_samples(std::span<const SamplesByBag> features,
                            std::span<WrongInteger> wrong) = 0;

  // Begin: ids to the owners of their rows, by feature.
  // Checks the ids and counts what each block gets. The check of the ids of a feature all blocks of
  // which hold all of them may be left to write_ids, unless an id of another feature is wrong.
  virtual void count_ids(std::span<const RoutedIds> features, std::span<CheckedIds> checked,
                         std::span<BlockCount> counts) = 0;
  // read_lengths, then count_ids of the features, whose first and count follow from the lengths and are set
  // here: with one wait where it is a device that they are enqueued on. False: a length is wrong, or they do
  // not add up to the batch's ids; then nothing is counted.
  virtual bool count_batch(const BatchLengths& lengths, std::span<RoutedIds> features,
                           std::span<CheckedIds> checked, std::span<BlockCount> counts) {
    read_lengths(lengths.features, lengths.checked);
    if (!place_ids(lengths, features)) return false;
    count_ids(features, checked, counts);
    return true;
  }
  // Writes the blocks, in the forms and of the sizes that follow from the counts. checked: as counted
  // before; a wrong id that is found now is added to it, and the blocks then hold anything.
  virtual void write_ids(std::span<const RoutedIds> features, const WrittenBlocks& blocks,
                         std::span<CheckedIds> checked) = 0;
  virtual void deduplicate_ids(std::span<const DeduplicatedBlocks> messages) = 0;
  // For batches all ids of which stay here (local_batch.h). Null: the host gains nothing by not waiting.
  virtual std::shared_ptr<LocalBatch> make_local_batch() { return nullptr; }

  // Forward, on the owner of rows: what arrived. The results are by block.
  virtual void check_bags(std::span<const Bags> blocks, std::span<BagDefect> defects) = 0;
  virtual void expand_ids(std::span<const CodedIds> blocks, std::span<WrongInteger> wrong) = 0;

 protected:
  RoutingOperations() = default;
};

}  // namespace shardrec::compute
