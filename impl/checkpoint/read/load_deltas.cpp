#include "checkpoint/read/load_deltas.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/error.h"

namespace shardrec::checkpoint {
namespace {

using Part = std::tuple<int32_t, int32_t, int32_t>;

Part part_of(const BoxNote& note) { return {note.collection, note.table, note.part}; }
Part part_of(const ManifestTensor& tensor) {
  return {tensor.collection, tensor.table, static_cast<int32_t>(tensor.part)};
}

bool share_cells(const BoxNote& note, const ManifestTensor& tensor) {
  return !plan::intersect(note.cells, tensor.cells).empty();
}

}  // namespace

DeltaLoader::DeltaLoader(const Opened& delta, const LoadedBoxes& boxes,
                         std::span<NarrowedTable> narrowed, core::Control* control,
                         core::Environment& environment)
    : delta_(delta),
      boxes_(boxes),
      narrowed_(narrowed),
      files_(delta, environment),
      lists_(delta, files_, control) {
  for (const BoxNote& note : boxes_.notes) {
    if (note.rank == boxes_.rank) own_[part_of(note)].push_back(&note);
  }
}

std::span<const BoxNote* const> DeltaLoader::boxes_of(const ManifestTensor& tensor) const {
  const auto found = own_.find(part_of(tensor));
  return found == own_.end() ? std::span<const BoxNote* const>() : found->second;
}

bool DeltaLoader::is_read(const ManifestTensor& tensor) const {
  return std::ranges::any_of(boxes_of(tensor),
                             [&](const BoxNote* note) { return share_cells(*note, tensor); });
}

bool DeltaLoader::is_counted(const ManifestTensor& tensor) const {
  if (narrowed_.empty()) return false;
  int32_t first = boxes_.rank;
  for (const BoxNote& note : boxes_.notes) {
    if (part_of(note) == part_of(tensor) && share_cells(note, tensor)) {
      first = std::min(first, note.rank);
    }
  }
  return first == boxes_.rank;
}

int64_t DeltaLoader::bytes_to_read() const {
  int64_t total = 0;
  std::set<int32_t> lists;
  for (const ManifestTensor& tensor : delta_.manifest.tensors) {
    if (!is_read(tensor)) continue;
    total += bytes_of(tensor);
    if (lists.insert(tensor.listed->list).second) {
      total += bytes_of(delta_.manifest.lists[static_cast<size_t>(tensor.listed->list)]);
    }
  }
  return total;
}

void DeltaLoader::run() {
  int32_t list = -1;
  for (const ManifestTensor& tensor : delta_.manifest.tensors) {
    if (!is_read(tensor)) continue;
    // Tensors of a list follow one another, but for what another release may write.
    if (std::exchange(list, tensor.listed->list) != list) lists_.forget();
    const bool counted = is_counted(tensor);
    lists_.for_each_chunk(tensor,
                          [&](std::span<const int64_t> rows, std::span<const std::byte> bytes) {
                            if (counted) count_narrowed(tensor, rows, bytes);
                            write(tensor, rows, bytes);
                          });
  }
  lists_.forget();
  files_.close();
}

void DeltaLoader::write(const ManifestTensor& tensor, std::span<const int64_t> rows,
                        std::span<const std::byte> bytes) {
  const int64_t row_bytes = tensor.layout.row_bytes(tensor.cells.cols);
  for (const BoxNote* const note : boxes_of(tensor)) {
    if (!share_cells(*note, tensor)) continue;
    const BoxTensor& box = *boxes_.own[static_cast<size_t>(note->index)];
    if (tensor.layout.by_row &&
        (tensor.cells.col != box.cells.col || tensor.cells.cols != box.cells.cols)) {
      const std::string& name = delta_.manifest.table_of(tensor).name;
      core::fail(SHARDREC_UNSUPPORTED,
                 core::sentence("the checkpoint ", delta_.directory, " changes the optimizer state",
                                " of table \"", name, "\" over other columns than this plan has"),
                 {.table = name, .path = delta_.directory});
    }
    const plan::Rectangle cells = plan::intersect(box.cells, tensor.cells);
    const auto first = std::ranges::lower_bound(rows, cells.row);
    const auto last = std::lower_bound(first, rows.end(), cells.row + cells.rows);
    const std::byte* const from =
        bytes.data() + (first - rows.begin()) * row_bytes +
        (tensor.layout.by_row ? 0 : (cells.col - tensor.cells.col) * tensor.layout.element_bytes());
    numbers_.assign(first, last);
    for (int64_t& row : numbers_) row -= box.cells.row;
    if (box.layout.dtype == tensor.layout.dtype) {
      write_listed_cells(box, numbers_, cells.col, cells.cols, from, row_bytes);
    } else {
      converter_.write_listed_cells(box, numbers_, {.col = cells.col, .cols = cells.cols},
                                    {from, row_bytes, tensor.layout.dtype});
    }
  }
}

void DeltaLoader::count_narrowed(const ManifestTensor& tensor, std::span<const int64_t> rows,
                                 std::span<const std::byte> bytes) {
  if (tensor.part != TablePart::kWeights) return;
  const int64_t row_bytes = tensor.layout.row_bytes(tensor.cells.cols);
  for (NarrowedTable& table : narrowed_) {
    if (table.collection != tensor.collection || table.table != tensor.table) continue;
    const auto count = std::ranges::lower_bound(rows, table.rows) - rows.begin();
    table.saturated +=
        beyond_float16(bytes.first(static_cast<size_t>(count * row_bytes)), tensor.layout.dtype);
  }
}

}  // namespace shardrec::checkpoint
