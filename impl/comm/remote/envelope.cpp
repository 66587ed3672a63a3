#include "comm/remote/envelope.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace shardrec::comm::remote {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint32_t kMagic = 0x45524853;  // "SHRE"
constexpr uint16_t kVersion = 1;

struct Header {
  uint32_t magic;
  uint16_t version;
  uint8_t purpose;
  uint8_t name_bytes;
  uint64_t group;
  uint64_t sequence;
  uint64_t detail;
  uint64_t size;
  uint64_t bytes;
  uint32_t channel;
  uint32_t kind;
};
constexpr size_t kNameAt = sizeof(Header);
static_assert(kNameAt + kMostName == kInlineAt);

}  // namespace

void write_envelope(const Envelope& envelope, ConstBytes message,
                    std::span<std::byte, kEnvelopeBytes> out) noexcept {
  const std::string_view name = envelope.name.substr(0, kMostName);
  const Header header{.magic = kMagic,
                      .version = kVersion,
                      .purpose = static_cast<uint8_t>(envelope.purpose),
                      .name_bytes = static_cast<uint8_t>(name.size()),
                      .group = envelope.group,
                      .sequence = envelope.sequence,
                      .detail = envelope.detail,
                      .size = envelope.size,
                      .bytes = envelope.bytes,
                      .channel = envelope.channel,
                      .kind = envelope.kind};
  std::memcpy(out.data(), &header, sizeof header);
  std::memset(out.data() + kNameAt, 0, kMostName);
  std::copy(name.begin(), name.end(), static_cast<char*>(static_cast<void*>(&out[kNameAt])));
  const size_t inside = message.size() <= kInlineBytes ? message.size() : 0;
  if (inside != 0) std::memcpy(out.data() + kInlineAt, message.data(), inside);
  std::memset(out.data() + kInlineAt + inside, 0, kInlineBytes - inside);
}

std::string_view read_envelope(std::span<const std::byte, kEnvelopeBytes> bytes,
                               Envelope& envelope) noexcept {
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kMagic) return "it does not begin as one";
  if (header.version != kVersion) return "it is of another version of the library";
  if (header.purpose > static_cast<uint8_t>(Purpose::kStatistics)) return "its purpose is unknown";
  if (header.name_bytes > kMostName) return "its name is too long";
  if (header.bytes > kMostBytes) return "it announces more bytes than a message can have";
  const std::string_view name(
      static_cast<const char*>(static_cast<const void*>(bytes.data() + kNameAt)),
      header.name_bytes);
  const auto printable = [](char c) { return c >= ' ' && c <= '~'; };
  if (!std::all_of(name.begin(), name.end(), printable)) return "its name is no text";
  envelope = {.purpose = static_cast<Purpose>(header.purpose),
              .group = header.group,
              .channel = header.channel,
              .sequence = header.sequence,
              .kind = header.kind,
              .detail = header.detail,
              .size = header.size,
              .bytes = header.bytes,
              .name = name};
  return {};
}

}  // namespace shardrec::comm::remote
