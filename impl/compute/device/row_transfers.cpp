#include "compute/device/row_transfers.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/error.h"

namespace shardrec::compute::device {

RowTransfers::RowTransfers(std::shared_ptr<Stream> stream, Backend& host)
    : stream_(std::move(stream)), host_(host), arguments_(stream_), rows_(make_memory(stream_)) {}

void RowTransfers::to_host(std::span<const RowTransfer> transfers) {
  for (const RowTransfer& transfer : transfers) {
    if (transfer.rows != 0 && transfer.width != 0) to_host(transfer);
  }
}

void RowTransfers::from_host(std::span<const RowTransfer> transfers) {
  for (const RowTransfer& transfer : transfers) {
    if (transfer.rows != 0 && transfer.width != 0) from_host(transfer);
  }
}

void RowTransfers::copy(const shardrec_cuda_row_copy& rows) {
  require(table().copy_rows(stream_->handle(), &rows),
          core::sentence("copy rows on device ", stream_->device()));
}

// The rows as they are on the device, side by side, then as the target wants them.
void RowTransfers::to_host(const RowTransfer& transfer) {
  const RowSource& from = transfer.from;
  const int64_t width = transfer.spread ? 1 : transfer.width;
  const size_t bytes = element_bytes(from.element);
  const size_t row_bytes = static_cast<size_t>(width) * bytes;
  const size_t all = static_cast<size_t>(transfer.rows) * row_bytes;
  std::byte* const side_by_side = rows_.resize(all);
  const int64_t* numbers = nullptr;
  if (from.numbers != nullptr) {
    const std::span<const int64_t> list(from.numbers, static_cast<size_t>(transfer.rows));
    arguments_.begin(Arguments::bytes_of<int64_t>(list.size()));
    numbers = arguments_.add(list);
    arguments_.send();
  }
  copy({.from = from.data,
        .to = side_by_side,
        .from_stride = static_cast<int64_t>(from.stride * bytes),
        .to_stride = static_cast<int64_t>(row_bytes),
        .from_numbers = numbers,
        .to_numbers = nullptr,
        .rows = transfer.rows,
        .row_bytes = static_cast<int64_t>(row_bytes)});
  std::byte* const here = pinned_.resize(all);
  stream_->copy(here, side_by_side, all);
  stream_->wait();
  RowTransfer rest = transfer;
  rest.from = {.data = here, .element = from.element, .stride = static_cast<size_t>(width)};
  host_.convert_on_host({&rest, 1});
}

// Of rows with the same number the last one counts, and the others do not travel.
void RowTransfers::list_last_of_each(const int64_t* numbers, int64_t rows) {
  order_.resize(static_cast<size_t>(rows));
  std::iota(order_.begin(), order_.end(), int64_t{0});
  std::sort(order_.begin(), order_.end(), [&](int64_t a, int64_t b) {
    return numbers[a] != numbers[b] ? numbers[a] < numbers[b] : a < b;
  });
  size_t kept = 0;
  for (size_t i = 0; i < order_.size(); ++i) {
    const bool last = i + 1 == order_.size() || numbers[order_[i]] != numbers[order_[i + 1]];
    if (last) order_[kept++] = order_[i];
  }
  order_.resize(kept);
  numbers_.clear();
  for (const int64_t row : order_) numbers_.push_back(numbers[row]);
}

void RowTransfers::from_host(const RowTransfer& transfer) {
  const RowTarget& to = transfer.to;
  const size_t bytes = element_bytes(to.element);
  const size_t row_bytes = static_cast<size_t>(transfer.width) * bytes;
  const size_t all = static_cast<size_t>(transfer.rows) * row_bytes;
  std::byte* const here = pinned_.resize(all);
  RowTransfer first = transfer;
  first.to = {.data = here, .element = to.element, .stride = static_cast<size_t>(transfer.width)};
  host_.convert_on_host({&first, 1});
  std::byte* const side_by_side = rows_.resize(all);
  stream_->copy(side_by_side, here, all);
  shardrec_cuda_row_copy rows{.from = side_by_side,
                              .to = to.data,
                              .from_stride = static_cast<int64_t>(row_bytes),
                              .to_stride = static_cast<int64_t>(to.stride * bytes),
                              .from_numbers = nullptr,
                              .to_numbers = nullptr,
                              .rows = transfer.rows,
                              .row_bytes = static_cast<int64_t>(row_bytes)};
  if (to.numbers != nullptr) {
    list_last_of_each(to.numbers, transfer.rows);
    arguments_.begin(2 * Arguments::bytes_of<int64_t>(order_.size()));
    rows.from_numbers = arguments_.add(std::span<const int64_t>(order_));
    rows.to_numbers = arguments_.add(std::span<const int64_t>(numbers_));
    arguments_.send();
    rows.rows = std::ssize(order_);
  }
  copy(rows);
  stream_->wait();  // before what is pinned is written again
}

}  // namespace shardrec::compute::device
