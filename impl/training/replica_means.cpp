#include "training/replica_means.h"

#include <algorithm>
#include <utility>

#include "comm/ipc/carrier.h"
#include "comm/nccl/carrier.h"
#include "compute/backends/registry.h"
#include "compute/booked_memory.h"
#include "core/error.h"
#include "embedding/batch/operations_scope.h"
#include "embedding/exchange/exchange.h"

namespace shardrec::training {
namespace {

// A block on a device is as large as makes its two exchanges worth their messages between hosts.
constexpr size_t kMostOnDevice = size_t{16} << 20;
// Rows of a block that are listed by their numbers.
constexpr size_t kMostListed = compute::kMostTransferred / sizeof(int64_t);

}  // namespace

ReplicaMeans::ReplicaMeans(const std::shared_ptr<comm::Communicator>& replicas,
                           std::shared_ptr<comm::Channel> channel,
                           std::shared_ptr<embedding::Collection> collection)
    : collection_(std::move(collection)),
      changed_only_(collection_->options().replica_sync == SHARDREC_REPLICA_SYNC_TOUCHED),
      ranks_(replicas->size()),
      rank_(replicas->rank()),
      changed_(collection_->counters().buffer_bytes),
      numbers_memory_(compute::book(compute::cpu_memory(), collection_->counters().buffer_bytes)) {
  const int32_t device = collection_->backend().caller_devices().cuda;
  const bool on_device = device != core::DeviceSet::kNoDevice;
  std::shared_ptr<comm::nccl::StopWord> stop;
  if (on_device && replicas->device_bodies() == comm::DeviceBodies::kNccl) {
    stop = std::make_shared<comm::nccl::StopWord>(replicas);
  }
  if (on_device) {
    own_backend_ = compute::backend_named(collection_->options().backend)
                       .make({.threads = collection_->threads(),
                              .device = device,
                              .peers_in_process = replicas->reads_in_place() && stop == nullptr,
                              .wait = collection_->options().device_wait,
                              .booked = collection_->counters().buffer_bytes,
                              .stop = stop});
  }
  backend_ = on_device ? own_backend_.get() : &collection_->backend();
  bodies_ = stop == nullptr
                ? comm::ipc::make_carrier(*backend_, replicas, collection_->counters().buffer_bytes)
                : comm::nccl::make_carrier(*backend_, replicas, std::move(stop),
                                           comm::nccl::LaneSet::kOne);
  channel_ = std::make_unique<embedding::OrderedChannel>(
      bodies_->over(std::move(channel), comm::Purpose::kControl), ranks_, *bodies_);
  rows_sent_ = bodies_->make_buffer();
  means_sent_ = bodies_->make_buffer();
  rows_received_ = bodies_->make_received();
  means_received_ = bodies_->make_received();
  means_.emplace(backend_->memory());
  most_bytes_ = on_device ? kMostOnDevice : compute::kMostTransferred;
  messages_.resize(static_cast<size_t>(ranks_));
  parts_.resize(static_cast<size_t>(ranks_));
}

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
ReplicaMeans::~ReplicaMeans() { embedding::finish_operations(*backend_); }

void ReplicaMeans::average(comm::Collectives& of_replicas, const comm::Operation& operation) {
  if (changed_only_) changed_.gather(*collection_, *backend_, of_replicas, operation);
  const auto pieces = embedding::stored_pieces(collection_->layout(), collection_->shards(),
                                               embedding::PieceUse::kLoad);
  make_room_for_numbers(pieces);
  for (const embedding::StoredPiece& piece : pieces) add_to_block(piece, operation.name);
  average_block(operation.name);
  backend_->wait();
  for (size_t s = 0; s < collection_->shards().size(); ++s) {
    collection_->counters().rows_synced.fetch_add(averaged_rows(s), std::memory_order_relaxed);
  }
  collection_->changed_rows().clear();
}

int64_t ReplicaMeans::averaged_rows(size_t shard) const {
  const embedding::Shard& own = collection_->shards()[shard];
  // Replicated tables are equal on all ranks of the mesh after every step.
  if (collection_->layout().table(own.table()).replicated) return 0;
  return changed_only_ ? changed_.count(shard) : own.rows();
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
  const auto most = static_cast<int64_t>(most_bytes_ / compute::element_bytes(element_));
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
  const comm::OwnedRanges ranges{.count = elements_,
                                 .ranks = ranks_,
                                 .grain = comm::line_grain(compute::element_bytes(element_))};
  const comm::OwnedRange own = ranges.of(rank_);
  std::byte* const rows = rows_sent_->resize(bytes_of(elements_));
  transfers_.clear();
  for (const BlockRows& part : block_) {
    transfers_.push_back(part.to_block(rows));
  }
  backend_->transfer().move_rows(transfers_);
  rows_sent_->publish(rows, rows + bytes_of(elements_));
  for (int r = 0; r < ranks_; ++r) {
    const comm::OwnedRange range = ranges.of(r);
    const std::byte* const at = rows + bytes_of(range.begin);
    messages_[static_cast<size_t>(r)] = rows_sent_->host(at, at + bytes_of(range.count));
  }
  const auto addends = rows_received_->open(exchange(operation, *rows_sent_));
  for (size_t r = 0; r < addends.size(); ++r) {
    require_size(addends[r], own, r, operation);
    parts_[r] = addends[r].data();
  }
  std::byte* const means = means_sent_->resize(bytes_of(own.count));
  backend_->transfer().average(
      {.ranks = parts_, .means = means, .element = element_, .count = own.count});
  means_sent_->publish(means, means + bytes_of(own.count));
  std::fill(messages_.begin(), messages_.end(),
            means_sent_->host(means, means + bytes_of(own.count)));
  const auto parts = means_received_->open(exchange(operation, *means_sent_));
  std::byte* const block = means_->resize(bytes_of(elements_));
  for (size_t r = 0; r < parts.size(); ++r) {
    const comm::OwnedRange range = ranges.of(static_cast<int64_t>(r));
    require_size(parts[r], range, r, operation);
    backend_->transfer().copy(block + bytes_of(range.begin), parts[r].data(), parts[r].size());
  }
  // Throws where messages were broken off on their way: zeros have come instead then.
  backend_->wait();
  write_back(block);
  channel_->settle();
  // Operations read the numbers, which the next block overwrites.
  if (listed_ != 0) backend_->wait();
  block_.clear();
  elements_ = 0;
  listed_ = 0;
}

std::span<const comm::ConstBytes> ReplicaMeans::exchange(const char* operation,
                                                         const comm::MessageBuffer& sent) {
  collection_->counters().bytes_sync.fetch_add(embedding::bytes_to_others(messages_, rank_),
                                               std::memory_order_relaxed);
  return channel_->exchange(embedding::ExchangeKind::kSync, operation,
                            static_cast<uint64_t>(elements_), messages_, sent.keep_alive());
}

void ReplicaMeans::require_size(comm::ConstBytes part, const comm::OwnedRange& range, size_t from,
                                const char* operation) const {
  if (part.size() == bytes_of(range.count)) return;
  core::fail(SHARDREC_CORRUPT_DATA,
             core::sentence("replica ", from, " sent ", part.size(), " bytes of a block; it has ",
                            bytes_of(range.count), " there"),
             {.rank = static_cast<int64_t>(from), .operation = operation});
}

void ReplicaMeans::write_back(const std::byte* block) {
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
  backend_->transfer().move_rows(transfers_);
}

}  // namespace shardrec::training
