#include "compute/cpu/kernels/scalar_rows.h"

#include <algorithm>
#include <array>

#include "compute/cpu/kernels/scalar_steps.h"
#include "compute/math/rounding.h"
#include "compute/math/scalar.h"

namespace shardrec::compute::cpu::scalar {
namespace {

// The gradient of a row, its sum inside a block, and the row as floats.
struct Scratch {
  Scratch(std::byte* bytes, int64_t width)
      : gradient(static_cast<float*>(static_cast<void*>(bytes))),
        block(gradient + width),
        row(block + width) {}

  float* gradient;
  float* block;
  float* row;
};

void sum_gradient(const RowUpdate& job, int64_t u, float* sum, float* block) noexcept {
  const int64_t end = job.run[u + 1];
  bool first = true;
  for (int64_t o = job.run[u]; o < end;) {
    const uint32_t number = job.blocks[job.bags[o]];
    std::fill_n(block, job.width, job.block_start);
    for (; o < end && job.blocks[job.bags[o]] == number; ++o) {
      const float* gradient = job.gradients[job.bags[o]];
      const float weight = job.weights == nullptr ? 1.0F : job.weights[o];
      for (int64_t c = 0; c < job.width; ++c)
        block[c] = math::add_gradient(weight, job.gradient_scale, gradient[c], block[c]);
    }
    for (int64_t c = 0; c < job.width; ++c) sum[c] = first ? block[c] : sum[c] + block[c];
    first = false;
  }
}

std::byte* stored_row(const RowUpdate& job, int64_t u) noexcept {
  return static_cast<std::byte*>(job.table) +
         static_cast<size_t>(job.rows[u]) * job.stride * element_bytes(job.element);
}

void load_row(const RowUpdate& job, int64_t u, float* row) noexcept {
  const std::byte* stored = stored_row(job, u);
  for (int64_t c = 0; c < job.width; ++c) {
    row[c] = element_at(stored, job.element, static_cast<size_t>(c));
  }
}

// Calls visit(map) for the pieces of the part's columns.
template <class Visit>
void for_each_map(const RowUpdate& job, const Visit& visit) noexcept {
  if (job.column_maps == 0) visit(ColumnMap{.count = job.width});
  for (int m = 0; m < job.column_maps; ++m) visit(job.column_map[m]);
}

template <class Half>
void store_half_row(const RowUpdate& job, int64_t u, math::RoundingUse use,
                    const float* row) noexcept {
  auto* stored = static_cast<uint16_t*>(static_cast<void*>(stored_row(job, u)));
  if (!job.rounding.stochastic) {
    std::transform(row, row + job.width, stored, narrowed<Half>);
    return;
  }
  const math::PhiloxKey key = math::rounding_key(job.rounding, use);
  for_each_map(job, [&](const ColumnMap& map) {
    math::PhiloxCounter counter =
        math::rounding_counter(job.rounding, static_cast<uint64_t>(job.first_row + job.rows[u]));
    for (int64_t i = 0; i < map.count; ++i) {
      const auto column = static_cast<uint64_t>(map.column + i);
      counter[2] = static_cast<uint32_t>(column / 4);
      const int64_t c = map.offset + i;
      const uint32_t random = math::philox(counter, key)[column % 4];
      stored[c] = static_cast<uint16_t>(math::stochastic_half<Half>(row[c], random));
    }
  });
}

void store_row(const RowUpdate& job, int64_t u, math::RoundingUse use, const float* row) noexcept {
  switch (job.element) {
    case Element::kFloat32:
      std::copy_n(row, job.width, static_cast<float*>(static_cast<void*>(stored_row(job, u))));
      break;
    case Element::kFloat16:
      store_half_row<math::Float16>(job, u, use, row);
      break;
    case Element::kBfloat16:
      store_half_row<math::Bfloat16>(job, u, use, row);
      break;
  }
}

// Columns [range.begin, range.end) of unique row u.
RangeOfRow range_of(const RowUpdate& job, int64_t u, ColumnRange range,
                    const Scratch& work) noexcept {
  const int64_t at = job.rows[u] * job.width + range.begin;
  const int matrices = state_needs(job.step.kind).matrices;
  return {.step = job.step,
          .columns = range.end - range.begin,
          .w = work.row + range.begin,
          .g = work.gradient + range.begin,
          .m = matrices > 0 ? job.matrices[0] + at : nullptr,
          .v = matrices > 1 ? job.matrices[1] + at : nullptr};
}

}  // namespace

float element_at(const void* row, Element element, size_t i) noexcept {
  switch (element) {
    case Element::kFloat16:
      return math::widened<math::Float16>(static_cast<const uint16_t*>(row)[i]);
    case Element::kBfloat16:
      return math::widened<math::Bfloat16>(static_cast<const uint16_t*>(row)[i]);
    default:
      return static_cast<const float*>(row)[i];
  }
}

void row_update(const RowUpdate& job, int64_t first_row, int64_t last_row,
                std::byte* scratch) noexcept {
  const Scratch work(scratch, job.width);
  const Optimizer& with = optimizer(job.step);
  const StateNeeds needs = state_needs(job.step.kind);
  const bool whole = with.sums == nullptr || job.sums != nullptr;
  for (int64_t u = first_row; u < last_row; ++u) {
    sum_gradient(job, u, work.gradient, work.block);
    load_row(job, u, work.row);
    for (int s = 0; s < (whole ? 1 : job.statistics); ++s) {
      RangeOfRow range = range_of(job, u, whole ? ColumnRange{0, job.width} : job.columns[s], work);
      if (needs.row_values > 0) range.state = job.state[s] + job.rows[u];
      std::array<float, kMostSums> own{};
      if (whole) {
        const float* sums = job.sums == nullptr ? nullptr : job.sums + u * needs.sums;
        with.step(range, sums, static_cast<float>(job.statistic_columns));
      } else {
        with.sums(range, own.data());
        with.step(range, own.data(), static_cast<float>(range.columns));
      }
    }
    store_row(job, u, math::RoundingUse::kStep, work.row);
  }
}

void row_sums(const RowUpdate& job, const ColumnRange* ranges, int count, float* out,
              int64_t first_row, int64_t last_row, std::byte* scratch) noexcept {
  const Scratch work(scratch, job.width);
  const Optimizer& with = optimizer(job.step);
  if (with.sums == nullptr) return;
  const int sums = state_needs(job.step.kind).sums;
  for (int64_t u = first_row; u < last_row; ++u) {
    sum_gradient(job, u, work.gradient, work.block);
    load_row(job, u, work.row);
    for (int r = 0; r < count; ++r) {
      with.sums(range_of(job, u, ranges[r], work), out + (u * count + r) * sums);
    }
  }
}

void row_gradients(const RowUpdate& job, float* out, int64_t first_row, int64_t last_row,
                   std::byte* scratch) noexcept {
  const Scratch work(scratch, job.width);
  for (int64_t u = first_row; u < last_row; ++u) {
    sum_gradient(job, u, out + u * job.width, work.block);
  }
}

void row_norms(const RowUpdate& job, const ColumnRange* ranges, int count, float* out,
               int64_t first_row, int64_t last_row, std::byte* scratch) noexcept {
  const Scratch work(scratch, job.width);
  for (int64_t u = first_row; u < last_row; ++u) {
    load_row(job, u, work.row);
    for (int r = 0; r < count; ++r) {
      out[u * count + r] = square_sum(work.row + ranges[r].begin, ranges[r].end - ranges[r].begin);
    }
  }
}

void row_rescale(const RowUpdate& job, const ColumnRange* ranges, int count, const float* norms,
                 int64_t first_row, int64_t last_row, std::byte* scratch) noexcept {
  const Scratch work(scratch, job.width);
  for (int64_t u = first_row; u < last_row; ++u) {
    bool scaled = false;
    load_row(job, u, work.row);
    for (int r = 0; r < count; ++r) {
      const float norm = norms[u * count + r];
      if (!math::is_too_long(job.step.max_norm, norm)) continue;
      const float factor = math::norm_factor(job.step.max_norm, norm);
      scaled = true;
      for (int64_t c = ranges[r].begin; c < ranges[r].end; ++c) work.row[c] *= factor;
    }
    if (scaled) store_row(job, u, math::RoundingUse::kMaxNorm, work.row);
  }
}

}  // namespace shardrec::compute::cpu::scalar
