#include "comm/rendezvous/protocol/messages.h"

#include <algorithm>

#include "core/error.h"

namespace shardrec::comm::rendezvous {
namespace {

void write_rank(Writer& out, int rank) { out.u32(static_cast<uint32_t>(rank)); }

// A number that a rank, or a count of ranks, can be.
int read_rank(Reader& in, uint32_t least = 0) {
  const uint32_t rank = in.u32();
  if (rank < least || rank > static_cast<uint32_t>(kMostRanks)) {
    core::fail(SHARDREC_CORRUPT_DATA, core::sentence("a message of the rendezvous names rank ",
                                                     rank, "; there are at most ", kMostRanks));
  }
  return static_cast<int>(rank);
}

bool read_flag(Reader& in) {
  const uint8_t flag = in.u8();
  if (flag > 1) core::fail(SHARDREC_CORRUPT_DATA, "a message of the rendezvous has a flag above 1");
  return flag == 1;
}

shardrec_status read_status(Reader& in) {
  const uint32_t status = in.u32();
  for (const shardrec_status known :
       {SHARDREC_OK, SHARDREC_INVALID_ARGUMENT, SHARDREC_INVALID_STATE, SHARDREC_OUT_OF_MEMORY,
        SHARDREC_PEER_FAILED, SHARDREC_TIMEOUT, SHARDREC_MISMATCH}) {
    if (status == static_cast<uint32_t>(known)) return known;
  }
  core::fail(SHARDREC_CORRUPT_DATA,
             core::sentence("a message of the rendezvous carries the status ", status));
}

}  // namespace

void Join::write(Writer& out) const {
  write_rank(out, rank);
  write_rank(out, size);
  out.bytes(host);
  out.u64(process);
  write_rank(out, ranks_on_host);
}

Join Join::read(Reader& in) {
  Join join;
  join.rank = read_rank(in);
  join.size = read_rank(in, 1);
  std::ranges::copy(in.bytes(join.host.size()), join.host.begin());
  join.process = in.u64();
  join.ranks_on_host = read_rank(in);
  return join;
}

void Set::write(Writer& out) const {
  out.u64(id);
  out.text(key);
  out.bytes(value);
}

Set Set::read(Reader& in) {
  Set set;
  set.id = in.u64();
  set.key = in.text(kMostKeyBytes);
  set.value = in.rest(kMostValueBytes);
  return set;
}

void Get::write(Writer& out) const {
  out.u64(id);
  out.text(key);
}

Get Get::read(Reader& in) {
  Get get;
  get.id = in.u64();
  get.key = in.text(kMostKeyBytes);
  return get;
}

void Forget::write(Writer& out) const { out.u64(id); }

Forget Forget::read(Reader& in) { return {.id = in.u64()}; }

void Announce::write(Writer& out) const { out.bytes(bulletin); }

Announce Announce::read(Reader& in) { return {.bulletin = in.rest(kMostBulletinBytes)}; }

void Accepted::write(Writer& out) const { out.u32(static_cast<uint32_t>(silence.count())); }

Accepted Accepted::read(Reader& in) { return {.silence = milliseconds(in.u32())}; }

void Waiting::write(Writer& out) const {
  write_rank(out, joined);
  out.u32(turned_away);
  out.u16(static_cast<uint16_t>(missing.size()));
  for (const int rank : missing) write_rank(out, rank);
}

Waiting Waiting::read(Reader& in) {
  Waiting waiting;
  waiting.joined = read_rank(in);
  waiting.turned_away = in.u32();
  const uint16_t named = in.u16();
  if (named > kMostNamed) {
    core::fail(SHARDREC_CORRUPT_DATA, core::sentence("a message of the rendezvous names ", named,
                                                     " ranks; ", kMostNamed, " are accepted"));
  }
  for (int i = 0; i < named; ++i) waiting.missing.push_back(read_rank(in));
  return waiting;
}

void Formed::write(Writer& out) const {
  write_rank(out, ranks_per_node);
  write_rank(out, ranks_in_process);
}

Formed Formed::read(Reader& in) {
  Formed formed;
  formed.ranks_per_node = read_rank(in, 1);
  formed.ranks_in_process = read_rank(in, 1);
  return formed;
}

void Refused::write(Writer& out) const {
  out.u32(static_cast<uint32_t>(status));
  write_rank(out, rank + 1);
  out.u8(complete ? 1 : 0);
  out.text(text);
}

Refused Refused::read(Reader& in) {
  Refused refused;
  refused.status = read_status(in);
  refused.rank = read_rank(in) - 1;
  refused.complete = read_flag(in);
  refused.text = in.text(kMostTextBytes);
  return refused;
}

void Reply::write(Writer& out) const {
  out.u64(id);
  out.u32(static_cast<uint32_t>(status));
  out.bytes(value);
}

Reply Reply::read(Reader& in) {
  Reply reply;
  reply.id = in.u64();
  reply.status = read_status(in);
  reply.value = in.rest(kMostValueBytes);
  return reply;
}

void Bulletin::write(Writer& out) const {
  write_rank(out, from);
  out.bytes(bulletin);
}

Bulletin Bulletin::read(Reader& in) {
  Bulletin bulletin;
  bulletin.from = read_rank(in);
  bulletin.bulletin = in.rest(kMostBulletinBytes);
  return bulletin;
}

void Lost::write(Writer& out) const {
  write_rank(out, rank);
  out.text(how);
}

Lost Lost::read(Reader& in) {
  Lost lost;
  lost.rank = read_rank(in);
  lost.how = in.text(kMostTextBytes);
  return lost;
}

void Left::write(Writer& out) const { write_rank(out, rank); }

Left Left::read(Reader& in) { return {.rank = read_rank(in)}; }

std::string name_ranks(const std::vector<int>& lowest, int count) {
  std::string text = count == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < lowest.size(); ++i) text += core::sentence(i == 0 ? "" : ", ", lowest[i]);
  const int more = count - static_cast<int>(lowest.size());
  return more > 0 ? core::sentence(text, " and ", more, " more") : text;
}

}  // namespace shardrec::comm::rendezvous
