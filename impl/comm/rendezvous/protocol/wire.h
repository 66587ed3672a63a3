// The format of what travels after the handshake: frames. A frame is a header of 8 bytes (version,
// kind, two zeros, length of the payload) and its payload; numbers are little endian. Nothing here
// knows of sockets.
//
// Whatever the bytes, reading ends with values or with core::Error (CORRUPT_DATA); no length is
// believed before it is compared with what is there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"

namespace shardrec::comm::rendezvous {

inline constexpr uint8_t kWireVersion = 1;

using Bytes = std::vector<std::byte>;

inline ConstBytes bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Appends to `out`.
class Writer {
 public:
  explicit Writer(Bytes& out) : out_(out) {}
  void u8(uint8_t value) { number(value, 1); }
  void u16(uint16_t value) { number(value, 2); }
  void u32(uint32_t value) { number(value, 4); }
  void u64(uint64_t value) { number(value, 8); }
  void bytes(ConstBytes bytes);
  // Its length, then its bytes.
  void text(std::string_view text);

 private:
  void number(uint64_t value, int count);
  Bytes& out_;
};

class Reader {
 public:
  explicit Reader(ConstBytes bytes) : bytes_(bytes) {}
  uint8_t u8() { return static_cast<uint8_t>(number(1)); }
  uint16_t u16() { return static_cast<uint16_t>(number(2)); }
  uint32_t u32() { return static_cast<uint32_t>(number(4)); }
  uint64_t u64() { return number(8); }
  ConstBytes bytes(size_t count);
  // Without control characters.
  std::string text(size_t most);
  // All bytes that are left.
  ConstBytes rest(size_t most);
  // Throws when something is left.
  void end() const;

 private:
  uint64_t number(int count);
  ConstBytes bytes_;
};

enum class FrameKind : uint8_t {
  // From a rank.
  kJoin = 1,
  kSet,
  kGet,
  kForget,
  kAnnounce,
  kGoodbye,
  // To a rank.
  kAccepted = 32,
  kWaiting,
  kFormed,
  kRefused,
  kReply,
  kGroupState,
  kLost,
  kLeft,
  kEnd,
  // In both directions.
  kBeat = 64,
};

struct Frame {
  FrameKind kind = FrameKind::kBeat;
  ConstBytes payload;
};

void append_frame(Bytes& out, FrameKind kind, ConstBytes payload);

// Cuts a stream of bytes into frames.
class FrameDecoder {
 public:
  void append(ConstBytes bytes);
  // The next whole frame, a view until append(). Throws when the stream is none of frames; it is
  // of no use afterwards.
  std::optional<Frame> next();

 private:
  Bytes buffer_;
  size_t read_ = 0;  // bytes of the buffer that were handed out
};

}  // namespace shardrec::comm::rendezvous
