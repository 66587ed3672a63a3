#include "training/replica_means.h"

#include <algorithm>
#include <utility>

#include "compute/booked_memory.h"
#include "embedding/batch/operations_scope.h"

namespace shardrec::training {
namespace {

// Rows of a block that are listed by their numbers.
constexpr size_t kMostListed = compute::kMostTransferred / sizeof(int64_t);

}  // namespace

ReplicaMeans::ReplicaMeans(const std::shared_ptr<comm::Communicator>& replicas,
                           std::shared_ptr<comm::Channel> channel,
                           std::shared_ptr<embedding::Collection> collection)
    : collection_(std::move(collection)),
      blocks_(replicas, std::move(channel), collection_, nullptr),
      means_(blocks_.backend().memory()),
      changed_(collection_->counters().buffer_bytes),
      numbers_memory_(compute::book(compute::cpu_memory(), collection_->counters().buffer_bytes)) {}

compute::RowTransfer ReplicaMeans::BlockRows::to_block(std::byte* block) const {
  const auto width = static_cast<size_t>(piece.row_width());
  const size_t before = static_cast<size_t>(begin) * compute::element_bytes(piece.element);
  compute::RowTransfer transfer{.from = {piece.at_row(rows.first), piece.element, piece.stride},
                                .to = {block + before, piece.element, width},
                                .rows = rows.count,
                                .width = piece.row_width()};
  if (rows.numbers != nullptr) {
    transfer.from.data = piece.data;
    transfer.from.numbers = rows.numbers;
  }
  return transfer;
}

compute::RowTransfer ReplicaMeans::BlockRows::to_table(const std::byte* block) const {
  const auto width = static_cast<size_t>(piece.row_width());
  const size_t before = static_cast<size_t>(begin) * compute::element_bytes(piece.element);
  compute::RowTransfer transfer{.from = {block + before, piece.element, width},
                                .to = {piece.at_row(rows.first), piece.element, piece.stride},
                                .rows = rows.count,
                                .width = piece.row_width()};
  if (rows.numbers != nullptr) {
    transfer.to.data = piece.data;
    transfer.to.numbers = rows.numbers;
  }
  return transfer;
}

// Operations end before the memory that they read is let go of.
ReplicaMeans::~ReplicaMeans() { embedding::finish_operations(blocks_.backend()); }

void ReplicaMeans::average(comm::Collectives& of_replicas, const comm::Operation& operation) {
  changed_.gather(*collection_, blocks_.backend(), of_replicas, operation);
  const auto pieces = embedding::stored_pieces(collection_->layout(), collection_->shards(),
                                               embedding::PieceUse::kLoad);
  make_room_for_numbers(pieces);
  for (const embedding::StoredPiece& piece : pieces) add_to_block(piece, operation.name);
  average_block(operation.name);
  for (size_t s = 0; s < collection_->shards().size(); ++s) {
    collection_->counters().rows_synced.fetch_add(averaged_rows(s), std::memory_order_relaxed);
  }
  collection_->changed_rows().clear();
  collection_->end_rewrite();
}

int64_t ReplicaMeans::averaged_rows(size_t shard) const {
  return changed_.averaged_rows(*collection_, shard);
}

bool ReplicaMeans::is_listed(size_t shard) const {
  return averaged_rows(shard) < collection_->shards()[shard].rows();
}

void ReplicaMeans::make_room_for_numbers(std::span<const embedding::StoredPiece> pieces) {
  size_t most = 0;
  for (const embedding::StoredPiece& piece : pieces) {
    if (is_listed(piece.shard)) most += static_cast<size_t>(averaged_rows(piece.shard));
  }
  numbers_ = numbers_memory_.resize_as<int64_t>(std::min(most, kMostListed));
}

void ReplicaMeans::add_to_block(const embedding::StoredPiece& piece, const char* operation) {
  if (piece.element != element_) average_block(operation);
  element_ = piece.element;
  const int64_t width = piece.row_width();
  const auto most = static_cast<int64_t>(blocks_.most_bytes() / compute::element_bytes(element_));
  const bool listed = is_listed(piece.shard);
  int64_t left = averaged_rows(piece.shard);
  int64_t next = 0;  // row
  while (left > 0) {
    int64_t count = (most - elements_) / width;
    if (listed) count = std::min(count, static_cast<int64_t>(numbers_.size() - listed_));
    if (count <= 0 && elements_ != 0) {
      average_block(operation);
      continue;
    }
    count = std::min(std::max<int64_t>(count, 1), left);
    Rows rows{.first = next, .count = count};
    next += count;
    if (listed) {
      const auto numbers = numbers_.subspan(listed_, static_cast<size_t>(count));
      compute::list_row_bits(collection_->changed_rows().of(piece.shard), rows.first, numbers);
      rows.numbers = numbers.data();
      next = numbers.back() + 1;
      listed_ += numbers.size();
    }
    block_.push_back({.piece = piece, .rows = rows, .begin = elements_});
    elements_ += count * width;
    left -= count;
  }
}

void ReplicaMeans::average_block(const char* operation) {
  if (elements_ == 0) return;
  std::byte* const rows = blocks_.begin(element_, elements_);
  transfers_.clear();
  for (const BlockRows& part : block_) {
    transfers_.push_back(part.to_block(rows));
  }
  blocks_.backend().transfer().move_rows(transfers_);
  std::byte* const means = means_.resize(bytes_of(elements_));
  blocks_.average(operation, means);
  write_back(means);
  // Operations read the numbers and the means, which the next block overwrites.
  blocks_.backend().wait();
  block_.clear();
  elements_ = 0;
  listed_ = 0;
}

void ReplicaMeans::write_back(const std::byte* block) {
  collection_->begin_rewrite();
  const embedding::RowChange change(collection_->snapshot());
  embedding::ChangedRows& changed = collection_->changed_rows();
  transfers_.clear();
  for (const BlockRows& part : block_) {
    const Rows& rows = part.rows;
    if (rows.numbers != nullptr) {
      const std::span<const int64_t> list(rows.numbers, static_cast<size_t>(rows.count));
      change.keep(part.piece.shard, list);
      changed.add_synced(part.piece.shard, list);
    } else {
      change.keep_range(part.piece.shard, rows.first, rows.count);
      changed.add_synced_range(part.piece.shard, rows.first, rows.count);
    }
    transfers_.push_back(part.to_table(block));
  }
  blocks_.backend().transfer().move_rows(transfers_);
}

}  // namespace shardrec::training
