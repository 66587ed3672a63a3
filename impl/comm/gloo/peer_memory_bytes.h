// The environment variable SHARDREC_GLOO_DIRECT_BYTES: from how many bytes on ranks of one machine
// read a message in each other's memory. For the core, which checks it before anybody waits, and
// for the plug-in.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace shardrec::comm::gloo_plugin {

// Below, the answer takes longer than the copies that it spares.
inline constexpr uint64_t kUsualPeerMemoryBytes = uint64_t{1} << 20;
// Up to one byte less, messages are copied.
inline constexpr uint64_t kLeastPeerMemoryBytes = (uint64_t{16} << 10) + 1;

inline constexpr const char* kPeerMemoryBytesAccepted =
    "the environment variable SHARDREC_GLOO_DIRECT_BYTES is no number of bytes; an integer of at "
    "least 16385, or 0 (no message is read so), is accepted";
static_assert(kLeastPeerMemoryBytes == 16385);

// Not set, or empty: what is usual. 0: more than any message has. None: malformed.
inline std::optional<uint64_t> peer_memory_bytes_of_env() noexcept {
  const char* const text = std::getenv("SHARDREC_GLOO_DIRECT_BYTES");
  const std::string_view digits = text == nullptr ? "" : text;
  if (digits.empty()) return kUsualPeerMemoryBytes;
  uint64_t bytes = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), bytes);
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) return std::nullopt;
  if (bytes == 0) return UINT64_MAX;
  if (bytes < kLeastPeerMemoryBytes) return std::nullopt;
  return bytes;
}

}  // namespace shardrec::comm::gloo_plugin
