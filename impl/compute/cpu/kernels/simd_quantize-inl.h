// Rows of 8 bits and back (kernels.h).
#if defined(SHARDREC_SIMD_QUANTIZE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SHARDREC_SIMD_QUANTIZE_INL
#undef SHARDREC_SIMD_QUANTIZE_INL
#else
#define SHARDREC_SIMD_QUANTIZE_INL
#endif

#include "compute/cpu/kernels/simd_math-inl.h"
#include "compute/math/quantize.h"

HWY_BEFORE_NAMESPACE();
namespace shardrec::compute::cpu::HWY_NAMESPACE {

// The least and the most of a row, and the most of its bits without signs, which are those of an
// infinity or above where a number is not finite.
class RowRange {
 public:
  HWY_INLINE RowRange(const float* in, size_t columns) {
    Vector least = hn::Set(kFloats, in[0]);
    Vector most = least;
    auto bits = hn::Zero(kIntegers);
    const auto see = [&](Vector x) {
      least = hn::Min(least, x);
      most = hn::Max(most, x);
      bits = hn::Max(bits, hn::BitCast(kIntegers, hn::Abs(x)));
    };
    size_t c = 0;
    for (; c + kStep <= columns; c += kStep) see(hn::LoadU(kFloats, in + c));
    if (c < columns) {
      const Tail tail(columns - c);
      see(tail.or_else(tail.load(in + c), hn::Set(kFloats, in[0])));
    }
    least_ = hn::GetLane(hn::MinOfLanes(kFloats, least));
    most_ = hn::GetLane(hn::MaxOfLanes(kFloats, most));
    finite_ = hn::GetLane(hn::MaxOfLanes(kIntegers, bits)) < 0x7F800000;
  }

  HWY_INLINE math::RowCode code() const { return math::code_of_row(least_, most_, finite_); }

 private:
  float least_ = 0;
  float most_ = 0;
  bool finite_ = false;
};

HWY_INLINE void copy_bytes(hn::Vec<ByteColumns> bytes, uint8_t* to, size_t count) {
  HWY_ALIGN uint8_t columns[kStep];
  hn::StoreU(bytes, kByteColumns, columns);
  std::memcpy(to, columns, count);
}

RowScale quantize(const float* in, uint8_t* out, int64_t count) noexcept {
  const auto columns = static_cast<size_t>(count);
  if (columns == 0) return {};
  const math::RowCode code = RowRange(in, columns).code();
  if (code.inverse == 0) {
    std::memset(out, 0, columns);
    return code.scale;
  }
  const Vector offset = hn::Set(kFloats, code.scale.offset);
  const Vector inverse = hn::Set(kFloats, code.inverse);
  const auto coded = [&](Vector x) {
    return hn::DemoteTo(kByteColumns, hn::NearestInt(unrounded_code(x, offset, inverse)));
  };
  size_t c = 0;
  for (; c + kStep <= columns; c += kStep) {
    hn::StoreU(coded(hn::LoadU(kFloats, in + c)), kByteColumns, out + c);
  }
  if (c < columns) {
    const Tail tail(columns - c);
    copy_bytes(coded(tail.or_else(tail.load(in + c), offset)), out + c, columns - c);
  }
  return code.scale;
}

void dequantize(const uint8_t* in, const RowScale& scale, float* out, int64_t count) noexcept {
  const auto columns = static_cast<size_t>(count);
  const Vector factor = hn::Set(kFloats, scale.scale);
  const Vector offset = hn::Set(kFloats, scale.offset);
  const auto number = [&](hn::Vec<ByteColumns> bytes) {
    return decoded(hn::ConvertTo(kFloats, hn::PromoteTo(kIntegers, bytes)), factor, offset);
  };
  size_t c = 0;
  for (; c + kStep <= columns; c += kStep) {
    hn::StoreU(number(hn::LoadU(kByteColumns, in + c)), kFloats, out + c);
  }
  if (c < columns) {
    HWY_ALIGN uint8_t rest[kStep] = {};
    std::memcpy(rest, in + c, columns - c);
    Tail(columns - c).store(number(hn::LoadU(kByteColumns, rest)), out + c);
  }
}

}  // namespace shardrec::compute::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
