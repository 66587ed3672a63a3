#include "comm/collective/received.h"

#include <cstdint>

#include "core/error.h"

namespace shardrec::comm {

void require_size(const Operation& operation, size_t from, ConstBytes message, size_t bytes) {
  if (message.size() == bytes) return;
  core::fail(SHARDREC_CORRUPT_DATA,
             core::sentence("rank ", from, " sent ", message.size(), " bytes in \"", operation.name,
                            "\", where ", bytes, " are to come"),
             {.rank = static_cast<int64_t>(from), .operation = operation.name});
}

}  // namespace shardrec::comm
