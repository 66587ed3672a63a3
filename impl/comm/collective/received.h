// What collectives check of the messages that they receive.
#pragma once

#include <cstddef>

#include "comm/communicator.h"

namespace shardrec::comm {

// Throws CORRUPT_DATA unless the message of rank `from` has so many bytes. The channel has compared
// the number of elements: another size comes only from a peer that sent what it did not announce.
void require_size(const Operation& operation, size_t from, ConstBytes message, size_t bytes);

}  // namespace shardrec::comm
