#include "compute/cpu/transfer/row_transfers.h"

#include <algorithm>
#include <cstring>

namespace shardrec::compute::cpu {
namespace {

// Elements that a task moves, about.
constexpr int64_t kGrainElements = 64 << 10;

const std::byte* row_of(const RowSource& side, int64_t row) {
  const auto number = static_cast<size_t>(side.numbers == nullptr ? row : side.numbers[row]);
  return static_cast<const std::byte*>(side.data) +
         number * side.stride * element_bytes(side.element);
}
std::byte* row_of(const RowTarget& side, int64_t row) {
  const auto number = static_cast<size_t>(side.numbers == nullptr ? row : side.numbers[row]);
  return static_cast<std::byte*>(side.data) + number * side.stride * element_bytes(side.element);
}

template <class Side>
bool is_compact(const Side& side, int64_t width) {
  return side.numbers == nullptr && side.stride == static_cast<size_t>(width);
}

// Rows that numbers name are far from each other: each is asked for some rows ahead, as far as that goes.
constexpr int64_t kRowsAhead = 16;
constexpr size_t kMostPrefetched = 512;
void prefetch(const std::byte* row, size_t bytes) {
  for (size_t at = 0; at < std::min(bytes, kMostPrefetched); at += 64) __builtin_prefetch(row + at);
}

// Elements that lie one behind the other on both sides.
void move(const RowTransfer& transfer, const std::byte* from, std::byte* to, int64_t count,
          const Kernels& kernels) {
  if (transfer.from.element == transfer.to.element) {
    std::memcpy(to, from, static_cast<size_t>(count) * element_bytes(transfer.to.element));
  } else if (transfer.to.element == Element::kFloat32) {
    kernels.widen(from, transfer.from.element, static_cast<float*>(static_cast<void*>(to)), count);
  } else {
    kernels.narrow(static_cast<const float*>(static_cast<const void*>(from)), transfer.to.element,
                   to, count);
  }
}

// The element that has been moved to the first column fills the others.
void spread(const RowTransfer& transfer, std::byte* row) {
  const size_t bytes = element_bytes(transfer.to.element);
  for (int64_t c = 1; c < transfer.width; ++c) {
    std::memcpy(row + static_cast<size_t>(c) * bytes, row, bytes);
  }
}

void move_range(const RowTransfer& transfer, int64_t first, int64_t last, const Kernels& kernels) {
  if (is_compact(transfer.from, transfer.width) && is_compact(transfer.to, transfer.width) &&
      !transfer.spread) {
    move(transfer, row_of(transfer.from, first), row_of(transfer.to, first),
         (last - first) * transfer.width, kernels);
    return;
  }
  const size_t bytes = static_cast<size_t>(transfer.width) * element_bytes(transfer.from.element);
  for (int64_t row = first; row < last; ++row) {
    if (transfer.from.numbers != nullptr && row + kRowsAhead < last) {
      prefetch(row_of(transfer.from, row + kRowsAhead), bytes);
    }
    std::byte* const to = row_of(transfer.to, row);
    move(transfer, row_of(transfer.from, row), to, transfer.spread ? 1 : transfer.width, kernels);
    if (transfer.spread) spread(transfer, to);
  }
}

void move_on_all_threads(const RowTransfer& transfer, const Context& context) {
  if (transfer.rows == 0 || transfer.width == 0) return;
  const int64_t grain = std::max<int64_t>(1, kGrainElements / transfer.width);
  context.threads.parallel_for(transfer.rows, grain, [&](int64_t first, int64_t last) {
    move_range(transfer, first, last, context.kernels);
  });
}

}  // namespace

void copy_rows(std::span<const RowTransfer> transfers, const Context& context) {
  for (const RowTransfer& transfer : transfers) {
    if (transfer.to.numbers != nullptr) {  // in order, for a number may stand there twice
      move_range(transfer, 0, transfer.rows, context.kernels);
    } else {
      move_on_all_threads(transfer, context);
    }
  }
}

void move_rows(std::span<const RowTransfer> transfers, const Context& context) {
  for (const RowTransfer& transfer : transfers) move_on_all_threads(transfer, context);
}

}  // namespace shardrec::compute::cpu
