// What travels between ranks, and the requests of the host's threads.
//
// Short messages travel as frames: a header and the bytes, copied, on one tag of one communicator,
// into a receive that is always posted. So MPI matches nothing by our tags, of which it may have
// fewer than we need, and giving up a message leaves nothing behind in MPI. A long message travels
// from its own memory to its own memory, once the receiver has told the sender by a frame that it
// is ready and on which lane (a tag that it has chosen): until then MPI knows neither memory.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "comm/plugin/transport_plugin.h"

namespace shardrec::comm::mpi_plugin {

class Transport;

enum class Direction : uint8_t { kSend, kReceive };

enum class FrameKind : uint32_t {
  kHello,       // the sender has opened this transport
  kMessage,     // a short message, whole
  kReady,       // for a long message: receive posted, on this lane
  kUnready,     // the receive on this lane was taken back
  kAnswer,      // to that: whether (bytes: 1) the message had been sent already
  kGroupState,  // for whoever listens
};

struct FrameHead {
  uint32_t transport = 0;  // index in opening order, within the process
  FrameKind kind = FrameKind::kHello;
  uint32_t tag = 0;
  uint32_t lane = 0;
  uint64_t bytes = 0;  // of the message
};

constexpr uint64_t kShort = 16 << 10;
constexpr size_t kLongestFrame = sizeof(FrameHead) + kShort;
static_assert(kShort >= SHARDREC_TRANSPORT_GROUP_STATE_BYTES);

struct Frame {
  int peer = 0;
  std::vector<std::byte> bytes{};  // head and message
};

// A message that a host has asked for and not yet forgotten. Short sends are done at once.
struct Request {
  Transport* transport = nullptr;
  int peer = 0;
  Direction direction = Direction::kSend;
  uint32_t tag = 0;
  std::byte* data = nullptr;
  uint64_t bytes = 0;
  std::list<Request>::iterator place{};

  // Under the transport's mutex. TIMEOUT: under way. Otherwise the engine knows it no longer,
  // unless it was asked to give it up: then not before it has given it back.
  int32_t status = SHARDREC_TRANSPORT_TIMEOUT;
  bool given_back = false;
  std::string text{};
  std::condition_variable changed{};

  // Under the engine's mutex: the next of those that it is asked to give up.
  Request* next_to_give_up = nullptr;

  // Of the engine's thread.
  uint32_t lane = 0;
  int parts = 0;       // of it that MPI has
  int parts_back = 0;  // that it gave back empty
  bool given_up = false;

  bool is_short() const noexcept { return bytes <= kShort; }
  uint64_t name() const noexcept { return uint64_t{static_cast<uint32_t>(peer)} << 32U | tag; }
};

}  // namespace shardrec::comm::mpi_plugin
