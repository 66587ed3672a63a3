#include "checkpoint/read/row_lists.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace shardrec::checkpoint {

std::span<const int64_t> RowLists::read(int32_t list) {
  if (const auto found = in_memory_.find(list); found != in_memory_.end()) return found->second;
  const ManifestList& about = delta_.manifest.lists[static_cast<size_t>(list)];
  files_.read(about.stored, 0,
              {});  // its file has the size that the manifest says: memory in proportion to it
  std::vector<int64_t> rows(static_cast<size_t>(about.count));
  const auto height = static_cast<size_t>(rows_per_chunk(kRowNumberBytes));
  for (size_t number = 0; number < about.checksums.size(); ++number) {
    const size_t first = number * height;
    const auto some = std::span(rows).subspan(first, std::min(height, rows.size() - first));
    const auto bytes = std::as_writable_bytes(some);
    files_.read(about.stored, static_cast<int64_t>(first) * kRowNumberBytes, bytes);
    files_.check_chunk(about, static_cast<int64_t>(number), bytes);
    if (control_ != nullptr) control_->advance(std::ssize(bytes));
  }
  int64_t least = about.row;
  for (const int64_t row : rows) {
    if (row < least || row >= about.row + about.rows) {
      core::fail(
          SHARDREC_CORRUPT_DATA,
          core::sentence("the rows \"", about.stored.name, "\" of ", files_.path_of(about.stored),
                         " do not ascend, or are beyond their box, at row ", row),
          {.value = row, .path = files_.path_of(about.stored)});
    }
    least = row + 1;
  }
  return in_memory_.emplace(list, std::move(rows)).first->second;
}

void RowLists::for_each_chunk(const ManifestTensor& tensor, TakeChunk take) {
  const std::span<const int64_t> rows = read(tensor.listed->list);
  const int64_t row_bytes = tensor.layout.row_bytes(tensor.cells.cols);
  const auto height = static_cast<size_t>(tensor.chunk_rows);
  for (size_t number = 0; number < tensor.checksums.size(); ++number) {
    const auto some =
        rows.subspan(number * height, std::min(height, rows.size() - number * height));
    const auto bytes = chunk_.resize_as<std::byte>(some.size() * static_cast<size_t>(row_bytes));
    files_.read(tensor.stored, static_cast<int64_t>(number * height) * row_bytes, bytes);
    files_.check_chunk(tensor, static_cast<int64_t>(number), bytes);
    take(some, bytes);
    if (control_ != nullptr) control_->advance(std::ssize(bytes));
  }
}

}  // namespace shardrec::checkpoint
