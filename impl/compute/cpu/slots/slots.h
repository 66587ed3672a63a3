// The operations on slots of touched rows (slot_operations.h) on the CPU: a task per slot.
#pragma once

#include <cstdint>
#include <span>

#include "compute/cpu/tasks/context.h"
#include "compute/gradient_operations.h"
#include "compute/slot_operations.h"

namespace shardrec::compute::cpu {

void find_rows(std::span<const RowSearch> searches, const Context& context);
void pack_slots(std::span<const SlotPacking> slots, const Context& context);
void check_slots(std::span<const SlotRows> slots, std::span<uint8_t> good, const Context& context);
void count_slot_sums(std::span<const SlotSum> sums, std::span<int64_t> rows,
                     const Context& context);
void add_slots(std::span<const SlotSum> sums, const Context& context);
void unpack_slots(std::span<const SlotUnpacking> tables, const Context& context);

}  // namespace shardrec::compute::cpu
