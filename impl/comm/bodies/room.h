// Bodies side by side.
#pragma once

#include <cstddef>

#include "comm/communicator.h"

namespace shardrec::comm {

// Bytes that a body takes among others: it begins at a multiple of 64, as the rows in it do.
inline size_t room_of(ConstBytes body) { return (body.size() + 63) / 64 * 64; }

}  // namespace shardrec::comm
