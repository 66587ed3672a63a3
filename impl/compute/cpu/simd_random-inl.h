// The random words of a row's columns: Philox4x32-10 (core/philox.h) of many counters at a time.
#if defined(SHARDREC_SIMD_RANDOM_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SHARDREC_SIMD_RANDOM_INL
#undef SHARDREC_SIMD_RANDOM_INL
#else
#define SHARDREC_SIMD_RANDOM_INL
#endif

#include "compute/cpu/simd_half-inl.h"
#include "core/philox.h"

HWY_BEFORE_NAMESPACE();
namespace shardrec::compute::cpu::HWY_NAMESPACE {

// x = a * b, 64 bits wide: upper and lower words.
HWY_INLINE void multiply(WordVector a, WordVector b, WordVector& upper, WordVector& lower) {
  using Longs = hn::RepartitionToWide<Words>;
  constexpr Longs kLongs;
  const auto even = hn::MulEven(a, b);
  const auto odd = hn::MulEven(hn::BitCast(kWords, hn::ShiftRight<32>(hn::BitCast(kLongs, a))), b);
  upper = hn::OddEven(hn::BitCast(kWords, odd), hn::BitCast(kWords, hn::ShiftRight<32>(even)));
  lower = hn::OddEven(hn::BitCast(kWords, hn::ShiftLeft<32>(odd)), hn::BitCast(kWords, even));
}

// Words of quads [first_quad, first_quad + quads) of the row that the counter names, column after
// column; written up to a whole number of vectors of quads.
inline HWY_NOINLINE void random_words(core::PhiloxCounter counter, core::PhiloxKey key,
                                      uint32_t first_quad, size_t quads, uint32_t* out) noexcept {
  const WordVector multiplier0 = hn::Set(kWords, core::kPhiloxMultiplier0);
  const WordVector multiplier1 = hn::Set(kWords, core::kPhiloxMultiplier1);
  for (size_t q = 0; q < quads; q += kStep) {
    WordVector word0 = hn::Set(kWords, counter[0]);
    WordVector word1 = hn::Set(kWords, counter[1]);
    WordVector word2 = hn::Iota(kWords, first_quad + static_cast<uint32_t>(q));
    WordVector word3 = hn::Set(kWords, counter[3]);
    core::PhiloxKey round_key = key;
    for (int round = 0; round < core::kPhiloxRounds; ++round) {
      WordVector upper0, lower0, upper1, lower1;
      multiply(word0, multiplier0, upper0, lower0);
      multiply(word2, multiplier1, upper1, lower1);
      word0 = hn::Xor(hn::Xor(upper1, word1), hn::Set(kWords, round_key[0]));
      word1 = lower1;
      word2 = hn::Xor(hn::Xor(upper0, word3), hn::Set(kWords, round_key[1]));
      word3 = lower0;
      round_key = core::next_philox_key(round_key);
    }
    hn::StoreInterleaved4(word0, word1, word2, word3, kWords, out + 4 * q);
  }
}

}  // namespace shardrec::compute::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
