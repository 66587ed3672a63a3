// What a rank sends of a bucket: a head, a bit per parameter of the bucket where the ranks ask who
// used it, then gradients of the bucket's elements [begin, end). Read by the same release of the
// library only. Ranks that have nothing to add send no gradients: zeros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/communicator.h"

namespace shardrec::dense {

enum class BucketVerdict : uint32_t {
  kReady = 0,
  kNotReady = 1,  // a parameter was not marked, where each must be
};

struct BucketHead {
  BucketVerdict verdict = BucketVerdict::kReady;
  int32_t parameter = -1;  // of kNotReady
  uint32_t has_gradients = 1;
  uint32_t joined = 0;  // the rank has no more batches
  uint64_t steps = 0;   // that the rank has taken part in with gradients of its own
};

inline constexpr size_t kHeadBytes = 64;
static_assert(sizeof(BucketHead) <= kHeadBytes);

// Bytes of a bit per parameter, whole cache lines.
constexpr size_t map_bytes(size_t parameters) noexcept { return (parameters + 511) / 512 * 64; }

// A message that has come.
struct BucketMessage {
  BucketHead head;
  std::span<const std::byte> used{};     // empty: nobody asks
  const std::byte* gradients = nullptr;  // null: zeros
};

void write_head(const BucketHead& head, std::byte* out) noexcept;

// used: bytes of the map; gradients: bytes that come where the head says that some do. Throws
// CORRUPT_DATA for another size.
BucketMessage read_message(comm::ConstBytes message, size_t used, size_t gradients, size_t from);

}  // namespace shardrec::dense
