// What travels between processes: envelopes and group states say what was written, and bytes that are
// neither are refused whatever they are.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "comm/remote/envelope.h"
#include "comm/remote/group.h"
#include "comm/remote/group_state.h"
#include "core/error.h"

namespace shardrec::comm::remote {
namespace {

using Bytes = std::array<std::byte, kEnvelopeBytes>;

Envelope some_envelope() {
  return {.purpose = Purpose::kDense,
          .group = 0x0123456789ABCDEF,
          .channel = 0xABCDEF,
          .sequence = uint64_t{1} << 40,
          .kind = 7,
          .detail = 0xFEDCBA9876543210,
          .size = 1000,
          .bytes = 3,
          .name = "backward"};
}

Bytes written(const Envelope& envelope, const std::string& message) {
  Bytes bytes;
  bytes.fill(std::byte{0xAA});
  write_envelope(envelope, std::as_bytes(std::span(message)), bytes);
  return bytes;
}

TEST(Envelope, SaysWhatWasWrittenAndHoldsAShortMessage) {
  const Bytes bytes = written(some_envelope(), "abc");
  Envelope read;
  ASSERT_EQ(read_envelope(bytes, read), "");
  EXPECT_EQ(read.purpose, Purpose::kDense);
  EXPECT_EQ(read.group, 0x0123456789ABCDEFU);
  EXPECT_EQ(read.channel, 0xABCDEFU);
  EXPECT_EQ(read.sequence, uint64_t{1} << 40);
  EXPECT_EQ(read.kind, 7U);
  EXPECT_EQ(read.detail, 0xFEDCBA9876543210U);
  EXPECT_EQ(read.size, 1000U);
  EXPECT_EQ(read.bytes, 3U);
  EXPECT_EQ(read.name, "backward");
  EXPECT_EQ(std::memcmp(bytes.data() + kInlineAt, "abc", 3), 0);
  // Nothing of the memory that it was written to travels along.
  for (size_t i = kInlineAt + 3; i < kEnvelopeBytes; ++i) ASSERT_EQ(bytes[i], std::byte{0});
}

TEST(Envelope, CutsALongNameAndLeavesALongMessageOut) {
  Envelope envelope = some_envelope();
  const std::string name(200, 'n');
  envelope.name = name;
  const Bytes bytes = written(envelope, std::string(kInlineBytes + 1, 'x'));
  Envelope read;
  ASSERT_EQ(read_envelope(bytes, read), "");
  EXPECT_EQ(read.name, std::string(kMostName, 'n'));
  EXPECT_EQ(bytes[kInlineAt], std::byte{0});
}

TEST(Envelope, RefusesWhatIsNone) {
  const auto damaged = [](size_t at, uint8_t value) {
    Bytes bytes = written(some_envelope(), "abc");
    bytes[at] = std::byte{value};
    Envelope read;
    return std::string(read_envelope(bytes, read));
  };
  EXPECT_EQ(damaged(0, 0), "it does not begin as one");
  EXPECT_EQ(damaged(4, 2), "it is of another version of the library");
  EXPECT_EQ(damaged(6, 6), "its purpose is unknown");
  EXPECT_EQ(damaged(7, kMostName + 1), "its name is too long");
  EXPECT_EQ(damaged(47, 1), "it announces more bytes than a message can have");
  EXPECT_EQ(damaged(57, '\n'), "its name is no text");
}

TEST(Envelope, TagsTellMessagesThatAreUnderWayTogetherApart) {
  std::set<uint32_t> tags;
  constexpr uint32_t kChannels[] = {0, 1, 5, (1U << kChannelBits) - 1};
  constexpr uint64_t kInFlight = 2 * Channel::kMostInFlight + 1;
  for (const uint32_t channel : kChannels) {
    for (uint64_t n = 1000; n < 1000 + kInFlight; ++n) {
      tags.insert(tag_of(channel, n, TransferKind::kEnvelope));
      tags.insert(tag_of(channel, n, TransferKind::kMessage));
    }
  }
  EXPECT_EQ(tags.size(), std::size(kChannels) * kInFlight * 2);
  EXPECT_LT(*tags.rbegin(), 1U << 31);
}

GroupState some_failure() {
  return {.sort = GroupState::Sort::kFailure,
          .group = 77,
          .failure = {.cause = Cause::kSize,
                      .failed_rank = 3,
                      .observer = 1,
                      .sequence = 9,
                      .operation = "forward",
                      .failed_rank_operation = "backward",
                      .size = 5,
                      .failed_rank_size = 6,
                      .seconds = 0.25,
                      .reason = "because"}};
}

TEST(GroupState, AFailureArrivesWhole) {
  const auto read = read_group_state(write_group_state(some_failure()).view());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->group, 77U);
  const Failure& failure = read->failure;
  EXPECT_EQ(failure.cause, Cause::kSize);
  EXPECT_EQ(failure.failed_rank, 3);
  EXPECT_EQ(failure.observer, 1);
  EXPECT_EQ(failure.sequence, 9U);
  EXPECT_EQ(failure.operation, "forward");
  EXPECT_EQ(failure.failed_rank_operation, "backward");
  EXPECT_EQ(failure.size, 5U);
  EXPECT_EQ(failure.failed_rank_size, 6U);
  EXPECT_EQ(failure.seconds, 0.25);
  EXPECT_EQ(failure.reason, "because");
  EXPECT_FALSE(failure.inherited);
}

TEST(GroupState, LongTextsAreCutBetweenCharacters) {
  GroupState group_state = some_failure();
  group_state.failure.operation = std::string(500, 'o');
  group_state.failure.failed_rank_operation = std::string(500, 'c');
  group_state.failure.reason = "x";
  for (int i = 0; i < 400; ++i) group_state.failure.reason += "\u00e9";  // two bytes each
  const EncodedGroupState frame = write_group_state(group_state);
  EXPECT_LE(frame.size, kGroupStateBytes);
  const auto read = read_group_state(frame.view());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->failure.operation, std::string(128, 'o'));
  EXPECT_EQ(read->failure.reason.size(), 511U);
  EXPECT_EQ(read->failure.reason, group_state.failure.reason.substr(0, 511));
}

TEST(GroupState, ProgressAndDeparturesArriveWhole) {
  GroupState progress{.sort = GroupState::Sort::kProgress, .group = 5, .count = kMostProgress};
  for (size_t i = 0; i < kMostProgress; ++i) {
    progress.progress[i] = {.channel = static_cast<uint32_t>(i),
                            .closed = i % 2 == 1,
                            .posted = i * 100,
                            .received = i * 10};
  }
  const auto read = read_group_state(write_group_state(progress).view());
  ASSERT_TRUE(read);
  ASSERT_EQ(read->count, kMostProgress);
  for (size_t i = 0; i < kMostProgress; ++i) {
    EXPECT_EQ(read->progress[i].channel, i);
    EXPECT_EQ(read->progress[i].closed, i % 2 == 1);
    EXPECT_EQ(read->progress[i].posted, i * 100);
    EXPECT_EQ(read->progress[i].received, i * 10);
  }
  const auto left = read_group_state(
      write_group_state(
          {.sort = GroupState::Sort::kDeparture, .group = 6, .presence = Presence::kLeft})
          .view());
  ASSERT_TRUE(left);
  EXPECT_EQ(left->presence, Presence::kLeft);
}

TEST(GroupState, CutLengthenedAndDamagedFramesAreRefusedOrAtLeastSensible) {
  std::mt19937 random(7);
  GroupState progress{.sort = GroupState::Sort::kProgress, .group = 5, .count = 3};
  for (const GroupState& good : {some_failure(), progress}) {
    const EncodedGroupState frame = write_group_state(good);
    for (size_t size = 0; size < frame.size; ++size) {
      EXPECT_FALSE(read_group_state(frame.view().first(size))) << size;
    }
    EncodedGroupState longer = frame;
    longer.bytes[longer.size++] = std::byte{0};
    EXPECT_FALSE(read_group_state(longer.view()));
    for (int i = 0; i < 20000; ++i) {
      EncodedGroupState damaged = frame;
      for (int j = 0; j < 3; ++j) damaged.bytes[random() % frame.size] = std::byte(random() % 256);
      const auto read = read_group_state(damaged.view());
      if (!read) continue;
      EXPECT_GE(read->failure.failed_rank, 0);
      EXPECT_LT(static_cast<int>(read->failure.cause), kCauses);
      EXPECT_LE(read->count, kMostProgress);
    }
  }
}

TEST(Numbers, GroupsThatShareARankNeverShareAChannel) {
  // A walk over splits of splits: every range's own numbers are met once.
  std::set<uint32_t> seen;
  uint64_t expected = 0;
  const auto take = [&](const Numbers& numbers) {
    const uint32_t own = std::min(numbers.own(), 40U);
    EXPECT_TRUE(seen.insert(numbers.splitting()).second);
    for (uint32_t n = 0; n + 1 < own; ++n) EXPECT_TRUE(seen.insert(*numbers.opened(n)).second);
    expected += own;
    // The last one is still the range's.
    EXPECT_EQ(*numbers.opened(numbers.own() - 2), numbers.splitting() + numbers.own() - 1);
    EXPECT_FALSE(numbers.opened(numbers.own() - 1));
    EXPECT_FALSE(numbers.split(numbers.splits()));
  };
  const Numbers root;
  take(root);
  EXPECT_EQ(root.own(), 1U << (kChannelBits - 1));
  for (uint32_t i = 0; i < root.splits(); i += i < 2 ? 1 : 510) {
    const Numbers part = *root.split(i);
    take(part);
    for (uint32_t j = 0; j < part.splits(); ++j) {
      const Numbers smaller = *part.split(j);
      take(smaller);
      for (uint32_t k = 0; k < smaller.splits(); ++k) take(*smaller.split(k));
    }
  }
  EXPECT_EQ(seen.size(), expected);
  EXPECT_LT(*seen.rbegin(), 1U << kChannelBits);
}

}  // namespace
}  // namespace shardrec::comm::remote
