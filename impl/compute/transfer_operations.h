// The family of operations that move rows and bytes: between the memory of a back end and the host's, what
// is read, written, saved, loaded and averaged outside of steps; and inside a step, rows in fewer bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "compute/kernels.h"

namespace shardrec::compute {

// Initial values of the rows of a part, side by side: those of their table, row r of the part being
// its row first_row + r.
struct InitialRows {
  void* data = nullptr;  // [rows, width]
  Element element = Element::kFloat32;
  int64_t rows = 0;
  int64_t width = 0;
  int64_t first_row = 0;
  std::span<const ColumnMap> columns;  // they tile [0, width)
  // Uniform in [low, high), from the seed, the table's name, its row and column only.
  int64_t seed = 0;
  std::string_view table;
  float low = 0;
  float high = 0;
};

// Where the rows of a transfer lie: row i begins at element numbers[i] * stride, or i * stride where
// there are no numbers. The numbers are in the host's memory.
struct RowSource {
  const void* data = nullptr;
  Element element = Element::kFloat32;
  size_t stride = 0;  // elements
  const int64_t* numbers = nullptr;
};
struct RowTarget {
  void* data = nullptr;
  Element element = Element::kFloat32;
  size_t stride = 0;
  const int64_t* numbers = nullptr;  // one that stands here several times gets the last of its rows
};

// [rows, width] elements. Both sides have elements of one type, or one has floats: then rows are
// widened exactly, or rounded to nearest. They do not overlap.
struct RowTransfer {
  RowSource from;
  RowTarget to;
  int64_t rows = 0;
  int64_t width = 0;
  bool spread = false;  // from has one element per row, which fills all columns of to
};

// Callers move at most so many bytes at once, or one row that is larger: a back end keeps no more
// memory for it.
inline constexpr size_t kMostTransferred = size_t{4} << 20;
constexpr int64_t rows_at_once(size_t row_bytes, size_t most = kMostTransferred) {
  return row_bytes >= most ? 1 : static_cast<int64_t>(most / row_bytes);
}

// Rows of floats as they travel in fewer bytes: [rows, width] of element, rounded to nearest, where a
// finite float becomes no infinite fp16 (math::within_float16); or,
// with boxes, a RowScale [rows, boxes], then [rows, width] bytes, as Kernels::quantize makes them of
// the columns of each box. The boxes tile the width.
struct RowCoding {
  int64_t rows = 0;
  int64_t width = 0;
  Element element = Element::kFloat32;  // of 16 bits, where there are no boxes
  std::span<const ColumnRange> boxes;
};
struct RowEncoding : RowCoding {
  const float* floats = nullptr;
  std::byte* coded = nullptr;
  // Grows by the numbers beyond fp16's range; null: nobody asks. The CPU's back end alone counts.
  std::atomic<int64_t>* saturated = nullptr;
};
struct RowDecoding : RowCoding {
  const std::byte* coded = nullptr;
  float* floats = nullptr;
};

// Elements that lie side by side in a message of each rank, and their means: the pairwise tree over the rank number
// (comm/collective/reduce.h) of what they are as floats, divided by the number of ranks, rounded to nearest.
struct RankMeans {
  std::span<const std::byte* const> ranks;  // [count] elements of each
  std::byte* means = nullptr;               // [count], another place
  Element element = Element::kFloat32;
  int64_t count = 0;
};

// Rows that have gone on since they were copied, where the copies have become others meanwhile: what the copies have
// gained is added to the rows (math::add_gain), in float32, rounded to nearest. A number that is as it was becomes
// what its copy has become, bit for bit.
struct RowGains {
  RowTarget rows;  // numbers name no row twice
  const std::byte* before =
      nullptr;  // [count, width] of rows.element, side by side: the rows as they were copied
  const std::byte* after = nullptr;  // what the copies have become
  int64_t count = 0;
  int64_t width = 0;
  bool at_least_zero = false;  // a sum of squares: what would be less than 0 becomes 0
};

// When an operation is over, and the thread rule: backend.h.
class TransferOperations {
 public:
  virtual ~TransferOperations() = default;
  TransferOperations(const TransferOperations&) = delete;
  TransferOperations& operator=(const TransferOperations&) = delete;

  // Between the memory of the back end and the host's, or inside either.
  virtual void copy(std::byte* to, const std::byte* from, size_t bytes) = 0;
  // From the memory of another device (Mark::device()), where peers reach each other's.
  virtual void copy_from_device(int32_t /*device*/, std::byte* to, const std::byte* from,
                                size_t bytes) {
    copy(to, from, bytes);
  }

  virtual void fill(const InitialRows& rows) = 0;

  // Outside of steps: rows in the memory of the back end to the host's and back; rows in the host's memory
  // to floats and back. Over when the call returns.
  virtual void copy_to_host(std::span<const RowTransfer> transfers) = 0;
  virtual void copy_from_host(std::span<const RowTransfer> transfers) = 0;
  virtual void convert_on_host(std::span<const RowTransfer> transfers) = 0;

  // Inside the memory of the back end: rows of one type on both sides, whose numbers name no row twice and stay as they
  // are until the operation is over; and means over ranks.
  virtual void move_rows(std::span<const RowTransfer> transfers) = 0;
  virtual void average(const RankMeans& means) = 0;
  // Numbers of rows as move_rows() has them.
  virtual void add_gains(std::span<const RowGains> gains) = 0;

  // Rows of outputs or gradients in fewer bytes, while they travel.
  virtual void encode_rows(std::span<const RowEncoding> blocks) = 0;
  virtual void decode_rows(std::span<const RowDecoding> blocks) = 0;

 protected:
  TransferOperations() = default;
};

}  // namespace shardrec::compute
