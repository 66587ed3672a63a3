// The messages between ranks, byte for byte: heads, then bodies (comm/bodies). All numbers are in
// the machine's own order (a group of ranks is of one kind of machine); every section starts at a
// multiple of 8 bytes.
//
// Input message, from a source to the owner of parts. Its head, which the ranks' hosts write and
// read:
//   InputHeader
//   BlockRecord per block (of Layout::blocks_of(owner), ascending) that holds ids, or whose feature has not
//              one bag per sample of the batch; none when the verdict is bad or the batch is empty
// Its body, which operations of back ends write and read (compute/routing_operations.h):
//   per block: lengths   dense: uint32 count per sample of the source's batch;
//                        sparse: (uint32 sample, uint32 count) per bag that is not empty
//              ids       int32, or int64 for tables of 2^31 rows and more; rebased to the part's
//                        row; or, where that is smaller, each different id once, then which of
//                        them each id is, in 1, 2 or 4 bytes (code_bytes)
//              weights   float per id, where the header says so and the feature is pooled
// A rank without peers may have the body elsewhere (LocalBlock): its message to itself is the head alone.
//
// Output message, from an owner to a source: per block that the owner answers, [rows, width]
// floats, each block at a multiple of 64 bytes. A row per bag that is not empty; of a sequence, a
// row per id, or per different id where the ids travelled so.
//
// Where partial sums are added up on their node (node_sums.h), an owner's message to a rank of its
// node begins with what that rank is to add, by source and block: a PartialHeader of each, then, at
// a multiple of 64 bytes, of each a bit per sample that says whether there is a row of its bag, and
// the rows at a multiple of 64 bytes. The message of sums, from that rank to the source: per
// feature and segment, [rows, columns] floats, each at a multiple of 64 bytes; a row per bag of
// which any part of the node has ids.
//
// Gradient message, from a source to an owner: GradientHeader, then blocks as in the output
// message, of every block; of a sequence, always a row per id. Then, where the header says so, the
// pooled blocks once more, neither divided by the divisor nor clamped. Inside one process, where
// the header says so, blocks are lent in place of being in the message: which, and where their rows
// lie, says what the header names (lending.h).
//
// Where the collection's options say so, the blocks of output and gradient messages travel in fewer
// bytes: compression.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compute/bags.h"
#include "compute/id_sections.h"
#include "compute/kernels.h"
#include "core/align.h"
#include "embedding/batch/verdict.h"

namespace shardrec::embedding {

using compute::SparseLength;
using core::align_up;

struct InputHeader {
  int64_t batch_size = 0;
  uint8_t weighted = 0;
  uint8_t no_more_data = 0;
  uint8_t has_blocks = 0;
  uint8_t weight_gradient = 0;  // option of the lookup, the same on all ranks
  uint32_t records = 0;
  int64_t looked_up = 0;  // ids that the source has looked up so far, in all batches before
  Verdict verdict;
};

struct BlockRecord {
  uint64_t ids = 0;
  uint32_t bags = 0;     // not empty
  uint32_t samples = 0;  // bags of the feature in the source's batch, empty ones included
  uint32_t sparse = 0;
  uint32_t unique = 0;  // different ids, where they travel once; 0: every id travels
  uint32_t block = 0;   // its number
  uint32_t reserved = 0;
};

// What the body would hold of a block.
struct LocalBlock {
  const uint32_t* lengths = nullptr;  // dense
  compute::Ids ids;
  const float* weights = nullptr;  // null: all 1
};

struct PartialHeader {
  uint32_t samples = 0;
  uint32_t rows = 0;
};

enum class GradientVerdict : uint32_t { kApply, kSkip, kError };

// Who reads blocks of a gradient message where the source's caller keeps them.
enum class Lends : uint32_t {
  kNothing,
  kToItself,   // the source, of its message to itself
  kToProcess,  // all ranks, which are of the source's process
};

struct GradientHeader {
  GradientVerdict decision = GradientVerdict::kApply;
  uint32_t accumulate = 0;  // 1: the gradients are kept for a later step
  Verdict verdict;
  uint64_t settings = 0;  // TrainingSettings::fingerprint, of the step that would be applied
  uint32_t unscaled = 0;  // 1: the second section is there
  Lends lends = Lends::kNothing;
  uint64_t lending = 0;  // number of what is lent (LendingNumber), where anything is
};
static_assert(sizeof(GradientHeader) == 64);

// Where the body of an input message begins: behind the header and the records.
constexpr size_t input_head_bytes(size_t records) {
  return align_up(sizeof(InputHeader), 8) + records * sizeof(BlockRecord);
}
static_assert(sizeof(BlockRecord) % 8 == 0);

// Lengths go in the smaller of the two forms; ties go dense.
constexpr bool sparse_is_smaller(int64_t bags, int64_t samples) { return 2 * bags < samples; }

constexpr size_t lengths_bytes(const BlockRecord& block) {
  return align_up(
      block.sparse != 0 ? block.bags * sizeof(SparseLength) : block.samples * sizeof(uint32_t), 8);
}
constexpr size_t ids_bytes(const BlockRecord& block, bool ids_are_64) {
  return compute::id_section_bytes(block.ids, block.unique, ids_are_64);
}
constexpr size_t weights_bytes(const BlockRecord& block, bool weighted) {
  return weighted ? align_up(block.ids * sizeof(float), 8) : 0;
}
constexpr int64_t presence_words(int64_t samples) { return (samples + 63) / 64; }
constexpr size_t presence_bytes(int64_t samples) {
  return align_up(static_cast<size_t>(presence_words(samples)) * sizeof(uint64_t), 64);
}
constexpr size_t partial_head_bytes(size_t partials) {
  return align_up(partials * sizeof(PartialHeader), 64);
}
constexpr size_t rows_bytes(int64_t rows, int64_t width) {
  return align_up(static_cast<size_t>(rows) * static_cast<size_t>(width) * sizeof(float), 64);
}

}  // namespace shardrec::embedding
