// The hash of a number: what splits, shuffles and generated data are made of.
#pragma once

#include <cstdint>
#include <shardrec/shardrec.hpp>
#include <string_view>

namespace shardrec::cli {

// XXH3-64 of a number, as 8 bytes, lowest first.
inline uint64_t hash_number(uint64_t seed, uint64_t number) {
  char bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(number >> (8 * i));
  return hash64(std::string_view(bytes, sizeof bytes), seed);
}

}  // namespace shardrec::cli
