// What travels between ranks, and the requests of the host's threads.
//
// A short message travels as a frame: a header and a copy of its bytes, on one tag of one communicator,
// into a receive that is always posted. So MPI does not match by the transport's tags, of which it may
// have too few, and to cancel a short message leaves nothing behind in MPI. A long message is not
// copied. Its receiver first sends a frame that says it is ready, and which MPI tag it has chosen. Until
// then MPI knows neither the sender's memory nor the receiver's.
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
  kReady,       // for a long message: receive posted, on this MPI tag
  kUnready,     // the receive on this MPI tag was cancelled
  kAnswer,      // to kUnready; bytes is 1 if the message had already been sent
  kGroupState,  // for the listener of the broadcast
};

struct FrameHead {
  uint32_t transport = 0;  // index in opening order, within the process
  FrameKind kind = FrameKind::kHello;
  uint32_t tag = 0;
  uint32_t mpi_tag = 0;
  uint64_t bytes = 0;  // of the message
};

constexpr uint64_t kShort = 16 << 10;
constexpr size_t kLongestFrame = sizeof(FrameHead) + kShort;
static_assert(kShort >= SHARDREC_TRANSPORT_GROUP_STATE_BYTES);

struct Frame {
  int peer = 0;
  std::vector<std::byte> bytes{};  // head and message
};

// A send or a receive of the host, until forget(). Short sends are complete at once.
struct Request {
  Transport* transport = nullptr;
  int peer = 0;
  Direction direction = Direction::kSend;
  uint32_t tag = 0;
  std::byte* data = nullptr;
  uint64_t bytes = 0;
  std::list<Request>::iterator place{};

  // Under the transport's mutex. TIMEOUT while the request is under way. After that the engine has no
  // reference to it, unless it was asked to cancel it: then not before given_back is true.
  int32_t status = SHARDREC_TRANSPORT_TIMEOUT;
  bool given_back = false;
  std::string text{};
  std::condition_variable changed{};

  // Under the engine's mutex: the next request in the list of those to be cancelled.
  Request* next_to_give_up = nullptr;

  // Of the engine's thread.
  uint32_t mpi_tag = 0;
  int parts = 0;       // how many parts of the message MPI has
  int parts_back = 0;  // how many of them it has cancelled
  bool given_up = false;

  bool is_short() const noexcept { return bytes <= kShort; }
  uint64_t name() const noexcept { return uint64_t{static_cast<uint32_t>(peer)} << 32U | tag; }
};

}  // namespace shardrec::comm::mpi_plugin
