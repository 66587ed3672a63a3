// The messages of ranks and rendezvous, one struct per kind of frame. read<M>() accepts exactly
// what framed() writes; anything else is CORRUPT_DATA.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/rendezvous/protocol/limits.h"
#include "comm/rendezvous/protocol/wire.h"
#include "shardrec/status.h"

namespace shardrec::comm::rendezvous {

using HostId = std::array<std::byte, 16>;

// A rank says who and where it is.
struct Join {
  static constexpr FrameKind kKind = FrameKind::kJoin;
  int rank = 0;
  int size = 1;
  HostId host{};          // equal on all ranks of one machine and network namespace
  uint64_t process = 0;   // equal on all ranks of one process of that host
  int ranks_on_host = 0;  // as its launcher said; 0: it said nothing

  void write(Writer& out) const;
  static Join read(Reader& in);
};

struct Set {
  static constexpr FrameKind kKind = FrameKind::kSet;
  uint64_t id = 0;
  std::string key{};
  ConstBytes value{};  // of what was read

  void write(Writer& out) const;
  static Set read(Reader& in);
};

struct Get {
  static constexpr FrameKind kKind = FrameKind::kGet;
  uint64_t id = 0;
  std::string key{};

  void write(Writer& out) const;
  static Get read(Reader& in);
};

// The answer to that Get is no longer wanted.
struct Forget {
  static constexpr FrameKind kKind = FrameKind::kForget;
  uint64_t id = 0;

  void write(Writer& out) const;
  static Forget read(Reader& in);
};

struct Announce {
  static constexpr FrameKind kKind = FrameKind::kAnnounce;
  ConstBytes bulletin{};

  void write(Writer& out) const;
  static Announce read(Reader& in);
};

// The orderly end of a rank. Before the group has formed: it waits no longer.
struct Goodbye {
  static constexpr FrameKind kKind = FrameKind::kGoodbye;

  void write(Writer&) const {}
  static Goodbye read(Reader&) { return {}; }
};

struct Beat {
  static constexpr FrameKind kKind = FrameKind::kBeat;

  void write(Writer&) const {}
  static Beat read(Reader&) { return {}; }
};

// The rank is in; its and the server's silence may last so long.
struct Accepted {
  static constexpr FrameKind kKind = FrameKind::kAccepted;
  milliseconds silence{0};

  void write(Writer& out) const;
  static Accepted read(Reader& in);
};

// The heartbeat of a group that has not formed.
struct Waiting {
  static constexpr FrameKind kKind = FrameKind::kWaiting;
  static constexpr size_t kMostNamed = 8;
  int joined = 0;
  uint32_t turned_away = 0;    // number of connections with another secret
  std::vector<int> missing{};  // the lowest of them

  void write(Writer& out) const;
  static Waiting read(Reader& in);
};

struct Formed {
  static constexpr FrameKind kKind = FrameKind::kFormed;
  int ranks_per_node = 1;
  int ranks_in_process = 1;

  void write(Writer& out) const;
  static Formed read(Reader& in);
};

// There will be no group, or none with this rank.
struct Refused {
  static constexpr FrameKind kKind = FrameKind::kRefused;
  shardrec_status status = SHARDREC_INTERNAL;
  int rank = -1;          // at fault, where there is one
  bool complete = false;  // the group has formed without this one
  std::string text{};

  void write(Writer& out) const;
  static Refused read(Reader& in);
};

// status: OK, OUT_OF_MEMORY where the store is full.
struct Reply {
  static constexpr FrameKind kKind = FrameKind::kReply;
  uint64_t id = 0;
  shardrec_status status = SHARDREC_OK;
  ConstBytes value{};

  void write(Writer& out) const;
  static Reply read(Reader& in);
};

struct Bulletin {
  static constexpr FrameKind kKind = FrameKind::kBulletin;
  int from = 0;
  ConstBytes bulletin{};

  void write(Writer& out) const;
  static Bulletin read(Reader& in);
};

struct Lost {
  static constexpr FrameKind kKind = FrameKind::kLost;
  int rank = 0;
  std::string how{};

  void write(Writer& out) const;
  static Lost read(Reader& in);
};

// That rank said goodbye.
struct Left {
  static constexpr FrameKind kKind = FrameKind::kLeft;
  int rank = 0;

  void write(Writer& out) const;
  static Left read(Reader& in);
};

// The orderly end of the server.
struct End {
  static constexpr FrameKind kKind = FrameKind::kEnd;

  void write(Writer&) const {}
  static End read(Reader&) { return {}; }
};

template <class Message>
Bytes framed(const Message& message) {
  Bytes payload;
  Writer writer(payload);
  message.write(writer);
  Bytes frame;
  append_frame(frame, Message::kKind, payload);
  return frame;
}

template <class Message>
Message read(ConstBytes payload) {
  Reader reader(payload);
  Message message = Message::read(reader);
  reader.end();
  return message;
}

// "rank 2", "ranks 2, 3 and 5 more"; of the lowest missing ones and their number.
std::string name_ranks(const std::vector<int>& lowest, int count);

}  // namespace shardrec::comm::rendezvous
