// The summed gradient of a unique row, into a row of scratch: block sums stay in registers, one
// tile of columns at a time, while gradient rows are prefetched across the borders of unique rows.
#if defined(SHARDREC_SIMD_GRADIENT_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SHARDREC_SIMD_GRADIENT_INL
#undef SHARDREC_SIMD_GRADIENT_INL
#else
#define SHARDREC_SIMD_GRADIENT_INL
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "compute/cpu/kernels/simd_math-inl.h"
#include "compute/profile/prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace shardrec::compute::cpu::HWY_NAMESPACE {

// How gradient rows are prefetched. From another cache: to the second level, whatever is best for
// rows of the table; the first one holds those.
HWY_INLINE Prefetch gradient_prefetch(const RowUpdate& job) {
  const int64_t bytes = job.width * int64_t{sizeof(float)};
  return job.far_gradients ? prefetch_for(MemoryAccess::kGather, bytes, 1) : usual_prefetch(bytes);
}

class GradientSum {
 public:
  // For unique rows [first_row, last_row) of the job, taken in ascending order.
  GradientSum(const RowUpdate& job, int64_t first_row, int64_t last_row, float* sum)
      : job_(job),
        sum_(sum),
        width_(static_cast<size_t>(job.width)),
        whole_((width_ - 1) / kTileColumns * kTileColumns),
        end_(job.run[last_row]),
        prefetch_(gradient_prefetch(job)),
        distance_(prefetch_.distance_rows),
        near_(prefetch_.hint == PrefetchHint::kT0),
        tail_(width_ % kStep) {
    const size_t vectors = (width_ - whole_ + kStep - 1) / kStep;
    last_tile_ = kTiles[2 * (vectors - 1) + (width_ % kStep == 0 ? 0 : 1)];
    const int64_t begin = job.run[first_row];
    for (int64_t o = begin; o < end_ && o < begin + distance_; ++o) {
      prefetch(near_, gradient(o), width_);
    }
  }

  // Sums the gradient of unique row u.
  HWY_INLINE void row(int64_t u) const {
    for (size_t c = 0; c < whole_; c += kTileColumns) one<kTileVectors, false>(u, c);
    (this->*last_tile_)(u, whole_);
  }

 private:
  using Tile = void (GradientSum::*)(int64_t u, size_t column) const noexcept;

  HWY_INLINE const float* gradient(int64_t o) const { return job_.gradients[job_.bags[o]]; }
  HWY_INLINE uint32_t block_of(int64_t o) const { return job_.blocks[job_.bags[o]]; }

  // The first occurrence behind the block of o.
  HWY_INLINE int64_t block_end(int64_t o, int64_t end) const {
    if (o + 1 == end) return end;
    const uint32_t number = block_of(o);
    do {
      ++o;
    } while (o < end && block_of(o) == number);
    return o;
  }

  // The sum of occurrences [o, end), all of one block.
  template <size_t kVectors, bool kTail>
  HWY_INLINE void block(int64_t o, int64_t end, size_t column, int64_t prefetch_end,
                        Vector (&sum)[kVectors]) const {
    constexpr size_t kWhole = kVectors - (kTail ? 1 : 0);
    const Vector scale = hn::Set(kFloats, job_.gradient_scale);
    SHARDREC_UNROLL
    for (size_t v = 0; v < kVectors; ++v) sum[v] = hn::Set(kFloats, job_.block_start);
    for (; o < end; ++o) {
      if (o < prefetch_end) prefetch(near_, gradient(o + distance_), width_);
      const float* from = gradient(o) + column;
      const Vector weight = hn::Set(kFloats, job_.weights == nullptr ? 1.0F : job_.weights[o]);
      SHARDREC_UNROLL
      for (size_t v = 0; v < kWhole; ++v) {
        sum[v] = add_gradient(weight, scale, hn::LoadU(kFloats, from + v * kStep), sum[v]);
      }
      if constexpr (kTail) {
        sum[kWhole] = add_gradient(weight, scale, tail_.load(from + kWhole * kStep), sum[kWhole]);
      }
    }
  }

  // The first tile prefetches, for all of them.
  HWY_INLINE int64_t prefetch_end(size_t column) const {
    return column == 0 ? end_ - distance_ : 0;
  }

  template <size_t kVectors, bool kTail>
  void one(int64_t u, size_t column) const noexcept {
    float* sum = sum_ + column;
    const int64_t end = job_.run[u + 1];
    Vector of_block[kVectors];
    int64_t o = job_.run[u];
    for (bool first = true; o < end; first = false) {
      const int64_t behind = block_end(o, end);
      block<kVectors, kTail>(o, behind, column, prefetch_end(column), of_block);
      o = behind;
      SHARDREC_UNROLL
      for (size_t v = 0; v < kVectors; ++v) {
        if (!first) of_block[v] = hn::Add(hn::LoadU(kFloats, sum + v * kStep), of_block[v]);
        hn::StoreU(of_block[v], kFloats, sum + v * kStep);
      }
    }
  }

  // By number of vectors less one, times two, plus one with a tail.
  template <size_t... kChoice>
  static constexpr std::array<Tile, sizeof...(kChoice)> tile_table(
      std::index_sequence<kChoice...>) {
    return {&GradientSum::one < kChoice / 2 + 1, kChoice % 2 != 0 > ...};
  }
  static const std::array<Tile, 2 * kTileVectors> kTiles;

  const RowUpdate& job_;
  float* sum_;  // whole vectors are written: the last one reaches beyond the width
  size_t width_;
  size_t whole_;  // columns before the last tile
  int64_t end_;   // of the occurrences of this call
  Prefetch prefetch_;
  int64_t distance_;
  bool near_;
  Tile last_tile_ = nullptr;
  Tail tail_;
};

inline constexpr std::array<GradientSum::Tile, 2 * kTileVectors> GradientSum::kTiles =
    tile_table(std::make_index_sequence<2 * kTileVectors>());

// The summed gradient of rows of kVectors whole vectors, in registers: the bits of GradientSum.
// What the job says is copied: it is not read again after each store of the caller.
template <size_t kVectors>
class RegisterSum {
 public:
  // For unique rows [first_row, last_row) of the job, taken in ascending order.
  HWY_INLINE RegisterSum(const RowUpdate& job, int64_t first_row, int64_t last_row)
      : run_(job.run),
        bags_(job.bags),
        blocks_(job.blocks),
        gradients_(job.gradients),
        weights_(job.weights),
        scale_(job.gradient_scale),
        start_(job.block_start),
        last_(job.run[last_row] - 1),
        prefetch_(gradient_prefetch(job)),
        distance_(prefetch_.distance_rows),
        near_(prefetch_.hint == PrefetchHint::kT0) {
    const int64_t begin = run_[first_row];
    for (int64_t o = begin; o < std::min(last_ + 1, begin + distance_); ++o) {
      prefetch(near_, gradients_[bags_[o]], kWidth);
    }
  }

  HWY_INLINE void row(int64_t u, Vector (&sum)[kVectors]) const {
    int64_t o = run_[u];
    const int64_t end = run_[u + 1];
    clear(sum);
    add(o, sum);
    if (HWY_LIKELY(++o == end)) return;
    // Sums of blocks are added one after the other.
    Vector before[kVectors];
    clear(before);  // not read before the first join
    bool first = true;
    uint32_t block = blocks_[bags_[o - 1]];
    for (; o < end; ++o) {
      const uint32_t next = blocks_[bags_[o]];
      if (next != block) {
        block = next;
        join(first, before, sum);
        first = false;
        clear(sum);
      }
      add(o, sum);
    }
    if (first) return;
    join(first, before, sum);
    SHARDREC_UNROLL
    for (size_t v = 0; v < kVectors; ++v) sum[v] = before[v];
  }

 private:
  static constexpr size_t kWidth = kVectors * kStep;

  HWY_INLINE void clear(Vector (&sum)[kVectors]) const {
    SHARDREC_UNROLL
    for (size_t v = 0; v < kVectors; ++v) sum[v] = hn::Set(kFloats, start_);
  }

  // before += sum; the first one is taken as it is, with the sign of its zeros.
  static HWY_INLINE void join(bool first, Vector (&before)[kVectors],
                              const Vector (&sum)[kVectors]) {
    SHARDREC_UNROLL
    for (size_t v = 0; v < kVectors; ++v) {
      before[v] = first ? sum[v] : hn::Add(before[v], sum[v]);
    }
  }

  HWY_INLINE void add(int64_t o, Vector (&sum)[kVectors]) const {
    const float* const ahead = gradients_[bags_[std::min(o + distance_, last_)]];
    prefetch_bytes<kWidth * sizeof(float)>(near_, ahead);
    if (HWY_UNLIKELY(std::bit_cast<uintptr_t>(ahead) % 64 != 0)) {
      __builtin_prefetch(ahead + kWidth - 1, 0, 2);
    }
    const Vector scale = hn::Set(kFloats, scale_);
    const Vector weight = hn::Set(kFloats, weights_ == nullptr ? 1.0F : weights_[o]);
    const float* from = gradients_[bags_[o]];
    SHARDREC_UNROLL
    for (size_t v = 0; v < kVectors; ++v) {
      sum[v] = add_gradient(weight, scale, hn::LoadU(kFloats, from + v * kStep), sum[v]);
    }
  }

  const int64_t* run_;
  const uint32_t* bags_;
  const uint32_t* blocks_;
  const float* const* gradients_;
  const float* weights_;  // null: all 1
  float scale_;
  float start_;   // of the sum of each block
  int64_t last_;  // occurrence of this call
  Prefetch prefetch_;
  int64_t distance_;
  bool near_;
};

}  // namespace shardrec::compute::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
