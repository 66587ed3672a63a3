// max_norm: the norms of stored rows, and the scaling of those that are too long.
#if defined(SHARDREC_SIMD_NORM_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SHARDREC_SIMD_NORM_INL
#undef SHARDREC_SIMD_NORM_INL
#else
#define SHARDREC_SIMD_NORM_INL
#endif

#include <array>

#include "compute/cpu/kernels/simd_rows-inl.h"
#include "compute/cpu/kernels/simd_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shardrec::compute::cpu::HWY_NAMESPACE {

template <class Type>
struct SquareSum {
  static constexpr size_t kSums = 1;
  const typename Type::Stored* row;

  template <bool kTail>
  HWY_INLINE void vector(size_t c, const Tail& tail, Vector* sums) const {
    const Vector w = Type::template load<kTail>(row + c, tail);
    add_square(w, sums[0]);
  }
};

struct Scaled {
  float* row;
  Vector factor;

  template <bool kTail>
  HWY_INLINE void vector(size_t c, const Tail& tail) const {
    store<kTail>(hn::Mul(load<kTail>(row + c, tail), factor), row + c, tail);
  }
};

template <class Type>
void norms_of_rows(const RowUpdate& job, const ColumnRange* ranges, int count, float* out,
                   int64_t first_row, int64_t last_row, std::byte* memory) noexcept {
  const TableRows<Type> table(job, RowScratch(memory, job.width), math::RoundingUse::kMaxNorm);
  const Prefetch way = update_prefetch<Type>(job, first_row, last_row);
  const int64_t ahead = way.distance_rows;
  for (int64_t u = first_row; u < last_row; ++u) {
    if (u + ahead < last_row) table.prefetch_row(way.hint == PrefetchHint::kT0, u + ahead);
    for (int r = 0; r < count; ++r) {
      sum_columns(SquareSum<Type>{table.row(u) + ranges[r].begin},
                  static_cast<size_t>(ranges[r].end - ranges[r].begin), out + u * count + r);
    }
  }
}

template <class Type>
void rescale_rows(const RowUpdate& job, const ColumnRange* ranges, int count, const float* norms,
                  int64_t first_row, int64_t last_row, std::byte* memory) noexcept {
  const TableRows<Type> table(job, RowScratch(memory, job.width), math::RoundingUse::kMaxNorm);
  for (int64_t u = first_row; u < last_row; ++u) {
    float* row = nullptr;
    for (int r = 0; r < count; ++r) {
      const float norm = norms[u * count + r];
      if (!math::is_too_long(job.step.max_norm, norm)) continue;
      if (row == nullptr) row = table.open(u);
      const float factor = math::norm_factor(job.step.max_norm, norm);
      for_columns(Scaled{row + ranges[r].begin, hn::Set(kFloats, factor)},
                  static_cast<size_t>(ranges[r].end - ranges[r].begin));
    }
    if (row != nullptr) table.close(u);
  }
}

void row_norms(const RowUpdate& job, const ColumnRange* ranges, int count, float* out,
               int64_t first_row, int64_t last_row, std::byte* scratch) noexcept {
  static constexpr std::array kNorms = {norms_of_rows<Float32Rows>,
                                        norms_of_rows<HalfRows<Float16>>,
                                        norms_of_rows<HalfRows<Bfloat16>>};
  kNorms[static_cast<size_t>(job.element)](job, ranges, count, out, first_row, last_row, scratch);
}

void row_rescale(const RowUpdate& job, const ColumnRange* ranges, int count, const float* norms,
                 int64_t first_row, int64_t last_row, std::byte* scratch) noexcept {
  static constexpr std::array kRescale = {
      rescale_rows<Float32Rows>, rescale_rows<HalfRows<Float16>>, rescale_rows<HalfRows<Bfloat16>>};
  kRescale[static_cast<size_t>(job.element)](job, ranges, count, norms, first_row, last_row,
                                             scratch);
}

}  // namespace shardrec::compute::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
