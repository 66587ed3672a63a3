// Dropout of kernels.h, for the instruction set of HWY_TARGET: as many Philox counters at a time as a
// vector has lanes. Included once per set.
#if defined(SHARDREC_DENSE_DROPOUT_KERNELS) == defined(HWY_TARGET_TOGGLE)
#ifdef SHARDREC_DENSE_DROPOUT_KERNELS
#undef SHARDREC_DENSE_DROPOUT_KERNELS
#else
#define SHARDREC_DENSE_DROPOUT_KERNELS
#endif

#include <hwy/highway.h>

#include <algorithm>

#include "compute/math/philox.h"
#include "dense/kernels.h"
#include "dense/layer_kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shardrec::dense::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Words = hn::ScalableTag<uint32_t>;
using Word = hn::Vec<Words>;
inline constexpr Words kWords;

// What the text of philox-inl.h names.
namespace math = compute::math;
using math::kPhiloxMultiplier0;
using math::kPhiloxMultiplier1;
using math::kPhiloxRounds;
using math::PhiloxKey;
namespace op {

HWY_INLINE Word word(uint32_t x) { return hn::Set(kWords, x); }
HWY_INLINE Word bit_xor(Word x, Word y) { return hn::Xor(x, y); }
HWY_INLINE void mul_wide(Word x, Word y, Word& upper, Word& lower) {
#if HWY_TARGET == HWY_SCALAR
  const uint64_t product = uint64_t{hn::GetLane(x)} * hn::GetLane(y);
  upper = word(static_cast<uint32_t>(product >> 32));
  lower = word(static_cast<uint32_t>(product));
#else
  const hn::RepartitionToWide<Words> wide;
  const auto even = hn::MulEven(x, y);
  const auto odd = hn::MulEven(hn::BitCast(kWords, hn::ShiftRight<32>(hn::BitCast(wide, x))), y);
  upper = hn::OddEven(hn::BitCast(kWords, odd), hn::BitCast(kWords, hn::ShiftRight<32>(even)));
  lower = hn::OddEven(hn::BitCast(kWords, hn::ShiftLeft<32>(odd)), hn::BitCast(kWords, even));
#endif
}

}  // namespace op

#define SHARDREC_MATH HWY_INLINE
#include "compute/math/philox-inl.h"
#undef SHARDREC_MATH

// The words of positions [begin, end) of a batch, read once from front to back.
class DropoutWords {
 public:
  HWY_INLINE explicit DropoutWords(const DropoutMask& mask) : mask_(mask) {}

  // Makes the words of a position outside of [begin, end) the first ones that are there.
  HWY_INLINE void move_to(int64_t position) {
    const auto quad = static_cast<uint64_t>(position) / 4;
    const auto low = static_cast<uint32_t>(quad), high = static_cast<uint32_t>(quad >> 32);
    Word word0 = hn::Add(hn::Set(kWords, low), hn::Iota(kWords, 0));
    const auto carried = hn::Lt(word0, hn::Set(kWords, low));
    Word word1 = hn::IfThenElse(carried, hn::Set(kWords, high + 1), hn::Set(kWords, high));
    Word word2 = hn::Set(kWords, mask_.layer);
    Word word3 = hn::Set(kWords, mask_.forward);
    philox_rounds(word0, word1, word2, word3, math::philox_key(mask_.seed));
    hn::StoreInterleaved4(word0, word1, word2, word3, kWords, words_);
    begin_ = position / 4 * 4;
    end_ = begin_ + 4 * static_cast<int64_t>(hn::Lanes(kWords));
  }
  int64_t end() const { return end_; }
  const uint32_t* at(int64_t position) const { return words_ + (position - begin_); }

 private:
  const DropoutMask& mask_;
  alignas(64) uint32_t words_[4 * hn::MaxLanes(kWords)];
  int64_t begin_ = 0;
  int64_t end_ = 0;
};

HWY_ATTR inline void dropout(const DropoutMask& mask, int64_t first_row, const core::Matrix& x,
                             const core::Matrix& y) noexcept {
  DropoutWords random(mask);
  for (int64_t r = 0; r < x.rows; ++r) {
    const int64_t row = (first_row + r) * x.cols;
    const float* from = x.row(r);
    float* to = y.row(r);
    for (int64_t c = 0; c < x.cols;) {
      if (row + c >= random.end()) random.move_to(row + c);
      const int64_t count = std::min(x.cols - c, random.end() - (row + c));
      const uint32_t* words = random.at(row + c);
      for_lanes(0, count, [&](auto d, int64_t i) HWY_ATTR {
        const hn::RebindToUnsigned<decltype(d)> bits;
        const auto drops = hn::Lt(hn::LoadU(bits, words + i), hn::Set(bits, mask.threshold));
        const auto kept = hn::Mul(hn::LoadU(d, from + c + i), hn::Set(d, mask.factor));
        hn::StoreU(hn::IfThenZeroElse(hn::RebindMask(d, drops), kept), d, to + c + i);
      });
      c += count;
    }
  }
}

}  // namespace shardrec::dense::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
