#include "embedding/rows/row_messages.h"

#include "core/error.h"

namespace shardrec::embedding {

void throw_malformed(size_t rank, const char* operation) {
  core::fail(SHARDREC_CORRUPT_DATA,
             core::sentence("rank ", rank, " sent a malformed message in ", operation),
             {.rank = static_cast<int64_t>(rank), .operation = operation});
}

}  // namespace shardrec::embedding
