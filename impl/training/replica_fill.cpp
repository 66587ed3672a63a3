#include "training/replica_fill.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "compute/booked_memory.h"
#include "compute/buffer.h"
#include "compute/transfer_operations.h"
#include "embedding/tables/snapshot.h"
#include "embedding/tables/stored_pieces.h"

namespace shardrec::training {
namespace {

// What the replicas have beside rows.
struct Settings {
  int64_t step = 0;
};
struct TableSettings {
  double learning_rate = 0;
  uint64_t frozen = 0;
};

class Fill {
 public:
  Fill(embedding::Collection& collection, comm::Collectives& replicas, int from,
       const comm::Operation& operation)
      : collection_(collection),
        replicas_(replicas),
        from_(from),
        operation_(operation),
        rows_(compute::book(compute::cpu_memory(), collection.counters().buffer_bytes)) {}

  // Counts as a load, for batches whose forward came before. After an error the groups are dead, and say why.
  void run() {
    collection_.set_filled_in_part(true);
    try {
      fill();
    } catch (...) {
      collection_.set_filled_in_part(false);
      throw;
    }
    collection_.set_filled_in_part(false);
  }

 private:
  bool is_source() const { return replicas_.rank() == from_; }

  void fill() {
    if (!is_source()) collection_.begin_rewrite();
    for (const embedding::StoredPiece& piece : embedding::stored_pieces(
             collection_.layout(), collection_.shards(), embedding::PieceUse::kCompare)) {
      const int64_t most = compute::rows_at_once(piece.row_bytes());
      for (int64_t first = 0; first < piece.cells.rows; first += most) {
        send(piece, first, std::min(most, piece.cells.rows - first));
      }
    }
    send_settings();
    collection_.changed_rows().gather(collection_.backend());
    collection_.changed_rows().clear();
    collection_.end_rewrite();
    collection_.update().drop_accumulated();
  }

  void send(const embedding::StoredPiece& piece, int64_t first, int64_t count) {
    const size_t bytes = static_cast<size_t>(count) * piece.row_bytes();
    const std::span<std::byte> rows(rows_.resize(bytes), bytes);
    const auto width = static_cast<size_t>(piece.row_width());
    if (is_source()) {
      const compute::RowTransfer read{.from = {piece.at_row(first), piece.element, piece.stride},
                                      .to = {rows.data(), piece.element, width},
                                      .rows = count,
                                      .width = piece.row_width()};
      collection_.backend().transfer().copy_to_host({&read, 1});
    }
    replicas_.broadcast(operation_, from_, rows);
    if (is_source()) return;
    const embedding::RowChange change(collection_.snapshot());
    change.keep_range(piece.shard, first, count);
    const compute::RowTransfer written{.from = {rows.data(), piece.element, width},
                                       .to = {piece.at_row(first), piece.element, piece.stride},
                                       .rows = count,
                                       .width = piece.row_width()};
    collection_.backend().transfer().copy_from_host({&written, 1});
  }

  void send_settings() {
    embedding::TrainingSettings& settings = collection_.settings();
    Settings sent{.step = collection_.step()};
    std::vector<TableSettings> tables(collection_.model().tables.size());
    for (size_t t = 0; t < tables.size(); ++t) {
      const auto table = static_cast<int32_t>(t);
      tables[t] = {.learning_rate = settings.learning_rate(table),
                   .frozen = uint64_t{settings.frozen(table)}};
    }
    replicas_.broadcast(operation_, from_, std::as_writable_bytes(std::span(&sent, 1)));
    replicas_.broadcast(operation_, from_, std::as_writable_bytes(std::span(tables)));
    if (is_source()) return;
    for (size_t t = 0; t < tables.size(); ++t) {
      const auto table = static_cast<int32_t>(t);
      settings.set_learning_rate(table, tables[t].learning_rate);
      settings.set_frozen(table, tables[t].frozen != 0);
    }
    collection_.set_step(sent.step);
  }

  embedding::Collection& collection_;
  comm::Collectives& replicas_;
  const int from_;
  const comm::Operation& operation_;
  compute::Buffer rows_;
};

}  // namespace

void fill_replicas(embedding::Collection& collection, comm::Collectives& replicas, int from,
                   const comm::Operation& operation) {
  Fill(collection, replicas, from, operation).run();
}

}  // namespace shardrec::training
