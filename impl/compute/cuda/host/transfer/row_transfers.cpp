#include "compute/cuda/host/transfer/row_transfers.h"

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <utility>

namespace shardrec::compute::cuda::host {
namespace {

// Large enough that a copy's latency is little beside it, small beside what callers move at once.
constexpr size_t kPieceBytes = kMostTransferred / 4;

struct Piece {
  int64_t first;  // row
  int64_t rows;
};

// Pieces of a transfer, one after the other.
class Pieces {
 public:
  Pieces(int64_t rows, size_t row_bytes)
      : rows_(rows), height_(rows_at_once(row_bytes, kPieceBytes)) {}

  int64_t count() const { return (rows_ + height_ - 1) / height_; }
  Piece at(int64_t i) const {
    return {.first = i * height_, .rows = std::min(height_, rows_ - i * height_)};
  }

 private:
  int64_t rows_;
  int64_t height_;
};

// From row `row` on. Rows with numbers are those that the numbers say, by the list alone.
template <class Rows>
Rows rows_from(Rows rows, int64_t row) {
  const size_t skipped = static_cast<size_t>(row);
  if (rows.numbers != nullptr) {
    rows.numbers += skipped;
    return rows;
  }
  using Bytes = std::conditional_t<std::is_same_v<Rows, RowSource>, const std::byte, std::byte>;
  rows.data = static_cast<Bytes*>(rows.data) + skipped * rows.stride * element_bytes(rows.element);
  return rows;
}

}  // namespace

RowTransfers::RowTransfers(std::shared_ptr<Stream> stream, TransferOperations& host)
    : stream_(std::move(stream)),
      host_(host),
      arguments_(stream_),
      rows_(make_memory(stream_)),
      halves_{Half{{}, Event(*stream_)}, Half{{}, Event(*stream_)}} {}

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

void RowTransfers::move(std::span<const RowTransfer> transfers) {
  for (const RowTransfer& transfer : transfers) {
    if (transfer.rows == 0 || transfer.width == 0) continue;
    const size_t bytes = element_bytes(transfer.to.element);
    const auto count = static_cast<size_t>(transfer.rows);
    size_t list_bytes = 0;
    for (const int64_t* numbers : {transfer.from.numbers, transfer.to.numbers}) {
      if (numbers != nullptr) list_bytes += Arguments::bytes_of<int64_t>(count);
    }
    const auto on_device = [&](const int64_t* numbers) {
      return numbers == nullptr ? nullptr : arguments_.add(std::span(numbers, count));
    };
    if (list_bytes != 0) arguments_.begin(list_bytes);
    const int64_t* const from_numbers = on_device(transfer.from.numbers);
    const int64_t* const to_numbers = on_device(transfer.to.numbers);
    if (list_bytes != 0) arguments_.send();
    copy({.from = transfer.from.data,
          .to = transfer.to.data,
          .from_stride = static_cast<int64_t>(transfer.from.stride * bytes),
          .to_stride = static_cast<int64_t>(transfer.to.stride * bytes),
          .from_numbers = from_numbers,
          .to_numbers = to_numbers,
          .rows = transfer.rows,
          .row_bytes = static_cast<int64_t>(static_cast<size_t>(transfer.width) * bytes)});
  }
}

void RowTransfers::copy(const shardrec_cuda_row_copy& rows) {
  require(table().copy_rows(stream_->handle(), &rows), "copy rows on device ", stream_->device());
}

// The rows as they are on the device, side by side, then in pieces as the target wants them.
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
  const Pieces pieces(transfer.rows, row_bytes);
  const auto send = [&](int64_t i) {
    const Piece piece = pieces.at(i);
    const size_t piece_bytes = static_cast<size_t>(piece.rows) * row_bytes;
    Half& half = halves_[static_cast<size_t>(i % 2)];
    std::byte* const here = half.room.resize(piece_bytes);
    stream_->copy(here, side_by_side + static_cast<size_t>(piece.first) * row_bytes, piece_bytes);
    half.copied.record(*stream_);
  };
  send(0);
  for (int64_t i = 0; i < pieces.count(); ++i) {
    if (i + 1 < pieces.count()) send(i + 1);
    const Piece piece = pieces.at(i);
    const Half& half = halves_[static_cast<size_t>(i % 2)];
    half.copied.wait();
    RowTransfer rest = transfer;
    rest.from = {
        .data = half.room.data(), .element = from.element, .stride = static_cast<size_t>(width)};
    rest.to = rows_from(transfer.to, piece.first);
    rest.rows = piece.rows;
    host_.convert_on_host({&rest, 1});
  }
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
  std::byte* const side_by_side = rows_.resize(all);
  const Pieces pieces(transfer.rows, row_bytes);
  for (int64_t i = 0; i < pieces.count(); ++i) {
    const Piece piece = pieces.at(i);
    const size_t piece_bytes = static_cast<size_t>(piece.rows) * row_bytes;
    Half& half = halves_[static_cast<size_t>(i % 2)];
    half.copied.wait();
    RowTransfer first = transfer;
    first.from = rows_from(transfer.from, piece.first);
    first.to = {.data = half.room.resize(piece_bytes),
                .element = to.element,
                .stride = static_cast<size_t>(transfer.width)};
    first.rows = piece.rows;
    host_.convert_on_host({&first, 1});
    stream_->copy(side_by_side + static_cast<size_t>(piece.first) * row_bytes, first.to.data,
                  piece_bytes);
    half.copied.record(*stream_);
  }
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
  stream_->wait();
}

}  // namespace shardrec::compute::cuda::host
