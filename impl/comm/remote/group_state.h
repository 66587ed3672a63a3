// A group state: what a rank announces to all others over the StateBroadcast, whatever exchanges they
// are in. There are four sorts: the group has failed; the rank's progress on channels that it has
// closed; the rank has left the group; the rank sends nothing more although it had posted more
// (kEnd). Group states carry a version and are checked on arrival.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "comm/failure.h"
#include "comm/remote/link.h"

namespace shardrec::comm::remote {

inline constexpr size_t kGroupStateBytes = 1024;

// Whether a rank is a member of its group, and how it ended that.
enum class Presence : uint8_t { kMember, kLeft, kDestroyed };

// The progress of a rank on one channel. It has posted the exchanges below `posted` and received the
// messages of those below `received`. Peers need not wait for it in these.
struct Progress {
  uint32_t channel = 0;
  bool closed = false;  // the rank has destroyed its end of the channel
  uint64_t posted = 0;
  uint64_t received = 0;
};

inline constexpr size_t kMostProgress = 32;  // in one group state

struct GroupState {
  enum class Sort : uint8_t { kFailure = 1, kProgress, kDeparture, kEnd };

  Sort sort = Sort::kFailure;
  uint64_t group = 0;
  Failure failure{};  // of kFailure; its texts are cut, its ranks are at least 0
  Presence presence = Presence::kMember;  // of kDeparture: kLeft or kDestroyed
  size_t count = 0;                       // of kProgress
  std::array<Progress, kMostProgress> progress{};
};

struct EncodedGroupState {
  std::array<std::byte, kGroupStateBytes> bytes;
  size_t size = 0;
  ConstBytes view() const noexcept { return {bytes.data(), size}; }
};

EncodedGroupState write_group_state(const GroupState& group_state) noexcept;

// Returns nullopt if the bytes are no group state. Throws only if memory runs out.
std::optional<GroupState> read_group_state(ConstBytes bytes);

}  // namespace shardrec::comm::remote
