#include "dense/ddp/message.h"

#include <cstring>

#include "core/error.h"

namespace shardrec::dense {

void write_head(const BucketHead& head, std::byte* out) noexcept {
  std::memset(out, 0, kHeadBytes);
  std::memcpy(out, &head, sizeof head);
}

BucketMessage read_message(comm::ConstBytes message, size_t used, size_t gradients, size_t from) {
  BucketMessage out;
  size_t expected = kHeadBytes + used;
  if (message.size() >= kHeadBytes) {
    std::memcpy(&out.head, message.data(), sizeof out.head);
    if (out.head.has_gradients != 0) expected += gradients;
  }
  if (message.size() != expected) {
    core::fail(SHARDREC_CORRUPT_DATA,
               core::sentence("rank ", from, " sent ", message.size(),
                              " bytes of a bucket of gradients, where ", expected, " are to come"),
               {.rank = static_cast<int64_t>(from), .operation = "ddp: bucket"});
  }
  out.used = message.subspan(kHeadBytes, used);
  if (out.head.has_gradients != 0) out.gradients = message.data() + kHeadBytes + used;
  return out;
}

}  // namespace shardrec::dense
