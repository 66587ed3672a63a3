#include "training/overlapped_means.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "compute/booked_memory.h"
#include "compute/transfer_operations.h"
#include "embedding/batch/operations_scope.h"
#include "plan/model/model.h"

namespace shardrec::training {
namespace {

// Where segments begin, and so their blocks: as memory of back ends does.
constexpr size_t kSegmentAlignment = 64;

// Numbers of rows that operations take at once.
constexpr int64_t kMostNumbers = compute::kMostTransferred / sizeof(int64_t);

bool is_sum_of_squares(const plan::Model& model, const embedding::StoredPiece& piece) {
  if (piece.part == SHARDREC_TABLE_WEIGHTS) return false;
  const auto states = plan::states_of(model.optimizer_of(piece.table).kind);
  return states[static_cast<size_t>(piece.part - SHARDREC_TABLE_STATE)].of_squares;
}

// Memory that the operations of both back ends reach: the device's, else the host's.
const std::shared_ptr<compute::Memory>& memory_of_both(compute::Backend& backend) {
  const bool on_device = backend.caller_devices().cuda != core::DeviceSet::kNoDevice;
  return on_device ? backend.memory() : backend.host_memory();
}

}  // namespace

OverlappedMeans::OverlappedMeans(MeshGroups groups, std::shared_ptr<comm::Channel> channel,
                                 std::shared_ptr<embedding::Collection> collection)
    : groups_(std::move(groups)),
      collection_(std::move(collection)),
      threads_(1),
      blocks_(groups_.replicas(), std::move(channel), collection_, &threads_),
      changed_(collection_->counters().buffer_bytes),
      numbers_memory_(compute::book(compute::cpu_memory(), collection_->counters().buffer_bytes)),
      copies_(memory_of_both(blocks_.backend())),
      means_(memory_of_both(blocks_.backend())) {
  // The thread is there from now on.
  worker_.start([] {});
  worker_.wait();
}

// Operations of the collection end before the memory that they read and write is let go of.
OverlappedMeans::~OverlappedMeans() {
  embedding::finish_operations(collection_->backend());
  if (!under_way_) return;
  groups_.end(collection_->communicator(), "sync", nullptr);
  try {
    wait();
  } catch (...) {
    embedding::finish_operations(blocks_.backend());
  }
}

void OverlappedMeans::gather(comm::Collectives& of_replicas, const comm::Operation& operation) {
  changed_.gather(*collection_, collection_->backend(), of_replicas, operation);
}

void OverlappedMeans::prepare() {
  list_numbers();
  lay_out();
  copy_rows();
}

void OverlappedMeans::start(const comm::Operation& operation) {
  worker_.start([this, name = operation.name] { run(name); });
  collection_->changed_rows().clear();
  step_ = collection_->step();
  failure_ = nullptr;
  under_way_ = true;
}

int64_t OverlappedMeans::averaged_rows(size_t shard) const {
  return changed_.averaged_rows(*collection_, shard);
}

void OverlappedMeans::list_numbers() {
  const auto shards = collection_->shards();
  const auto listed = [&](size_t s) {
    const int64_t rows = averaged_rows(s);
    return rows != 0 && rows < shards[s].rows();
  };
  size_t count = 0;
  for (size_t s = 0; s < shards.size(); ++s) {
    if (listed(s)) count += static_cast<size_t>(averaged_rows(s));
  }
  std::span<int64_t> room = numbers_memory_.resize_as<int64_t>(count);
  numbers_.assign(shards.size(), {});
  for (size_t s = 0; s < shards.size(); ++s) {
    if (!listed(s)) continue;
    numbers_[s] = room.first(static_cast<size_t>(averaged_rows(s)));
    room = room.subspan(numbers_[s].size());
    compute::list_row_bits(collection_->changed_rows().of(s), 0, numbers_[s]);
  }
}

void OverlappedMeans::lay_out() {
  const auto pieces = embedding::stored_pieces(collection_->layout(), collection_->shards(),
                                               embedding::PieceUse::kLoad);
  rows_.clear();
  segments_.clear();
  size_t at = 0;
  for (const auto element :
       {compute::Element::kFloat32, compute::Element::kFloat16, compute::Element::kBfloat16}) {
    Segment segment{.element = element, .at = at, .elements = 0};
    for (const embedding::StoredPiece& piece : pieces) {
      const int64_t rows = averaged_rows(piece.shard);
      if (piece.element != element || rows == 0) continue;
      const std::span<int64_t> numbers = numbers_[piece.shard];
      rows_.push_back({.piece = piece,
                       .rows = rows,
                       .numbers = numbers.empty() ? nullptr : numbers.data(),
                       .at = at,
                       .at_least_zero = is_sum_of_squares(collection_->model(), piece)});
      segment.elements += rows * piece.row_width();
      at += static_cast<size_t>(rows) * piece.row_bytes();
    }
    if (segment.elements == 0) continue;
    segments_.push_back(segment);
    at = (at + kSegmentAlignment - 1) / kSegmentAlignment * kSegmentAlignment;
  }
  copies_.resize(at);
  means_.resize(at);
  // On a device memory is there when the stream that asked for it has come to that.
  blocks_.backend().wait();
}

template <class Visit>
void OverlappedMeans::in_parts(const Copy& copy, Visit visit) {
  const int64_t most = std::min(kMostNumbers, compute::rows_at_once(copy.piece.row_bytes()));
  for (int64_t first = 0; first < copy.rows; first += most) {
    visit(first, std::min(most, copy.rows - first));
  }
}

void OverlappedMeans::copy_rows() {
  compute::Backend& backend = collection_->backend();
  for (const Copy& copy : rows_) {
    in_parts(copy, [&](int64_t first, int64_t count) {
      const embedding::StoredPiece& piece = copy.piece;
      std::byte* const to =
          copies_.data() + copy.at + static_cast<size_t>(first) * piece.row_bytes();
      compute::RowTransfer transfer{
          .from = {piece.at_row(first), piece.element, piece.stride},
          .to = {to, piece.element, static_cast<size_t>(piece.row_width())},
          .rows = count,
          .width = piece.row_width()};
      if (copy.numbers != nullptr) {
        transfer.from.data = piece.data;
        transfer.from.numbers = copy.numbers + first;
      }
      backend.transfer().move_rows({&transfer, 1});
    });
  }
  // The thread's operations do not follow those of the collection.
  backend.wait();
}

void OverlappedMeans::run(const char* operation) {
  comm::Communicator& of_collection = collection_->communicator();
  try {
    for (const Segment& segment : segments_) average_segment(segment, operation);
  } catch (const core::Error& error) {
    groups_.end(of_collection, operation, &error);
    throw;
  } catch (...) {
    groups_.end(of_collection, operation, nullptr);
    throw;
  }
}

void OverlappedMeans::average_segment(const Segment& segment, const char* operation) {
  const size_t bytes = compute::element_bytes(segment.element);
  const auto most = static_cast<int64_t>(blocks_.most_bytes() / bytes);
  for (int64_t first = 0; first < segment.elements; first += most) {
    const int64_t count = std::min(most, segment.elements - first);
    const size_t at = segment.at + static_cast<size_t>(first) * bytes;
    std::byte* const block = blocks_.begin(segment.element, count);
    blocks_.backend().transfer().copy(block, copies_.data() + at,
                                      static_cast<size_t>(count) * bytes);
    blocks_.average(operation, means_.data() + at);
  }
}

void OverlappedMeans::wait() {
  try {
    worker_.wait();
  } catch (...) {
    failure_ = std::current_exception();
  }
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

void OverlappedMeans::apply() {
  collection_->begin_rewrite();
  const embedding::RowChange change(collection_->snapshot());
  embedding::ChangedRows& changed = collection_->changed_rows();
  for (const Copy& copy : rows_) {
    in_parts(copy, [&](int64_t first, int64_t count) {
      const embedding::StoredPiece& piece = copy.piece;
      const size_t at = copy.at + static_cast<size_t>(first) * piece.row_bytes();
      compute::RowGains gains{.rows = {piece.at_row(first), piece.element, piece.stride},
                              .before = copies_.data() + at,
                              .after = means_.data() + at,
                              .count = count,
                              .width = piece.row_width(),
                              .at_least_zero = copy.at_least_zero};
      if (copy.numbers != nullptr) {
        gains.rows.data = piece.data;
        gains.rows.numbers = copy.numbers + first;
        const std::span<const int64_t> list(gains.rows.numbers, static_cast<size_t>(count));
        change.keep(piece.shard, list);
        changed.add_synced(piece.shard, list);
      } else {
        change.keep_range(piece.shard, first, count);
        changed.add_synced_range(piece.shard, first, count);
      }
      collection_->backend().transfer().add_gains({&gains, 1});
    });
  }
  // Operations read the numbers.
  collection_->backend().wait();
  for (size_t s = 0; s < collection_->shards().size(); ++s) {
    collection_->counters().rows_synced.fetch_add(averaged_rows(s), std::memory_order_relaxed);
  }
  collection_->end_rewrite();
  under_way_ = false;
}

}  // namespace shardrec::training
