// A device's operations on sums over the ranks.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "compute/cuda/host/slots/row_searches.h"
#include "compute/cuda/host/slots/slot_sums.h"
#include "compute/cuda/host/slots/slots.h"
#include "compute/cuda/host/stream.h"
#include "compute/slot_operations.h"

namespace shardrec::compute::cuda::host {

class SlotFamily final : public SlotOperations {
 public:
  explicit SlotFamily(std::shared_ptr<Stream> stream)
      : searches_(stream), totals_(stream), slots_(stream), slot_sums_(std::move(stream)) {}

  void find_rows(std::span<const RowSearch> searches) override { searches_.run(searches); }
  void add_row_totals(std::span<const RowTotals> shards) override { totals_.add(shards); }
  void pack_slots(std::span<const SlotPacking> slots) override { slots_.pack(slots); }
  void check_slots(std::span<const SlotRows> slots, std::span<uint8_t> good) override {
    slots_.check(slots, good);
  }
  void count_slot_sums(std::span<const SlotSum> sums, std::span<int64_t> rows) override {
    slot_sums_.count(sums, rows);
  }
  void add_slots(std::span<const SlotSum> sums) override { slot_sums_.add(sums); }
  void unpack_slots(std::span<const SlotUnpacking> tables) override { slots_.unpack(tables); }

 private:
  RowSearches searches_;
  RowSumTotals totals_;
  Slots slots_;
  SlotSums slot_sums_;
};

}  // namespace shardrec::compute::cuda::host
