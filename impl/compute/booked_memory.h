// Memory that counts the bytes of its blocks that are in use.
//
// Thread rule: any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "compute/buffer.h"

namespace shardrec::compute {

// Bytes in use; blocks may be freed after everything else that knew of them.
using BookedBytes = std::shared_ptr<std::atomic<int64_t>>;

// The same memory, its blocks counted in `booked`, but for zeros (Memory::allocate_zeros), which are tables.
// booked null: the memory itself.
std::shared_ptr<Memory> book(std::shared_ptr<Memory> memory, BookedBytes booked);

}  // namespace shardrec::compute
