// Rows of a table as rows of floats: in place where they are floats, else in scratch, rounded when
// they are stored.
#if defined(SHARDREC_SIMD_ROWS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SHARDREC_SIMD_ROWS_INL
#undef SHARDREC_SIMD_ROWS_INL
#else
#define SHARDREC_SIMD_ROWS_INL
#endif

#include "compute/cpu/kernels/simd_half-inl.h"
#include "compute/cpu/kernels/simd_random-inl.h"
#include "compute/math/rounding.h"
#include "compute/profile/prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace shardrec::compute::cpu::HWY_NAMESPACE {

// How rows [first_row, last_row) of an update are prefetched.
template <class Type>
HWY_INLINE Prefetch update_prefetch(const RowUpdate& job, int64_t first_row, int64_t last_row) {
  constexpr int64_t kElement = sizeof(typename Type::Stored);
  if (job.prefetch != nullptr) return *job.prefetch;
  const int64_t bytes = job.width * kElement;
  if (first_row >= last_row) return prefetch_for_update(bytes, 0);
  const int64_t span = (job.rows[last_row - 1] - job.rows[first_row] + 1) *
                       static_cast<int64_t>(job.stride) * kElement;
  return prefetch_for_update(bytes, span / (last_row - first_row));
}

// The scratch of a call on rows: row_update_scratch_bytes().
struct RowScratch {
  HWY_INLINE RowScratch(std::byte* bytes, int64_t width)
      : gradient(static_cast<float*>(static_cast<void*>(bytes))),
        row(gradient + whole_lanes(width)),
        words(static_cast<uint32_t*>(static_cast<void*>(row + whole_lanes(width)))) {}

  float* gradient;
  float* row;
  uint32_t* words;

 private:
  static int64_t whole_lanes(int64_t width) { return (width + kLanes - 1) / kLanes * kLanes; }
};

// A table of one element type: `row(u)` is where unique row u is stored; what open() returns may be
// changed, and close() stores it.
template <class Type>
class TableRows {
 public:
  using Stored = typename Type::Stored;

  HWY_INLINE TableRows(const RowUpdate& job, const RowScratch& scratch, math::RoundingUse use)
      : job_(job),
        table_(static_cast<Stored*>(job.table)),
        width_(static_cast<size_t>(job.width)),
        scratch_(scratch),
        key_(kIsHalf && job.rounding.stochastic ? math::rounding_key(job.rounding, use)
                                                : PhiloxKey{}) {}

  HWY_INLINE Stored* row(int64_t u) const {
    return table_ + static_cast<size_t>(job_.rows[u]) * job_.stride;
  }

  HWY_INLINE void prefetch_row(bool near, int64_t u) const { prefetch(near, row(u), width_); }

  HWY_INLINE float* open(int64_t u) const {
    if constexpr (kIsHalf) {
      for_columns(WidenColumns<Type>{row(u), scratch_.row}, width_);
      return scratch_.row;
    } else {
      return row(u);
    }
  }

  HWY_INLINE void close([[maybe_unused]] int64_t u) const {
    if constexpr (kIsHalf) {
      if (job_.rounding.stochastic) {
        close_stochastic(u);
      } else {
        for_columns(NarrowColumns<typename Type::Half>{scratch_.row, row(u)}, width_);
      }
    }
  }

 private:
  static constexpr bool kIsHalf = sizeof(Stored) == sizeof(uint16_t);

  struct Stochastic {
    const float* from;
    const uint32_t* words;
    Stored* to;

    template <bool kTail>
    HWY_INLINE void vector(size_t c, const Tail& tail) const {
      const WordVector random = hn::LoadU(kWords, words + c);
      store_half<kTail>(round_stochastic<typename Type::Half>(load<kTail>(from + c, tail), random),
                        to + c, tail);
    }
  };

  HWY_NOINLINE void close_stochastic(int64_t u) const noexcept {
    const math::PhiloxCounter counter =
        math::rounding_counter(job_.rounding, static_cast<uint64_t>(job_.first_row + job_.rows[u]));
    Stored* stored = row(u);
    if (job_.column_maps == 0) close_columns(counter, {.count = job_.width}, stored);
    for (int m = 0; m < job_.column_maps; ++m) {
      close_columns(counter, job_.column_map[m], stored);
    }
  }

  HWY_INLINE void close_columns(const math::PhiloxCounter& counter, const ColumnMap& map,
                                Stored* stored) const {
    const auto skipped = static_cast<size_t>(map.column % 4);
    const auto count = static_cast<size_t>(map.count);
    random_words(counter, key_, static_cast<uint32_t>(map.column / 4), (skipped + count + 3) / 4,
                 scratch_.words);
    for_columns(
        Stochastic{scratch_.row + map.offset, scratch_.words + skipped, stored + map.offset},
        count);
  }

  const RowUpdate& job_;
  Stored* table_;
  size_t width_;
  RowScratch scratch_;
  PhiloxKey key_;
};

}  // namespace shardrec::compute::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
