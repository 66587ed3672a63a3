// What a rendezvous accepts at most, and how long it waits: the bounds of its memory and time,
// whoever connects.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "comm/clock.h"

namespace shardrec::comm::rendezvous {

using std::chrono::milliseconds;

inline constexpr int kMostRanks = 4096;
inline constexpr size_t kMostTokenBytes = 512;
inline constexpr size_t kMostJobBytes = 64;
inline constexpr size_t kLeastSecretBytes = 16;
inline constexpr size_t kMostSecretBytes = 128;

// Sizes in one frame. Those of a group state and a value are also in transport_plugin.h.
inline constexpr size_t kMostGroupStateBytes = 1024;
inline constexpr size_t kMostKeyBytes = 255;
inline constexpr size_t kMostValueBytes = 65536;
inline constexpr size_t kMostTextBytes = 1024;
inline constexpr size_t kMostPayloadBytes = kMostValueBytes + 1024;

// Bounds of the store.
inline constexpr size_t kMostStoreBytes = size_t{64} << 20;
inline constexpr size_t kMostWaitingGets = 128;  // of one rank

// Connections that have not proved to know the secret. When there are more, the oldest goes: who
// knows the secret answers at once.
inline constexpr size_t kMostUnauthenticated = 256;
inline constexpr milliseconds kHandshakeTime{5000};

// Bytes that wait for one rank to read them. Above the first, nothing more is read from it; above
// the second, it is lost.
inline constexpr size_t kMuchUnread = size_t{1} << 20;
inline constexpr size_t kMostUnread = size_t{16} << 20;

// Heartbeats, in both directions.
inline constexpr double kSilenceSeconds = 4;
constexpr bool is_silence(double seconds) { return seconds >= 0.1 && seconds <= 3600; }
inline constexpr milliseconds kBeatInterval{500};
constexpr milliseconds beat_interval(milliseconds silence) {
  return std::clamp(silence / 8, milliseconds(1), kBeatInterval);
}
// How long the end of a client or a server waits for what is under way. Their sum is below 1 s.
inline constexpr milliseconds kGoodbyeTime{400};

}  // namespace shardrec::comm::rendezvous
