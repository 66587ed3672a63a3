// What a checkpoint is made of, as it lies in this rank's memory: boxes of tables, and dense
// tensors. Whoever owns the memory describes it; saving reads it, loading fills it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compute/backend.h"
#include "compute/row_bits.h"
#include "core/function_ref.h"
#include "plan/model/model.h"

namespace shardrec::checkpoint {

// A table's weights, or one of its optimizer's states: the values of shardrec_table_part.
enum class TablePart : uint8_t {
  kWeights,  // rows x cols elements of the table's dtype
  kState,    // the first state of the table's optimizer, float32 (plan::states_of)
  kState2,   // the second one
};

// What the elements of a part are.
struct PartLayout {
  bool by_row = false;  // one element per row; else rows x cols
  shardrec_dtype dtype = SHARDREC_FLOAT32;

  int64_t row_width(int64_t cols) const { return by_row ? 1 : cols; }  // elements
  int64_t element_bytes() const;
  int64_t row_bytes(int64_t cols) const { return row_width(cols) * element_bytes(); }

  bool operator==(const PartLayout&) const = default;
};

// Gives the rows of a box that is saved, where the memory of the box may change meanwhile.
class RowReader {
 public:
  virtual ~RowReader() = default;
  RowReader(const RowReader&) = delete;
  RowReader& operator=(const RowReader&) = delete;

  // Rows [first, first + rows), counted from the box's first, one behind the other. A box is read once, from
  // its first row to its last.
  virtual void read(int64_t first, int64_t rows, std::byte* to) = 0;
  // The same of a box that saves a list: some of its rows, in its order.
  virtual void read_listed(std::span<const int64_t> rows, std::byte* to) = 0;

 protected:
  RowReader() = default;
};

inline constexpr int32_t kAllRows = -1;

// A box of a table of this rank. For a state that is one value per row, the columns of `cells` are those
// over which it is taken: all of them for ROW statistics, the box's for SHARD statistics; it is loaded only
// from a state over the same columns.
struct BoxTensor {
  int32_t table = 0;  // index in the model
  TablePart part = TablePart::kWeights;
  PartLayout layout = {};  // what the model says of the part
  plan::Rectangle cells = {};
  std::byte* data = nullptr;  // first element; saving only reads
  int64_t stride = 0;         // elements from row to row: >= layout.row_width(cells.cols)
  // The back end in whose memory it is, where the host does not reach that; null: the host does.
  compute::Backend* backend = nullptr;
  // Saving reads the rows here and not at data, where there is one.
  RowReader* reader = nullptr;
  // Of a delta: index of the list of rows that it saves, else kAllRows.
  int32_t list = kAllRows;
  // The back end that converts elements in the host's memory, where they may be of another dtype than a
  // checkpoint's.
  compute::Backend* converter = nullptr;

  // Are its rows one behind the other?
  bool compact() const { return stride == layout.row_width(cells.cols); }
  std::byte* at_row(int64_t table_row) const {
    return data + (table_row - cells.row) * stride * layout.element_bytes();
  }
};

// The parts of a table, which are in every checkpoint, and what their elements are; throws INTERNAL
// for a part that the table has not.
int part_count(shardrec_optimizer optimizer);
PartLayout layout_of(shardrec_dtype table_dtype, shardrec_optimizer optimizer, TablePart part);
// "weights", "state/exp_avg": the name of a part in manifests and tensor names.
std::string name_of(shardrec_optimizer optimizer, TablePart part);

// Throws INTERNAL when the box does not lie in a table of the model, or has no memory.
void check_box(const BoxTensor& box, const plan::Model& model);

// Tables are written, read and verified in chunks of whole rows, of at most this size where a row
// is not larger.
inline constexpr int64_t kChunkBytes = int64_t{4} << 20;
inline int64_t rows_per_chunk(int64_t row_bytes) {
  return row_bytes >= kChunkBytes ? 1 : kChunkBytes / row_bytes;
}

// Calls take(bytes) for the elements of the box, row by row, chunk by chunk.
void for_each_chunk(const BoxTensor& box, core::FunctionRef<void(std::span<const std::byte>)> take);

// Rows [row, row + rows) of a table that have changed: those whose bits are set, `count` of them.
struct ChangedList {
  int32_t table = 0;  // index in the model
  int64_t row = 0;
  int64_t rows = 0;
  int64_t col = 0;         // of the first box that saves them, for the list's name
  size_t shard = 0;        // of the rank's tables, whose rows they are
  bool of_states = false;  // has its boxes no weights, which another list is of? Likewise
  std::span<const compute::RowWord> bits = {};
  int64_t count = 0;
};

// The same for the rows of the list, which is of the box's rows; and for their numbers in the table, as they are stored.
void for_each_chunk(const BoxTensor& box, const ChangedList& list,
                    core::FunctionRef<void(std::span<const std::byte>)> take);
void for_each_chunk(const ChangedList& list,
                    core::FunctionRef<void(std::span<const std::byte>)> take);

// Fills cells of the table that the box has: their row r is at from + r * from_stride (bytes), in the host's
// memory. Of a part by row, its values of these rows.
void write_cells(const BoxTensor& box, const plan::Rectangle& cells, const std::byte* from,
                 int64_t from_stride);

// Fills columns [col, col + cols) of rows that the box has: of its rows `numbers`, counted from its first, the i-th from
// from + i * from_stride (bytes), in the host's memory. Of a part by row, its values of these rows.
void write_listed_cells(const BoxTensor& box, std::span<const int64_t> numbers, int64_t col,
                        int64_t cols, const std::byte* from, int64_t from_stride);

// Sets every element of the box to 0. zeros: bytes of that value in the host's memory, at least
// zeros_for(box) of them.
void write_zeros(const BoxTensor& box, std::span<const std::byte> zeros);
int64_t zeros_for(const BoxTensor& box);

// Copies `rows` rows of `bytes` bytes inside the host's memory; strides in bytes.
void copy_rows(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride,
               int64_t rows, int64_t bytes);

// A dense tensor in this rank's memory: compact, row-major.
struct DenseTensor {
  std::string name;
  shardrec_dtype dtype = SHARDREC_FLOAT32;
  bool may_miss = false;  // a load leaves it as it is where the checkpoint has none
  std::vector<int64_t> shape;
  std::byte* data = nullptr;

  int64_t bytes() const;
  std::span<std::byte> span() const { return {data, static_cast<size_t>(bytes())}; }
};

// Product of the sizes; the shape comes from a tensor that exists.
int64_t elements_of(std::span<const int64_t> shape);

}  // namespace shardrec::checkpoint
