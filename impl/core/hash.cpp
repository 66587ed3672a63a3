#include "core/hash.h"

// Inlined, so that the library needs no libxxhash where it runs.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/error.h"

namespace shardrec::core {

uint64_t hash64(uint64_t seed, std::span<const std::byte> bytes) noexcept {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

uint64_t hash64(uint64_t seed, std::string_view text) noexcept {
  return XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

std::string to_hex(uint64_t value) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out(16, '0');
  for (size_t i = out.size(); i-- > 0; value >>= 4) out[i] = kDigits[value & 15];
  return out;
}

StreamingHash::StreamingHash() : state_(XXH3_createState()) {
  if (state_ == nullptr || XXH3_64bits_reset(static_cast<XXH3_state_t*>(state_.get())) != XXH_OK) {
    fail(SHARDREC_OUT_OF_MEMORY, "no memory for the state of a checksum");
  }
}

void StreamingHash::update(std::span<const std::byte> bytes) noexcept {
  if (!bytes.empty()) {
    XXH3_64bits_update(static_cast<XXH3_state_t*>(state_.get()), bytes.data(), bytes.size());
  }
}

uint64_t StreamingHash::digest() const noexcept {
  return XXH3_64bits_digest(static_cast<const XXH3_state_t*>(state_.get()));
}

void StreamingHash::Free::operator()(void* state) const noexcept {
  XXH3_freeState(static_cast<XXH3_state_t*>(state));
}

}  // namespace shardrec::core
