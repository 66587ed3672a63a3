#include "replica/sync.h"

#include <algorithm>
#include <vector>

namespace shardrec::replica {
namespace {

constexpr const char* kName = "sync";

// Floats that are averaged at once: what a large table needs of memory beside itself.
constexpr int64_t kBlock = int64_t{1} << 20;

}  // namespace

ReplicaSync::ReplicaSync(std::shared_ptr<comm::Communicator> replicas)
    : replicas_(std::move(replicas)),
      collectives_(replicas_->open_channel(comm::Purpose::kControl), replicas_->rank(),
                   replicas_->size()) {}

void ReplicaSync::average(embedding::Collection& collection) {
  if (replicas_->size() == 1) return;
  comm::Communicator* const groups[] = {replicas_.get(), &collection.communicator()};
  try {
    average_pieces(collection);
  } catch (const core::Error& error) {
    for (comm::Communicator* group : groups) {
      // An abort stays an abort on its way to the other group.
      if (error.status() == SHARDREC_ABORTED) {
        group->abort(error.sentence());
      } else {
        group->fail(kName);
      }
    }
    throw;
  } catch (...) {
    for (comm::Communicator* group : groups) group->fail(kName);
    throw;
  }
}

void ReplicaSync::average_pieces(embedding::Collection& collection) {
  const auto step = static_cast<uint64_t>(collection.step());
  const comm::Operation operation{
      .name = kName, .kind = 1, .detail = step, .patience = comm::Patience::kStep};
  // Replicas of different steps hear of it before anything else, all of them.
  collectives_.barrier(operation);
  // Nothing but the proof that the ranks of the sharding group are at one place in the call order.
  const std::vector<comm::ConstBytes> nothing(
      static_cast<size_t>(collection.communicator().size()));
  collection.settle();
  collection.exchange(embedding::Exchange::kSync, kName, step, nothing, nullptr);
  collection.settle();
  for (const embedding::StoredPiece& piece : collection.stored_pieces(embedding::PieceUse::kLoad)) {
    const int64_t width = piece.row_width();
    const compute::Kernels& kernels = collection.kernels();
    const int64_t block_rows = std::max<int64_t>(1, kBlock / width);
    for (int64_t first = 0; first < piece.rows; first += block_rows) {
      const int64_t rows = std::min(block_rows, piece.rows - first);
      const std::span<float> values = rows_.resize_as<float>(static_cast<size_t>(rows * width));
      const auto row_at = [&](int64_t r) { return piece.bytes_of_row(first + r).data(); };
      for (int64_t r = 0; r < rows; ++r) {
        kernels.widen(row_at(r), piece.element, values.data() + r * width, width);
      }
      collectives_.all_reduce(operation, comm::Reduction::kMean, values);
      for (int64_t r = 0; r < rows; ++r) {
        kernels.narrow(values.data() + r * width, piece.element, row_at(r), width);
      }
    }
  }
}

}  // namespace shardrec::replica
