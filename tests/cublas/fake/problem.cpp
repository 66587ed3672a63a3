#include "problem.h"

#include <bit>
#include <initializer_list>

#include "elements.h"

namespace fake_cublaslt {
namespace {

constexpr uint32_t kMaskAlignment = 16;
constexpr int64_t kMaskStride = 128;

bool is_misfit(const Problem& problem) {
  const bool transposed_a = problem.desc.transpose_a == kTransposed;
  const bool transposed_b = problem.desc.transpose_b == kTransposed;
  const int64_t a_rows = transposed_a ? problem.a.columns : problem.a.rows;
  const int64_t b_rows = transposed_b ? problem.b.columns : problem.b.rows;
  const int64_t b_columns = transposed_b ? problem.b.rows : problem.b.columns;
  return a_rows != problem.rows() || b_rows != problem.depth() || b_columns != problem.columns() ||
         problem.c.rows != problem.rows() || problem.c.columns != problem.columns();
}

bool has_known_types(const Problem& problem) {
  for (const MatrixLayoutType* layout : {&problem.a, &problem.b, &problem.c, &problem.d}) {
    if (bytes_of_element(layout->dtype) == 0) return false;
  }
  const bool is_fast = problem.desc.compute_type == kCompute32FastTf32;
  if (!is_fast && problem.desc.compute_type != kCompute32) return false;
  if (is_fast && problem.a.dtype != kFloat32) return false;
  return problem.desc.scale_type == kFloat32 && problem.a.dtype == problem.b.dtype &&
         problem.c.dtype == problem.d.dtype &&
         (problem.d.dtype == problem.a.dtype || problem.d.dtype == kFloat32);
}

bool is_known(uint32_t epilogue) {
  for (const LtEpilogue known :
       {kDefault, kBias, kReluBias, kReluAuxBias, kDrelu, kDreluBgrad, kBgradA, kBgradB}) {
    if (epilogue == known) return true;
  }
  return false;
}

bool has_epilogue(const Problem& problem) {
  const MatmulDescType& desc = problem.desc;
  if (desc.epilogue == knobs().no_algorithm.load() || !is_known(desc.epilogue)) return false;
  if (desc.epilogue == kBgradA && (desc.transpose_a == kTransposed || problem.rows() == 1)) {
    return false;
  }
  if (desc.epilogue == kBgradB && (desc.transpose_b != kTransposed || problem.columns() == 1)) {
    return false;
  }
  return !problem.has_relu_gradient() || problem.depth() > 1;
}

bool is_bad_mask(const Problem& problem, const char* call) {
  const MatmulDescType& desc = problem.desc;
  if (desc.aux == nullptr) {
    violation("%s without a mask", call);
  } else if (alignment(desc.aux) < kMaskAlignment) {
    violation("%s with a mask that is %u-byte aligned", call, alignment(desc.aux));
  } else if (desc.aux_ld % kMaskStride != 0 || desc.aux_ld < problem.rows()) {
    violation("%s with a mask of %ld bits in a column, for %ld rows", call,
              static_cast<long>(desc.aux_ld), static_cast<long>(problem.rows()));
  } else {
    return false;
  }
  return true;
}

}  // namespace

uint64_t Problem::fingerprint() const {
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](int64_t value) {
    hash = (hash ^ static_cast<uint64_t>(value)) * 0x100000001b3;
    hash ^= hash >> 29;
  };
  for (const int64_t value : {int64_t{desc.compute_type}, int64_t{desc.transpose_a},
                              int64_t{desc.transpose_b}, int64_t{desc.epilogue}, desc.aux_ld}) {
    add(value);
  }
  for (const MatrixLayoutType* layout : {&a, &b, &c, &d}) {
    for (const int64_t value :
         {int64_t{layout->dtype}, layout->rows, layout->columns, layout->ld}) {
      add(value);
    }
  }
  return hash;
}

Status check(const Problem& problem, const char* call) {
  if (is_misfit(problem)) {
    violation("%s with matrices that do not fit each other", call);
    return kInvalidValue;
  }
  for (const MatrixLayoutType* layout : {&problem.a, &problem.b, &problem.c, &problem.d}) {
    if (layout->ld >= layout->rows) continue;
    violation("%s with columns of %ld elements that are %ld apart", call,
              static_cast<long>(layout->rows), static_cast<long>(layout->ld));
    return kInvalidValue;
  }
  if (problem.has_bias() && problem.desc.bias == nullptr) {
    violation("%s without a bias", call);
    return kInvalidValue;
  }
  if (problem.has_mask() && is_bad_mask(problem, call)) return kInvalidValue;
  return has_known_types(problem) && has_epilogue(problem) ? kSuccess : kNotSupported;
}

uint32_t alignment(const void* address) {
  const auto number = std::bit_cast<uintptr_t>(address);
  return number % 256 == 0 ? 256 : uint32_t{1} << std::countr_zero(number);
}

}  // namespace fake_cublaslt
