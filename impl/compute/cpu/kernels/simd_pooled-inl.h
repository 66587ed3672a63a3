// Pooled lookup: a bag's sum stays in registers, one tile of columns at a time, while rows are
// prefetched across the borders of bags.
#if defined(SHARDREC_SIMD_POOLED_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SHARDREC_SIMD_POOLED_INL
#undef SHARDREC_SIMD_POOLED_INL
#else
#define SHARDREC_SIMD_POOLED_INL
#endif

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "compute/cpu/kernels/simd_half-inl.h"
#include "compute/profile/prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace shardrec::compute::cpu::HWY_NAMESPACE {

// Rows of 8-bit codes, each with its scale and offset behind the codes.
struct CodedRows {
  static constexpr bool kCoded = true;
  using Stored = uint8_t;

  template <bool kTail>
  static HWY_INLINE Vector load(const uint8_t* from, [[maybe_unused]] const Tail& tail) {
    if constexpr (kTail) {
      return widened(tail.load(from));
    } else {
      return widened(hn::LoadU(kByteColumns, from));
    }
  }
  static HWY_INLINE Vector widened(hn::Vec<ByteColumns> codes) {
    return hn::ConvertTo(kFloats, hn::PromoteTo(kIntegers, codes));
  }
};

template <class Id, class Type>
class Pool {
 public:
  static void run(const PooledLookup& job, int64_t first_bag, int64_t last_bag) noexcept {
    if (job.width <= 0 || first_bag >= last_bag) return;
    Pool(job, first_bag, last_bag).bags(first_bag, last_bag);
    if (job.streaming) hwy::FlushStream();
  }

 private:
  using Stored = typename Type::Stored;
  using Bags = void (Pool::*)(int64_t first_bag, int64_t last_bag) const noexcept;
  using Tile = void (Pool::*)(int64_t bag, size_t column) const noexcept;

  HWY_INLINE Pool(const PooledLookup& job, int64_t first_bag, int64_t last_bag)
      : job_(job),
        table_(static_cast<const Stored*>(job.table)),
        ids_(static_cast<const Id*>(job.ids.data)),
        weights_(job.weights),
        width_(static_cast<size_t>(job.width)),
        row_elements_(width_ + (Type::kCoded ? sizeof(RowScale) : 0)),
        end_(job.offsets[last_bag]),
        prefetch_(job.prefetch != nullptr
                      ? *job.prefetch
                      : prefetch_for(MemoryAccess::kGather,
                                     static_cast<int64_t>(row_elements_ * sizeof(Stored)),
                                     (job.offsets[last_bag] - job.offsets[first_bag]) /
                                             (last_bag - first_bag) +
                                         1)),
        distance_(prefetch_.distance_rows),
        near_(prefetch_.hint == PrefetchHint::kT0),
        lines_(!Type::kCoded && width_ <= kTileColumns && job.stride * sizeof(Stored) % 64 == 0 &&
               std::bit_cast<uintptr_t>(job.table) % 64 == 0),
        tail_(width_ % kStep) {}

  void bags(int64_t first_bag, int64_t last_bag) const noexcept {
    const int64_t begin = job_.offsets[first_bag];
    for (int64_t i = begin; i < end_ && i < begin + distance_; ++i) {
      prefetch(near_, row(i), row_elements_);
    }
    // Vectors of the last tile; the tiles before it are whole.
    const size_t whole = (width_ - 1) / kTileColumns * kTileColumns;
    const size_t vectors = (width_ - whole + kStep - 1) / kStep;
    const size_t choice = 2 * (vectors - 1) + (width_ % kStep == 0 ? 0 : 1);
    if (whole == 0) {
      (this->*kNarrow[choice])(first_bag, last_bag);
      return;
    }
    for (int64_t bag = first_bag; bag < last_bag; ++bag) {
      for (size_t c = 0; c < whole; c += kTileColumns) tile<kTileVectors, false>(bag, c);
      (this->*kTiles[choice])(bag, whole);
    }
  }

  // A row that is one tile of whole lines has so many of them; others are as wide as they are.
  template <size_t kVectors, bool kTail>
  HWY_INLINE void prefetch_row(const Stored* row) const {
    constexpr size_t kBytes = kVectors * kStep * sizeof(Stored);
    if (!kTail && kBytes % 64 == 0 && lines_) {
      prefetch_bytes<kBytes>(near_, row);
    } else {
      prefetch(near_, row, row_elements_);
    }
  }

  HWY_INLINE const Stored* row(int64_t i) const {
    return table_ + static_cast<size_t>(ids_[i]) * job_.stride;
  }

  // Columns from `column` on of one bag. kTail: the last vector is partial.
  template <size_t kVectors, bool kTail>
  HWY_INLINE void tile(int64_t bag, size_t column) const noexcept {
    constexpr size_t kWhole = kVectors - (kTail ? 1 : 0);
    Vector sum[kVectors];
    SHARDREC_UNROLL
    for (size_t v = 0; v < kVectors; ++v) sum[v] = hn::Zero(kFloats);
    [[maybe_unused]] float offsets = 0;  // of coded rows
    const int64_t end = job_.offsets[bag + 1];
    const int64_t prefetch_end =
        column == 0 ? end_ - distance_ : 0;  // the first tile, for all of them
    for (int64_t i = job_.offsets[bag]; i < end; ++i) {
      if (i < prefetch_end) prefetch_row<kVectors, kTail>(row(i + distance_));
      const Stored* from = row(i) + column;
      float factor = weights_ == nullptr ? 1.0F : weights_[i];
      if constexpr (Type::kCoded) {
        RowScale scale;
        std::memcpy(&scale, row(i) + width_, sizeof scale);
        offsets = std::fma(factor, scale.offset, offsets);
        factor *= scale.scale;
      }
      const Vector weight = hn::Set(kFloats, factor);
      SHARDREC_UNROLL
      for (size_t v = 0; v < kWhole; ++v) {
        sum[v] = add_element(weight, Type::template load<false>(from + v * kStep, tail_), sum[v]);
      }
      if constexpr (kTail) {
        sum[kWhole] = add_element(weight, Type::template load<true>(from + kWhole * kStep, tail_),
                                  sum[kWhole]);
      }
    }
    if constexpr (Type::kCoded) {
      const Vector offset = hn::Set(kFloats, offsets);
      SHARDREC_UNROLL
      for (size_t v = 0; v < kVectors; ++v) sum[v] = hn::Add(sum[v], offset);
    }
    if (job_.mean && end != job_.offsets[bag]) {
      const Vector ids = hn::Set(kFloats, static_cast<float>(end - job_.offsets[bag]));
      SHARDREC_UNROLL
      for (size_t v = 0; v < kVectors; ++v) sum[v] = hn::Div(sum[v], ids);
    }
    const size_t at = static_cast<size_t>(bag) * job_.out_stride + column;
    switch (job_.out_element) {
      case Element::kFloat32:
        if constexpr (!kTail) {
          if (job_.streaming) {
            put<StreamedOutput, kVectors, kTail>(sum, at);
            break;
          }
        }
        put<FloatOutput, kVectors, kTail>(sum, at);
        break;
      case Element::kFloat16:
        put_half<Float16, kVectors, kTail>(sum, at);
        break;
      case Element::kBfloat16:
        put_half<Bfloat16, kVectors, kTail>(sum, at);
        break;
    }
  }

  template <class Half, size_t kVectors, bool kTail>
  HWY_INLINE void put_half(const Vector (&sum)[kVectors], size_t at) const {
    if constexpr (!kTail) {
      if (job_.streaming) return put<StreamedHalves<Half>, kVectors, kTail>(sum, at);
    }
    put<HalfOutput<Half>, kVectors, kTail>(sum, at);
  }

  struct FloatOutput {
    using Stored = float;
    template <bool kPartial>
    static HWY_INLINE void put(Vector x, float* to, const Tail& tail) {
      store<kPartial>(x, to, tail);
    }
  };
  struct StreamedOutput {
    using Stored = float;
    template <bool kPartial>
    static HWY_INLINE void put(Vector x, float* to, const Tail&) {
      hn::Stream(x, kFloats, to);
    }
  };
  template <class Half>
  struct HalfOutput {
    using Stored = uint16_t;
    template <bool kPartial>
    static HWY_INLINE void put(Vector x, uint16_t* to, const Tail& tail) {
      store_half<kPartial>(round_nearest<Half>(x), to, tail);
    }
  };

  template <class Half>
  struct StreamedHalves {
    using Stored = uint16_t;
    template <bool kPartial>
    static HWY_INLINE void put(Vector x, uint16_t* to, const Tail&) {
      hn::Stream(round_nearest<Half>(x), kHalves, to);
    }
  };

  template <class Output, size_t kVectors, bool kTail>
  HWY_INLINE void put(const Vector (&sum)[kVectors], size_t at) const {
    constexpr size_t kWhole = kVectors - (kTail ? 1 : 0);
    auto* out = static_cast<typename Output::Stored*>(job_.out) + at;
    SHARDREC_UNROLL
    for (size_t v = 0; v < kWhole; ++v) {
      Output::template put<false>(sum[v], out + v * kStep, tail_);
    }
    if constexpr (kTail) Output::template put<true>(sum[kWhole], out + kWhole * kStep, tail_);
  }

  // All bags, where a row is one tile.
  template <size_t kVectors, bool kTail>
  void narrow(int64_t first_bag, int64_t last_bag) const noexcept {
    for (int64_t bag = first_bag; bag < last_bag; ++bag) tile<kVectors, kTail>(bag, 0);
  }

  template <size_t kVectors, bool kTail>
  void one(int64_t bag, size_t column) const noexcept {
    tile<kVectors, kTail>(bag, column);
  }

  // By number of vectors less one, times two, plus one with a tail.
  template <size_t... kChoice>
  static constexpr std::array<Bags, sizeof...(kChoice)> narrow_table(
      std::index_sequence<kChoice...>) {
    return {&Pool::narrow < kChoice / 2 + 1, kChoice % 2 != 0 > ...};
  }
  template <size_t... kChoice>
  static constexpr std::array<Tile, sizeof...(kChoice)> tile_table(
      std::index_sequence<kChoice...>) {
    return {&Pool::one < kChoice / 2 + 1, kChoice % 2 != 0 > ...};
  }
  static constexpr auto kNarrow = narrow_table(std::make_index_sequence<2 * kTileVectors>());
  static constexpr auto kTiles = tile_table(std::make_index_sequence<2 * kTileVectors>());

  const PooledLookup& job_;
  const Stored* table_;
  const Id* ids_;
  const float* weights_;  // null: all 1, and the product is the element
  size_t width_;
  size_t row_elements_;  // with what stands behind the columns
  int64_t end_;          // of the ids of this call
  Prefetch prefetch_;
  int64_t distance_;
  bool near_;
  bool lines_;  // a row is one tile and begins a line
  Tail tail_;
};

// [element][64-bit ids]
using PoolBags = void (*)(const PooledLookup&, int64_t, int64_t) noexcept;
template <class Type>
inline constexpr std::array<PoolBags, 2> kPool = {Pool<int32_t, Type>::run,
                                                  Pool<int64_t, Type>::run};
inline constexpr std::array kPoolTable = {kPool<Float32Rows>, kPool<HalfRows<Float16>>,
                                          kPool<HalfRows<Bfloat16>>, kPool<CodedRows>};

void pooled_lookup(const PooledLookup& job, int64_t first_bag, int64_t last_bag) noexcept {
  const size_t type = job.coded ? kPoolTable.size() - 1 : static_cast<size_t>(job.element);
  kPoolTable[type][job.ids.is_64 ? 1 : 0](job, first_bag, last_bag);
}

}  // namespace shardrec::compute::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
