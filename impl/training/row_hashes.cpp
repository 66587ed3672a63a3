#include "training/row_hashes.h"

#include <algorithm>

#include "compute/booked_memory.h"
#include "compute/transfer_operations.h"
#include "core/hash.h"

namespace shardrec::training {
namespace {

// A block is of so many rows and bytes at most: its rows' hashes are a short message, of which every rank gets all ranks'.
constexpr int64_t kBlockRows = 4096;
constexpr size_t kBlockBytes = size_t{1} << 20;

template <class Bits>
void make_nans_one(std::span<std::byte> bytes, Bits infinity) {
  constexpr auto kMagnitude = static_cast<Bits>(static_cast<Bits>(~Bits{0}) >> 1);
  auto* const elements = static_cast<Bits*>(static_cast<void*>(bytes.data()));
  for (size_t i = 0; i < bytes.size() / sizeof(Bits); ++i) {
    if ((elements[i] & kMagnitude) > infinity) elements[i] = kMagnitude;
  }
}

void make_nans_one(std::span<std::byte> bytes, compute::Element element) {
  switch (element) {
    case compute::Element::kFloat32:
      return make_nans_one(bytes, uint32_t{0x7F800000});
    case compute::Element::kFloat16:
      return make_nans_one(bytes, uint16_t{0x7C00});
    case compute::Element::kBfloat16:
      return make_nans_one(bytes, uint16_t{0x7F80});
  }
}

}  // namespace

RowHashes::RowHashes(embedding::Collection& collection)
    : collection_(collection),
      rows_(compute::book(compute::cpu_memory(), collection.counters().buffer_bytes)) {}

int64_t RowHashes::block_rows(const embedding::StoredPiece& piece) {
  return std::min(kBlockRows, compute::rows_at_once(piece.row_bytes(), kBlockBytes));
}

uint64_t RowHashes::of_piece(const embedding::StoredPiece& piece) {
  const std::vector<uint64_t> blocks = of_blocks(piece);
  return core::hash64(0, std::as_bytes(std::span(blocks)));
}

std::vector<uint64_t> RowHashes::of_blocks(const embedding::StoredPiece& piece) {
  const int64_t most = block_rows(piece);
  std::vector<uint64_t> hashes;
  hashes.reserve(static_cast<size_t>((piece.cells.rows + most - 1) / most));
  for (int64_t first = 0; first < piece.cells.rows; first += most) {
    hashes.push_back(core::hash64(0, read(piece, first, std::min(most, piece.cells.rows - first))));
  }
  return hashes;
}

std::vector<uint64_t> RowHashes::of_rows(const embedding::StoredPiece& piece, int64_t first,
                                         int64_t count) {
  const size_t row_bytes = piece.row_bytes();
  const int64_t most = block_rows(piece);
  std::vector<uint64_t> hashes;
  hashes.reserve(static_cast<size_t>(count));
  for (int64_t begin = first; begin < first + count; begin += most) {
    const auto rows = read(piece, begin, std::min(most, first + count - begin));
    for (size_t at = 0; at < rows.size(); at += row_bytes) {
      hashes.push_back(core::hash64(0, rows.subspan(at, row_bytes)));
    }
  }
  return hashes;
}

std::span<const std::byte> RowHashes::read(const embedding::StoredPiece& piece, int64_t first,
                                           int64_t count) {
  const size_t bytes = static_cast<size_t>(count) * piece.row_bytes();
  const std::span<std::byte> rows(rows_.resize(bytes), bytes);
  const compute::RowTransfer transfer{
      .from = {piece.at_row(first), piece.element, piece.stride},
      .to = {rows.data(), piece.element, static_cast<size_t>(piece.row_width())},
      .rows = count,
      .width = piece.row_width()};
  collection_.backend().transfer().copy_to_host({&transfer, 1});
  make_nans_one(rows, piece.element);
  return rows;
}

}  // namespace shardrec::training
