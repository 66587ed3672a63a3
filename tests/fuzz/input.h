// Bytes of a fuzzer as choices. Zeros when they are used up.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

namespace shardrec::fuzz {

class Input {
 public:
  explicit Input(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  uint8_t byte() {
    if (bytes_.empty()) return 0;
    const uint8_t value = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return value;
  }
  // In [0, count).
  int below(int count) { return byte() % count; }
  bool one_in(int count) { return byte() % count == count - 1; }
  template <class T>
  T of(std::initializer_list<T> values) {
    return values.begin()[byte() % values.size()];
  }
  int64_t word() {
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | byte();
    return static_cast<int64_t>(value);
  }
  // Mostly small, at times at the borders of what 64 bits hold.
  int64_t number() {
    const uint8_t how = byte();
    if (how < 200) return how % 12;
    if (how < 225) return how % 12 - 6;
    if (how < 250) {
      constexpr std::array<int64_t, 12> kBorders = {INT64_MAX,
                                                    INT64_MIN,
                                                    INT64_MAX / 8,
                                                    int64_t{1} << 40,
                                                    int64_t{1} << 32,
                                                    INT32_MAX,
                                                    INT32_MIN,
                                                    65536,
                                                    65537,
                                                    (int64_t{1} << 40) + 1,
                                                    100,
                                                    -1};
      return kBorders[how % kBorders.size()];
    }
    return word();
  }
  double real() { return of({0.1, 0.0, 1.0, -1.0, 1e-9, 1e300, -0.0, 1.0 / 0.0, 0.0 / 0.0, 3.5}); }

 private:
  std::span<const uint8_t> bytes_;
};

}  // namespace shardrec::fuzz
