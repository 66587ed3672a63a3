// The CPU's operations on sums over the ranks.
#pragma once

#include <span>

#include "compute/cpu/slots/row_totals.h"
#include "compute/cpu/slots/slots.h"
#include "compute/cpu/tasks/context.h"
#include "compute/slot_operations.h"

namespace shardrec::compute::cpu {

class SlotFamily final : public SlotOperations {
 public:
  explicit SlotFamily(Context& context) : context_(context) {}

  void find_rows(std::span<const RowSearch> searches) override {
    cpu::find_rows(searches, context_);
  }
  void add_row_totals(std::span<const RowTotals> shards) override {
    cpu::add_row_totals(shards, context_);
  }
  void pack_slots(std::span<const SlotPacking> slots) override { cpu::pack_slots(slots, context_); }
  void check_slots(std::span<const SlotRows> slots, std::span<uint8_t> good) override {
    cpu::check_slots(slots, good, context_);
  }
  void count_slot_sums(std::span<const SlotSum> sums, std::span<int64_t> rows) override {
    cpu::count_slot_sums(sums, rows, context_);
  }
  void add_slots(std::span<const SlotSum> sums) override { cpu::add_slots(sums, context_); }
  void unpack_slots(std::span<const SlotUnpacking> tables) override {
    cpu::unpack_slots(tables, context_);
  }

 private:
  Context& context_;
};

}  // namespace shardrec::compute::cpu
