#include "comm/rendezvous/protocol/messages.h"

#include <algorithm>

#include "core/error.h"

namespace shardrec::comm::rendezvous {

void FieldWriter::ranks(const std::vector<int>& values, size_t /*most*/) {
  out_.u16(static_cast<uint16_t>(values.size()));
  for (const int value : values) rank(value);
}

void FieldReader::flag(bool& value) {
  const uint8_t flag = in_.u8();
  if (flag > 1) core::fail(SHARDREC_CORRUPT_DATA, "a message of the rendezvous has a flag above 1");
  value = flag == 1;
}

void FieldReader::status(shardrec_status& value) {
  const uint32_t status = in_.u32();
  for (const shardrec_status known :
       {SHARDREC_OK, SHARDREC_INVALID_ARGUMENT, SHARDREC_INVALID_STATE, SHARDREC_OUT_OF_MEMORY,
        SHARDREC_PEER_FAILED, SHARDREC_TIMEOUT, SHARDREC_MISMATCH}) {
    if (status != static_cast<uint32_t>(known)) continue;
    value = known;
    return;
  }
  core::fail(SHARDREC_CORRUPT_DATA,
             core::sentence("a message of the rendezvous carries the status ", status));
}

void FieldReader::host(HostId& value) { std::ranges::copy(in_.bytes(value.size()), value.begin()); }

void FieldReader::rank(int& value, int least) {
  const uint32_t rank = in_.u32();
  if (rank < static_cast<uint32_t>(least) || rank > static_cast<uint32_t>(kMostRanks)) {
    core::fail(SHARDREC_CORRUPT_DATA, core::sentence("a message of the rendezvous names rank ",
                                                     rank, "; there are at most ", kMostRanks));
  }
  value = static_cast<int>(rank);
}

void FieldReader::rank_or_none(int& value) {
  rank(value);
  --value;
}

void FieldReader::ranks(std::vector<int>& values, size_t most) {
  const uint16_t named = in_.u16();
  if (named > most) {
    core::fail(SHARDREC_CORRUPT_DATA, core::sentence("a message of the rendezvous names ", named,
                                                     " ranks; ", most, " are accepted"));
  }
  values.resize(named);
  for (int& value : values) rank(value);
}

std::string name_ranks(const std::vector<int>& lowest, int count) {
  std::string text = count == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < lowest.size(); ++i) text += core::sentence(i == 0 ? "" : ", ", lowest[i]);
  const int more = count - static_cast<int>(lowest.size());
  return more > 0 ? core::sentence(text, " and ", more, " more") : text;
}

}  // namespace shardrec::comm::rendezvous
