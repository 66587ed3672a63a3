// The envelope: what every rank sends every other one in each exchange, of a length that is known
// before anything has arrived. It says what the exchange is and how long the message; a short
// message lies inside, a longer one follows by itself.
//
//   0   magic, version, purpose, length of the name
//   8   group
//   16  sequence      24  detail      32  size      40  bytes of the message
//   48  channel       52  kind
//   56  name, cut at kMostName bytes
//   128 the message, if it has at most kInlineBytes bytes
//
// Numbers are little-endian, as all machines that the library runs on are. read_envelope() trusts
// nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "comm/communicator.h"

namespace shardrec::comm::remote {

inline constexpr size_t kEnvelopeBytes = 512;
inline constexpr size_t kInlineAt = 128;  // aligned as any message is
inline constexpr size_t kInlineBytes = kEnvelopeBytes - kInlineAt;
inline constexpr size_t kMostName = kInlineAt - 56;
inline constexpr uint64_t kMostBytes = uint64_t{1} << 40;  // of a message

struct Envelope {
  Purpose purpose = Purpose::kControl;
  uint64_t group = 0;
  uint32_t channel = 0;
  uint64_t sequence = 0;
  uint32_t kind = 0;
  uint64_t detail = 0;
  uint64_t size = 0;
  uint64_t bytes = 0;
  std::string_view name{};  // read: lies in what was read
};

// The two transfers of an exchange from a rank to another one: always its envelope, then the message
// where that does not fit the envelope.
enum class TransferKind : uint32_t { kEnvelope = 0, kMessage = 1 };

// Channel numbers have so many bits; the other bits of a tag tell exchanges that are under way at
// the same time apart. A rank that posts n has received n - kMostInFlight, so that its peers have
// posted that and received n - 2 kMostInFlight.
inline constexpr int kChannelBits = 24;
inline constexpr int kSequenceBits = 6;
static_assert((1 << kSequenceBits) > 2 * Channel::kMostInFlight + 1);

constexpr uint32_t tag_of(uint32_t channel, uint64_t sequence, TransferKind kind) noexcept {
  constexpr uint64_t kMask = (1U << kSequenceBits) - 1;
  return channel << (kSequenceBits + 1) | static_cast<uint32_t>(sequence & kMask) << 1 |
         static_cast<uint32_t>(kind);
}

// message: copied if it is short; envelope.bytes is its size.
void write_envelope(const Envelope& envelope, ConstBytes message,
                    std::span<std::byte, kEnvelopeBytes> out) noexcept;

// Says what is wrong with the bytes; empty: nothing, and `envelope` is set.
std::string_view read_envelope(std::span<const std::byte, kEnvelopeBytes> bytes,
                               Envelope& envelope) noexcept;

}  // namespace shardrec::comm::remote
