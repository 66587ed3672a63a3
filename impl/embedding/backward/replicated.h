// Gradients of replicated tables whose ranks look up their own ids only: each rank brings the sums
// of its own rows, everybody gets the sums over all ranks and applies the same update.
//
// The rows of a table are dealt out in even slots, one per rank. Two exchanges: every rank sends
// each slot's rows to the slot's rank, which adds them up over the ranks in a pairwise tree over
// the rank number (a rank without the row is left out), and sends the sums to all. Replicas hence
// stay equal bit for bit, and differ from one rank's result by rounding only.
//
// A message: its head says for each table how many rows of the slot were touched; its body has, table
// after table, which they are (a list, `rows`, or a bit per row of the slot, `dense`) and a gradient
// for each (compute/slot_operations.h). Every section of it is a multiple of 8 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/bodies/carrier.h"
#include "comm/communicator.h"
#include "compute/backend.h"
#include "compute/buffer.h"
#include "embedding/tables/layout.h"

namespace shardrec::embedding {

// Touched rows, ascending, and a gradient [width] for each, in the memory of the back end.
struct RowGradients {
  std::span<const int64_t> rows;
  const float* gradients = nullptr;  // [rows, width]
};

class ReplicatedGradients {
 public:
  ReplicatedGradients(const Layout& layout, comm::BodyCarrier& bodies);

  // Does any table need the exchanges? The same on all ranks; a single one needs none.
  bool needed() const { return !tables_.empty(); }
  size_t count() const { return tables_.size(); }
  // Tables concerned, ascending.
  std::span<const int32_t> tables() const { return tables_; }

  // First exchange. own: by tables(); they stay where they are until the messages are sent.
  void pack(std::span<const RowGradients> own, comm::MessageBuffer& buffer);
  // Second exchange: adds up this rank's slots. Throws CORRUPT_DATA.
  void add_up(std::span<const comm::ConstBytes> messages, comm::MessageBuffer& buffer);
  std::span<const comm::ConstBytes> messages() const { return messages_; }
  // The sums of all slots; the messages stay until the update is done. Throws CORRUPT_DATA.
  void take(std::span<const comm::ConstBytes> messages);

  // After take(), of the n-th table: the touched rows, ascending, one occurrence each, in the memory
  // of the back end.
  std::span<const int64_t> rows(size_t n) const { return sums_[n].rows; }
  void describe(size_t n, compute::RowUpdate& job) const;

 private:
  struct Sums {
    std::span<int64_t> rows;
    std::span<const float*> gradients;
  };

  const plan::Table& table(size_t n) const {
    return layout_.model().tables[static_cast<size_t>(tables_[n])];
  }
  size_t ranks() const { return messages_.size(); }
  // Of table n and a rank's slot, with so many touched rows.
  compute::SlotShape slot(size_t n, size_t rank, int64_t count) const;
  size_t head_bytes() const { return tables_.size() * sizeof(int64_t); }
  // Takes the place of a slot in a body, which goes on behind it.
  static compute::SlotRoom take_room(const compute::SlotShape& slot, std::byte*& at);
  // Reads messages whose slots are those of one rank, or of the rank that sent each.
  enum class Slots : uint8_t { kOwn, kOfSenders };
  void read(std::span<const comm::ConstBytes> messages, Slots slots);
  void read_head(comm::ConstBytes message, size_t rank, Slots slots);

  const Layout& layout_;
  compute::Backend& backend_;
  std::vector<int32_t> tables_;
  std::vector<comm::ConstBytes> messages_;
  std::unique_ptr<comm::ReceivedBodies> received_;
  compute::Buffer rows_memory_;
  compute::Buffer occurrences_memory_;
  std::vector<Sums> sums_;                  // by tables(), as the next five
  compute::SingleOccurrences occurrences_;  // as many as any table needs
  std::vector<int64_t> bounds_;             // [ranks + 1] where slots begin
  std::vector<int64_t> before_;             // [ranks + 1] touched rows before each
  std::vector<compute::RowSearch> searches_;
  std::vector<compute::SlotSum> additions_;
  std::vector<compute::SlotUnpacking> unpackings_;
  std::vector<int64_t> touched_;                // of all ranks together, in the own slot
  std::vector<compute::SlotPacking> packings_;  // by rank, then by table
  std::vector<compute::SlotRows> slots_;        // that were read: by table, then by rank
  std::vector<uint8_t> good_;                   // as slots_
  std::vector<size_t> heads_;                   // by rank
};

}  // namespace shardrec::embedding
