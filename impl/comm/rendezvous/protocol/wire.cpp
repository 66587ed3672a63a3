#include "comm/rendezvous/protocol/wire.h"

#include <algorithm>

#include "comm/rendezvous/protocol/limits.h"
#include "core/error.h"

namespace shardrec::comm::rendezvous {
namespace {

using core::fail;
using core::sentence;

constexpr size_t kHeaderBytes = 8;

}  // namespace

void Writer::number(uint64_t value, int count) {
  for (int i = 0; i < count; ++i) out_.push_back(static_cast<std::byte>(value >> (8 * i) & 0xff));
}

void Writer::bytes(ConstBytes bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }

void Writer::text(std::string_view text) {
  const std::string_view cut = text.substr(0, kMostTextBytes);
  u16(static_cast<uint16_t>(cut.size()));
  bytes(bytes_of(cut));
}

uint64_t Reader::number(int count) {
  const ConstBytes taken = bytes(static_cast<size_t>(count));
  uint64_t value = 0;
  for (size_t i = taken.size(); i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(taken[i]);
  return value;
}

ConstBytes Reader::bytes(size_t count) {
  if (count > bytes_.size()) {
    fail(SHARDREC_CORRUPT_DATA, sentence("a message of the rendezvous ends ", count - bytes_.size(),
                                         " bytes before its content does"));
  }
  const ConstBytes taken = bytes_.first(count);
  bytes_ = bytes_.subspan(count);
  return taken;
}

std::string Reader::text(size_t most) {
  const size_t length = u16();
  if (length > most) {
    fail(SHARDREC_CORRUPT_DATA, sentence("a message of the rendezvous has a text of ", length,
                                         " bytes; ", most, " are accepted"));
  }
  std::string text;
  for (const std::byte byte : bytes(length)) text.push_back(static_cast<char>(byte));
  const bool clean = std::all_of(text.begin(), text.end(), [](char letter) {
    return static_cast<unsigned char>(letter) >= 0x20 && letter != 0x7f;
  });
  if (!clean) fail(SHARDREC_CORRUPT_DATA, "a text of the rendezvous holds control characters");
  return text;
}

ConstBytes Reader::rest(size_t most) {
  if (bytes_.size() > most) {
    fail(SHARDREC_CORRUPT_DATA, sentence("a message of the rendezvous carries ", bytes_.size(),
                                         " bytes; ", most, " are accepted"));
  }
  return bytes(bytes_.size());
}

void Reader::end() const {
  if (!bytes_.empty()) {
    fail(SHARDREC_CORRUPT_DATA,
         sentence("a message of the rendezvous is ", bytes_.size(), " bytes too long"));
  }
}

void append_frame(Bytes& out, FrameKind kind, ConstBytes payload) {
  Writer writer(out);
  writer.u8(kWireVersion);
  writer.u8(static_cast<uint8_t>(kind));
  writer.u16(0);
  writer.u32(static_cast<uint32_t>(payload.size()));
  writer.bytes(payload);
}

void FrameDecoder::append(ConstBytes bytes) {
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(read_));
  read_ = 0;
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

std::optional<Frame> FrameDecoder::next() {
  const ConstBytes left = ConstBytes(buffer_).subspan(read_);
  if (left.size() < kHeaderBytes) return std::nullopt;
  Reader header(left.first(kHeaderBytes));
  const uint8_t version = header.u8();
  const uint8_t kind = header.u8();
  const uint16_t zeros = header.u16();
  const uint32_t length = header.u32();
  if (version != kWireVersion || zeros != 0) {
    fail(SHARDREC_CORRUPT_DATA, sentence("a message of the rendezvous is of version ", version,
                                         "; version ", kWireVersion, " is accepted"));
  }
  if (length > kMostPayloadBytes) {
    fail(SHARDREC_CORRUPT_DATA, sentence("a message of the rendezvous claims ", length, " bytes; ",
                                         kMostPayloadBytes, " are accepted"));
  }
  if (left.size() - kHeaderBytes < length) return std::nullopt;
  read_ += kHeaderBytes + length;
  return Frame{static_cast<FrameKind>(kind), left.subspan(kHeaderBytes, length)};
}

}  // namespace shardrec::comm::rendezvous
