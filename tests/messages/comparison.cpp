#include "messages/comparison.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "embedding/exchange/wire.h"
#include "support/same_element.h"

namespace shardrec::test {
namespace {

using core::sentence;

// Sections of bodies begin at multiples of 8 bytes, blocks of rows at multiples of 64 (wire.h).
constexpr size_t kLongestPadding = 63;
constexpr size_t kAlignment = 8;

bool same_operation(const PostedExchange& one, const PostedExchange& other) {
  return one.name == other.name && one.kind == other.kind && one.detail == other.detail &&
         one.size == other.size && one.messages.size() == other.messages.size();
}

using Bytes = std::vector<std::byte>;

// Is the byte part of a float that is the same number in both though its bytes differ, which is a NaN?
bool is_same_number(const Bytes& one, const Bytes& other, size_t at) {
  const size_t first = at / sizeof(float) * sizeof(float);
  if (first + sizeof(float) > one.size()) return false;
  return same_element(compute::Element::kFloat32, &one[first], &other[first]);
}

// What a rank would answer itself, it may have written into its output at once: that place in the message to
// itself has nothing in it, and nobody reads it (embedding/forward/direct.h).
bool is_read(const PostedExchange& exchange, size_t to, int own_rank) {
  return exchange.name != "forward" || static_cast<int>(to) != own_rank;
}

// What is compared of a message. A rank without peers may have the body of its input message to itself elsewhere, and
// lengths in another form (wire.h): of that one, the header.
Bytes compared_part(const PostedExchange& exchange, size_t to) {
  Bytes message = exchange.messages[to];
  if (exchange.name == "begin" && exchange.messages.size() == 1) {
    message.resize(std::min(message.size(), sizeof(embedding::InputHeader)));
  }
  return message;
}

// What is wrong with a message; empty: nothing.
std::string difference(const Bytes& cpu, const Bytes& garbage, const Bytes& other_garbage,
                       const Bytes& device, Compared& compared) {
  for (const Bytes* other : {&garbage, &other_garbage, &device}) {
    if (other->size() == cpu.size()) continue;
    return sentence("has ", cpu.size(), " bytes on the CPU, ", other->size(),
                    other == &device ? " on the device" : " on the CPU with garbage");
  }
  compared.bytes += std::ssize(cpu);
  size_t padding = 0;  // bytes of it right before this one
  for (size_t at = 0; at <= cpu.size(); ++at) {
    if (at < cpu.size() && garbage[at] != other_garbage[at]) {
      ++padding;
      continue;
    }
    if (padding > kLongestPadding || (padding != 0 && at % kAlignment != 0)) {
      return sentence("holds garbage, not padding: ", padding, " bytes before byte ", at, " of ",
                      cpu.size());
    }
    compared.padding += static_cast<int64_t>(padding);
    padding = 0;
    if (at == cpu.size()) break;
    for (const Bytes* other : {&garbage, &device}) {
      if ((*other)[at] == cpu[at] || is_same_number(cpu, *other, at)) continue;
      return sentence("differs at byte ", at, " of ", cpu.size(), ": ",
                      std::to_integer<int>(cpu[at]), " on the CPU, ",
                      std::to_integer<int>((*other)[at]),
                      other == &device ? " on the device" : " on the CPU with garbage");
    }
  }
  return {};
}

// One exchange, as it was posted in each run.
struct Four {
  const PostedExchange& cpu;
  const PostedExchange& garbage;
  const PostedExchange& other_garbage;
  const PostedExchange& device;
};

std::string difference(const Four& exchanges, int own_rank, Compared& compared) {
  const auto& [cpu, garbage, other_garbage, device] = exchanges;
  for (const PostedExchange* other : {&garbage, &other_garbage, &device}) {
    if (same_operation(cpu, *other)) continue;
    return sentence("is ", cpu.name, " on the CPU, ", other->name,
                    other == &device ? " on the device" : " on the CPU with garbage",
                    ", or of another kind, detail or size");
  }
  ++compared.exchanges;
  for (size_t to = 0; to < cpu.messages.size(); ++to) {
    if (!is_read(cpu, to, own_rank)) continue;
    const std::string wrong =
        difference(compared_part(cpu, to), compared_part(garbage, to),
                   compared_part(other_garbage, to), compared_part(device, to), compared);
    if (!wrong.empty()) return sentence(cpu.name, ", its message to rank ", to, " ", wrong);
  }
  return {};
}

}  // namespace

Compared& Compared::operator+=(const Compared& other) {
  exchanges += other.exchanges;
  bytes += other.bytes;
  padding += other.padding;
  return *this;
}

Compared compare_messages(const std::string& of_rank, const Records& records) {
  Compared compared;
  const auto& channels = records.cpu.channels();
  for (const Record* other : {&records.garbage, &records.other_garbage, &records.device}) {
    EXPECT_EQ(channels.size(), other->channels().size()) << of_rank;
    if (channels.size() != other->channels().size()) return compared;
  }
  for (size_t c = 0; c < channels.size(); ++c) {
    const std::string where = sentence(of_rank, ", channel ", c, " (", channels[c].name, ")");
    size_t exchanges = channels[c].posted.size();
    for (const Record* other : {&records.garbage, &records.other_garbage, &records.device}) {
      EXPECT_EQ(channels[c].name, other->channels()[c].name) << where;
      EXPECT_EQ(channels[c].posted.size(), other->channels()[c].posted.size()) << where;
      exchanges = std::min(exchanges, other->channels()[c].posted.size());
    }
    for (size_t e = 0; e < exchanges; ++e) {
      const std::string wrong =
          difference({.cpu = channels[c].posted[e],
                      .garbage = records.garbage.channels()[c].posted[e],
                      .other_garbage = records.other_garbage.channels()[c].posted[e],
                      .device = records.device.channels()[c].posted[e]},
                     channels[c].rank, compared);
      if (wrong.empty()) continue;
      ADD_FAILURE() << where << ", exchange " << e << ": " << wrong;
      break;
    }
  }
  return compared;
}

}  // namespace shardrec::test
