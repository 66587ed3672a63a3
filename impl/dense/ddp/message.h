// What a rank sends of a bucket: a head, a bit per parameter of the bucket where the ranks ask who
// used it, then gradients of a range of the bucket's elements, in the dtype of the way. Read by the
// same release of the library only. Ranks that have nothing to add send no gradients: zeros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/communicator.h"
#include "shardrec/tensor.h"

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

// What the heads of all ranks said.
struct BucketHeads {
  BucketVerdict verdict = BucketVerdict::kReady;  // of the first rank that is not ready
  int rank = -1;
  int32_t parameter = -1;
  int joined = 0;   // ranks
  int longest = 0;  // the first rank with the most steps
  uint64_t most_steps = 0;
};

// Of a rank that is alone.
BucketHeads heads_of(const BucketHead& own) noexcept;

// The messages of one bucket.
class BucketFormat {
 public:
  // wire: the dtype of gradients on their way. parameters: how many the bucket has.
  BucketFormat(shardrec_dtype wire, size_t parameters, bool asks_who_used) noexcept;

  shardrec_dtype wire() const noexcept { return wire_; }
  size_t wire_bytes(int64_t elements) const noexcept;
  // Bytes of a message before its gradients: whole cache lines.
  size_t bytes_before() const noexcept { return kHeadBytes + map_bytes_; }

  // Writes what stands before the gradients of a message. used: by this rank, per parameter. Returns the bytes of the
  // message, whose gradients are `elements`, or none where the head says so.
  size_t write_head(const BucketHead& head, std::span<const char> used, int64_t elements,
                    std::byte* out) const;

  // Reads what the ranks have sent, of `elements` elements each, up to the gradients. written: per parameter, 0 where
  // all ranks say that they did not use it. Throws CORRUPT_DATA for a message of another size.
  BucketHeads read_heads(std::span<const comm::ConstBytes> messages, int64_t elements,
                         std::span<char> written) const;

 private:
  static constexpr size_t kHeadBytes = 64;
  static_assert(sizeof(BucketHead) <= kHeadBytes);

  const shardrec_dtype wire_;
  const size_t parameters_;
  const size_t map_bytes_;  // of a bit per parameter; 0: nobody asks
};

}  // namespace shardrec::dense
