#include "comm/remote/group_state.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "core/json.h"

namespace shardrec::comm::remote {
namespace {

constexpr uint32_t kMagic = 0x42524853;  // "SHRB"
constexpr uint8_t kVersion = 1;

struct Header {
  uint32_t magic;
  uint8_t version;
  uint8_t sort;
  uint8_t presence;
  uint8_t count;
  uint64_t group;
};

struct WireProgress {
  uint32_t channel;
  uint32_t closed;
  uint64_t posted;
  uint64_t received;
};
static_assert(sizeof(Header) + kMostProgress * sizeof(WireProgress) <= kGroupStateBytes);

// The texts follow it: operation, failed_rank_operation, reason.
struct WireFailure {
  uint64_t sequence;
  uint64_t size;
  uint64_t failed_rank_size;
  double seconds;
  int32_t failed_rank;
  int32_t observer;
  uint16_t texts[3];
  uint8_t cause;
  uint8_t inherited;
};
constexpr size_t kMostText[] = {128, 192, 512};
static_assert(sizeof(Header) + sizeof(WireFailure) + 128 + 192 + 512 <= kGroupStateBytes);

class Writer {
 public:
  template <class T>
  void put(const T& value) noexcept {
    std::memcpy(frame.bytes.data() + frame.size, &value, sizeof value);
    frame.size += sizeof value;
  }
  void put_text(std::string_view text) noexcept {
    std::memcpy(frame.bytes.data() + frame.size, text.data(), text.size());
    frame.size += text.size();
  }
  EncodedGroupState frame;
};

class Reader {
 public:
  explicit Reader(ConstBytes bytes) : left_(bytes) {}
  template <class T>
  bool get(T& value) noexcept {
    if (left_.size() < sizeof value) return false;
    std::memcpy(&value, left_.data(), sizeof value);
    left_ = left_.subspan(sizeof value);
    return true;
  }
  bool get_text(size_t size, std::string& text) {
    if (left_.size() < size) return false;
    text.resize(size);
    if (size != 0) std::memcpy(text.data(), left_.data(), size);
    left_ = left_.subspan(size);
    return core::is_utf8(text);
  }
  bool at_end() const noexcept { return left_.empty(); }

 private:
  ConstBytes left_;
};

// At most so many bytes, and no part of a character.
std::string_view cut(std::string_view text, size_t most) noexcept {
  if (text.size() <= most) return text;
  const auto continues = [&](size_t at) { return (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80; };
  while (most > 0 && continues(most)) --most;
  return text.substr(0, most);
}

void put_failure(Writer& writer, const Failure& failure) noexcept {
  const std::string_view texts[] = {cut(failure.operation, kMostText[0]),
                                    cut(failure.failed_rank_operation, kMostText[1]),
                                    cut(failure.reason, kMostText[2])};
  writer.put(WireFailure{
      .sequence = failure.sequence,
      .size = failure.size,
      .failed_rank_size = failure.failed_rank_size,
      .seconds = failure.seconds,
      .failed_rank = failure.failed_rank,
      .observer = failure.observer,
      .texts = {static_cast<uint16_t>(texts[0].size()), static_cast<uint16_t>(texts[1].size()),
                static_cast<uint16_t>(texts[2].size())},
      .cause = static_cast<uint8_t>(failure.cause),
      .inherited = failure.inherited});
  for (const std::string_view text : texts) writer.put_text(text);
}

bool get_failure(Reader& reader, Failure& failure) {
  WireFailure wire;
  if (!reader.get(wire)) return false;
  if (wire.cause >= kCauses || wire.failed_rank < 0 || wire.observer < 0) return false;
  for (size_t i = 0; i < std::size(kMostText); ++i) {
    if (wire.texts[i] > kMostText[i]) return false;
  }
  failure.cause = static_cast<Cause>(wire.cause);
  failure.failed_rank = wire.failed_rank;
  failure.observer = wire.observer;
  failure.sequence = wire.sequence;
  failure.size = wire.size;
  failure.failed_rank_size = wire.failed_rank_size;
  failure.seconds = wire.seconds;
  failure.inherited = wire.inherited != 0;
  return reader.get_text(wire.texts[0], failure.operation) &&
         reader.get_text(wire.texts[1], failure.failed_rank_operation) &&
         reader.get_text(wire.texts[2], failure.reason);
}

bool get_progress(Reader& reader, Progress& progress) noexcept {
  WireProgress wire;
  if (!reader.get(wire)) return false;
  progress = {.channel = wire.channel,
              .closed = wire.closed != 0,
              .posted = wire.posted,
              .received = wire.received};
  return true;
}

bool get_body(Reader& reader, const Header& header, GroupState& group_state) {
  group_state.group = header.group;
  group_state.sort = static_cast<GroupState::Sort>(header.sort);
  switch (group_state.sort) {
    case GroupState::Sort::kFailure:
      return get_failure(reader, group_state.failure);
    case GroupState::Sort::kProgress:
      if (header.count > kMostProgress) return false;
      while (group_state.count < header.count) {
        if (!get_progress(reader, group_state.progress[group_state.count++])) return false;
      }
      return true;
    case GroupState::Sort::kDeparture:
      group_state.presence = static_cast<Presence>(header.presence);
      return group_state.presence == Presence::kLeft ||
             group_state.presence == Presence::kDestroyed;
    case GroupState::Sort::kEnd:
      return true;
  }
  return false;
}

}  // namespace

EncodedGroupState write_group_state(const GroupState& group_state) noexcept {
  Writer writer;
  writer.put(Header{.magic = kMagic,
                    .version = kVersion,
                    .sort = static_cast<uint8_t>(group_state.sort),
                    .presence = static_cast<uint8_t>(group_state.presence),
                    .count = static_cast<uint8_t>(group_state.count),
                    .group = group_state.group});
  if (group_state.sort == GroupState::Sort::kFailure) put_failure(writer, group_state.failure);
  for (size_t i = 0; i < group_state.count; ++i) {
    const Progress& progress = group_state.progress[i];
    writer.put(WireProgress{.channel = progress.channel,
                            .closed = progress.closed,
                            .posted = progress.posted,
                            .received = progress.received});
  }
  return writer.frame;
}

std::optional<GroupState> read_group_state(ConstBytes bytes) {
  Reader reader(bytes);
  Header header;
  if (!reader.get(header) || header.magic != kMagic || header.version != kVersion) return {};
  GroupState group_state;
  if (!get_body(reader, header, group_state) || !reader.at_end()) return {};
  return group_state;
}

}  // namespace shardrec::comm::remote
