// The random words of a row's columns: Philox4x32-10 (compute/math/philox.h) of many counters at a time.
#if defined(SHARDREC_SIMD_RANDOM_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SHARDREC_SIMD_RANDOM_INL
#undef SHARDREC_SIMD_RANDOM_INL
#else
#define SHARDREC_SIMD_RANDOM_INL
#endif

#include "compute/cpu/kernels/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shardrec::compute::cpu::HWY_NAMESPACE {

// Words of quads [first_quad, first_quad + quads) of the row that the counter names, column after
// column; written up to a whole number of vectors of quads.
inline HWY_NOINLINE void random_words(math::PhiloxCounter counter, PhiloxKey key,
                                      uint32_t first_quad, size_t quads, uint32_t* out) noexcept {
  for (size_t q = 0; q < quads; q += kStep) {
    WordVector word0 = hn::Set(kWords, counter[0]);
    WordVector word1 = hn::Set(kWords, counter[1]);
    WordVector word2 = hn::Iota(kWords, first_quad + static_cast<uint32_t>(q));
    WordVector word3 = hn::Set(kWords, counter[3]);
    philox_rounds(word0, word1, word2, word3, key);
    hn::StoreInterleaved4(word0, word1, word2, word3, kWords, out + 4 * q);
  }
}

}  // namespace shardrec::compute::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
