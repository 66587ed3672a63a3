// Gradients of replicated tables whose ranks look up their own ids only: each rank brings the sums
// of its own rows, everybody gets the sums over all ranks and applies the same update.
//
// The rows of a table are dealt out in even slots, one per rank. Two exchanges: every rank sends
// each slot's rows to the slot's rank, which adds them up over the ranks in a pairwise tree over
// the rank number (a rank without the row is left out), and sends the sums to all. Replicas hence
// stay equal bit for bit, and differ from one rank's result by rounding only.
//
// Forms: a list of rows (`rows`), or a bit per row of the slot (`dense`); each with the gradients
// of the touched rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "compute/buffer.h"
#include "compute/kernels.h"
#include "core/memory.h"
#include "embedding/backward/slot_rows.h"
#include "embedding/tables/layout.h"

namespace shardrec::embedding {

// Touched rows, ascending, and a gradient [width] for each.
struct RowGradients {
  std::span<const int64_t> rows;
  const float* gradients = nullptr;  // [rows, width]
};

class ReplicatedGradients {
 public:
  ReplicatedGradients(const Layout& layout, const std::shared_ptr<compute::Memory>& memory);

  // Does any table need the exchanges? The same on all ranks; a single one needs none.
  bool needed() const { return !tables_.empty(); }
  size_t count() const { return tables_.size(); }
  // Tables concerned, ascending.
  std::span<const int32_t> tables() const { return tables_; }

  // First exchange. own: by tables().
  void pack(std::span<const RowGradients> own, compute::Buffer& buffer);
  // Second exchange: adds up this rank's slots. Throws CORRUPT_DATA.
  void add_up(std::span<const comm::ConstBytes> messages, const compute::Kernels& kernels,
              compute::Buffer& buffer);
  std::span<const comm::ConstBytes> messages() const { return messages_; }
  // The sums of all slots; the messages stay until the update is done. Throws CORRUPT_DATA.
  void take(std::span<const comm::ConstBytes> messages);

  // After take(), of the n-th table: the touched rows, ascending, one occurrence each.
  std::span<const int64_t> rows(size_t n) const { return sums_[n].rows; }
  void describe(size_t n, compute::RowUpdate& job) const;

 private:
  struct Sums {
    std::vector<int64_t> rows;
    std::vector<const float*> gradients;
  };

  const plan::Table& table(size_t n) const {
    return layout_.model().tables[static_cast<size_t>(tables_[n])];
  }
  SlotForm form(size_t n) const;
  Slot slot(size_t n, int rank) const;
  // Of the messages that were read.
  void expect_nothing_left() const;
  // Cursors on the pieces of the n-th table, from their first rows.
  void walk_pieces(size_t n, const Slot& slot);
  int64_t lowest_row() const;
  // Adds the addends up; the sum is addends_[0] then.
  void add_pairwise(size_t width, const compute::Kernels& kernels);

  const Layout& layout_;
  std::vector<int32_t> tables_;
  std::vector<comm::ConstBytes> messages_;
  std::vector<Sums> sums_;        // by tables()
  std::vector<int64_t> run_;      // 0, 1, 2, ...
  std::vector<uint32_t> bags_;    // 0, 1, 2, ...
  std::vector<uint32_t> blocks_;  // 0, 0, 0, ...
  // While messages are read, by rank.
  std::vector<comm::ConstBytes> rest_;
  std::vector<SlotRows> pieces_;
  // While slots are added up.
  std::vector<SlotCursor> cursors_;    // by rank
  std::vector<const float*> addends_;  // by rank, null: it has not touched the row
  std::vector<int64_t> touched_;
  compute::Buffer partial_;
};

}  // namespace shardrec::embedding
