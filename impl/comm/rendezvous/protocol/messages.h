// The messages of ranks and rendezvous, one struct per kind of frame. read<M>() accepts exactly
// what framed() writes; anything else is CORRUPT_DATA.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/rendezvous/protocol/limits.h"
#include "comm/rendezvous/protocol/wire.h"
#include "shardrec/status.h"

namespace shardrec::comm::rendezvous {

using HostId = std::array<std::byte, 16>;

// What a field of a message can be, as it is written and as it is read. The two classes have the
// same functions, so that a message lists its fields once, in visit(), in the order in which they
// travel.
class FieldWriter {
 public:
  explicit FieldWriter(Bytes& out) : out_(out) {}
  void u32(uint32_t value) { out_.u32(value); }
  void u64(uint64_t value) { out_.u64(value); }
  void flag(bool value) { out_.u8(value ? 1 : 0); }
  void status(shardrec_status value) { out_.u32(static_cast<uint32_t>(value)); }
  void duration(milliseconds value) { out_.u32(static_cast<uint32_t>(value.count())); }
  void host(const HostId& value) { out_.bytes(value); }
  void text(std::string_view value, size_t /*most*/) { out_.text(value); }
  void rest(ConstBytes value, size_t /*most*/) { out_.bytes(value); }
  void rank(int value, int /*least*/ = 0) { out_.u32(static_cast<uint32_t>(value)); }
  void rank_or_none(int value) { rank(value + 1); }
  void ranks(const std::vector<int>& values, size_t most);

 private:
  Writer out_;
};

// Each function throws CORRUPT_DATA for what FieldWriter does not write.
class FieldReader {
 public:
  explicit FieldReader(ConstBytes payload) : in_(payload) {}
  void u32(uint32_t& value) { value = in_.u32(); }
  void u64(uint64_t& value) { value = in_.u64(); }
  void flag(bool& value);
  void status(shardrec_status& value);
  void duration(milliseconds& value) { value = milliseconds(in_.u32()); }
  void host(HostId& value);
  // Of up to `most` bytes.
  void text(std::string& value, size_t most) { value = in_.text(most); }
  // All that is left of the payload, up to `most` bytes: a view of it.
  void rest(ConstBytes& value, size_t most) { value = in_.rest(most); }
  // A number that a rank, or a count of ranks, can be.
  void rank(int& value, int least = 0);
  // -1: none.
  void rank_or_none(int& value);
  // Up to `most` ranks.
  void ranks(std::vector<int>& values, size_t most);
  void end() const { in_.end(); }

 private:
  Reader in_;
};

// A rank says who and where it is.
struct Join {
  static constexpr FrameKind kKind = FrameKind::kJoin;
  int rank = 0;
  int size = 1;
  HostId host{};          // equal on all ranks of one machine and network namespace
  uint64_t process = 0;   // equal on all ranks of one process of that host
  int ranks_on_host = 0;  // as its launcher said; 0: it said nothing

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.rank(self.rank);
    fields.rank(self.size, 1);
    fields.host(self.host);
    fields.u64(self.process);
    fields.rank(self.ranks_on_host);
  }
};

struct Set {
  static constexpr FrameKind kKind = FrameKind::kSet;
  uint64_t id = 0;
  std::string key{};
  ConstBytes value{};  // of what was read

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.u64(self.id);
    fields.text(self.key, kMostKeyBytes);
    fields.rest(self.value, kMostValueBytes);
  }
};

struct Get {
  static constexpr FrameKind kKind = FrameKind::kGet;
  uint64_t id = 0;
  std::string key{};

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.u64(self.id);
    fields.text(self.key, kMostKeyBytes);
  }
};

// The answer to that Get is no longer wanted.
struct Forget {
  static constexpr FrameKind kKind = FrameKind::kForget;
  uint64_t id = 0;

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.u64(self.id);
  }
};

struct Announce {
  static constexpr FrameKind kKind = FrameKind::kAnnounce;
  ConstBytes group_state{};

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.rest(self.group_state, kMostGroupStateBytes);
  }
};

// The orderly end of a rank. Before the group has formed: it waits no longer.
struct Goodbye {
  static constexpr FrameKind kKind = FrameKind::kGoodbye;

  static void visit(const auto& /*self*/, auto& /*fields*/) {}
};

struct Beat {
  static constexpr FrameKind kKind = FrameKind::kBeat;

  static void visit(const auto& /*self*/, auto& /*fields*/) {}
};

// The rank is in; its and the server's silence may last so long.
struct Accepted {
  static constexpr FrameKind kKind = FrameKind::kAccepted;
  milliseconds silence{0};

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.duration(self.silence);
  }
};

// The heartbeat of a group that has not formed.
struct Waiting {
  static constexpr FrameKind kKind = FrameKind::kWaiting;
  static constexpr size_t kMostNamed = 8;
  int joined = 0;
  uint32_t turned_away = 0;    // number of connections with another secret
  std::vector<int> missing{};  // the lowest of them

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.rank(self.joined);
    fields.u32(self.turned_away);
    fields.ranks(self.missing, kMostNamed);
  }
};

struct Formed {
  static constexpr FrameKind kKind = FrameKind::kFormed;
  int ranks_per_node = 1;
  int ranks_in_process = 1;

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.rank(self.ranks_per_node, 1);
    fields.rank(self.ranks_in_process, 1);
  }
};

// There will be no group, or none with this rank.
struct Refused {
  static constexpr FrameKind kKind = FrameKind::kRefused;
  shardrec_status status = SHARDREC_INTERNAL;
  int rank = -1;          // at fault, where there is one
  bool complete = false;  // the group has formed without this one
  std::string text{};

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.status(self.status);
    fields.rank_or_none(self.rank);
    fields.flag(self.complete);
    fields.text(self.text, kMostTextBytes);
  }
};

// status: OK, OUT_OF_MEMORY where the store is full.
struct Reply {
  static constexpr FrameKind kKind = FrameKind::kReply;
  uint64_t id = 0;
  shardrec_status status = SHARDREC_OK;
  ConstBytes value{};

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.u64(self.id);
    fields.status(self.status);
    fields.rest(self.value, kMostValueBytes);
  }
};

struct GroupState {
  static constexpr FrameKind kKind = FrameKind::kGroupState;
  int from = 0;
  ConstBytes group_state{};

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.rank(self.from);
    fields.rest(self.group_state, kMostGroupStateBytes);
  }
};

struct Lost {
  static constexpr FrameKind kKind = FrameKind::kLost;
  int rank = 0;
  std::string how{};

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.rank(self.rank);
    fields.text(self.how, kMostTextBytes);
  }
};

// That rank said goodbye.
struct Left {
  static constexpr FrameKind kKind = FrameKind::kLeft;
  int rank = 0;

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.rank(self.rank);
  }
};

// The orderly end of the server.
struct End {
  static constexpr FrameKind kKind = FrameKind::kEnd;

  static void visit(const auto& /*self*/, auto& /*fields*/) {}
};

template <class Message>
Bytes framed(const Message& message) {
  Bytes payload;
  FieldWriter fields(payload);
  Message::visit(message, fields);
  Bytes frame;
  append_frame(frame, Message::kKind, payload);
  return frame;
}

template <class Message>
Message read(ConstBytes payload) {
  FieldReader fields(payload);
  Message message;
  Message::visit(message, fields);
  fields.end();
  return message;
}

// "rank 2", "ranks 2, 3 and 5 more"; of the lowest missing ones and their number.
std::string name_ranks(const std::vector<int>& lowest, int count);

}  // namespace shardrec::comm::rendezvous
