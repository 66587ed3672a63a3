// XXH3-64, the one hash of the library: fingerprints, checksums of files, shardrec_hash64.
//
// The same bytes give the same number on every machine. Not for secrets: no protection against
// somebody who constructs collisions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace shardrec::core {

uint64_t hash64(uint64_t seed, std::span<const std::byte> bytes) noexcept;
uint64_t hash64(uint64_t seed, std::string_view text) noexcept;

// out[i] = hash64(seed, the eight bytes of ids[i] as int64_t, little-endian), modulo rows where rows is
// not 0. Id: int32_t or int64_t; Row: int64_t, or int32_t where rows fit. out may be ids.
template <class Id, class Row>
void hash64_ids(uint64_t seed, std::span<const Id> ids, uint64_t rows,
                std::span<Row> out) noexcept {
  for (size_t i = 0; i < ids.size(); ++i) {
    const int64_t id = ids[i];
    const uint64_t hash = hash64(seed, std::as_bytes(std::span(&id, 1)));
    out[i] = static_cast<Row>(rows == 0 ? hash : hash % rows);
  }
}

// 16 hexadecimal digits in lower case.
std::string to_hex(uint64_t value);

// The hash (seed 0) of bytes that come in pieces: the same number as hash64 of all of them. One
// thread at a time. Throws OUT_OF_MEMORY.
class StreamingHash {
 public:
  StreamingHash();
  void update(std::span<const std::byte> bytes) noexcept;
  uint64_t digest() const noexcept;

 private:
  struct Free {
    void operator()(void* state) const noexcept;
  };
  std::unique_ptr<void, Free> state_;
};

}  // namespace shardrec::core
