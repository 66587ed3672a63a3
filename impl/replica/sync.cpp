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
  replicas_->check();
  const auto step = static_cast<uint64_t>(collection.step());
  // Nothing but the proof that the ranks of the sharding group are at one place in the call order.
  const std::vector<comm::ConstBytes> nothing(
      static_cast<size_t>(collection.communicator().size()));
  collection.settle();
  collection.exchange(embedding::Exchange::kSync, kName, step, nothing, nullptr);
  collection.settle();
  const comm::Operation operation{
      .name = kName, .kind = 1, .detail = step, .patience = comm::Patience::kStep};
  for (const embedding::StoredPiece& piece : collection.stored_pieces(embedding::PieceUse::kLoad)) {
    const int64_t block_rows = std::max<int64_t>(1, kBlock / piece.cols);
    for (int64_t first = 0; first < piece.rows; first += block_rows) {
      const int64_t rows = std::min(block_rows, piece.rows - first);
      const std::span<float> values =
          rows_.resize_as<float>(static_cast<size_t>(rows * piece.cols));
      for (int64_t r = 0; r < rows; ++r) {
        std::copy_n(piece.data + static_cast<size_t>(first + r) * piece.stride, piece.cols,
                    values.begin() + r * piece.cols);
      }
      collectives_.all_reduce(operation, comm::Reduction::kMean, values);
      for (int64_t r = 0; r < rows; ++r) {
        std::copy_n(values.begin() + r * piece.cols, piece.cols,
                    piece.data + static_cast<size_t>(first + r) * piece.stride);
      }
    }
  }
}

}  // namespace shardrec::replica
