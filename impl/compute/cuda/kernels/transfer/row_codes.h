// Rows of floats in fewer bytes and back (compute::RowEncoding, compute::RowDecoding): a thread for some
// numbers that are rounded to 16 bits; a group of lanes for each box of a row in 8 bits.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>

#include "compute/cuda/kernels/columns.h"
#include "compute/math/finite.h"
#include "compute/math/quantize.h"

namespace shardrec::compute::cuda {

// Numbers [i, i + kColumns) of a list of an element, as floats.
template <int kColumns>
SHARDREC_DEVICE void load_numbers(const void* list, int32_t element, int64_t i,
                                  float (&x)[kColumns]) {
  if (element == SHARDREC_CUDA_FLOAT32) {
    load_columns(static_cast<const float*>(list) + i, x);
    return;
  }
  const auto* const halves = static_cast<const uint16_t*>(list) + i;
  const auto widened = [&](uint32_t half) {
    return element == SHARDREC_CUDA_FLOAT16 ? widened_number<math::Float16>(half)
                                            : widened_number<math::Bfloat16>(half);
  };
  if constexpr (kColumns == 4) {
    const uint2 raw = *reinterpret_cast<const uint2*>(halves);
    x[0] = widened(raw.x & 0xFFFF);
    x[1] = widened(raw.x >> 16);
    x[2] = widened(raw.y & 0xFFFF);
    x[3] = widened(raw.y >> 16);
  } else {
    x[0] = widened(*halves);
  }
}

// Calls convert(i) for the first of each kColumns numbers that are this thread's.
template <int kColumns, class Convert>
SHARDREC_DEVICE void for_each_number(int64_t block, int64_t count, const Convert& convert) {
  constexpr int kAtOnce = SHARDREC_CUDA_CONVERSIONS_AT_ONCE;
  const int64_t first = (block * kThreads * kAtOnce + threadIdx.x) * kColumns;
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k) {
    const int64_t i = first + int64_t{k} * kThreads * kColumns;
    if (i < count) convert(i);
  }
}

// first_block, of all kernels here: [count + 1], the blocks of the jobs before each.
template <int kColumns>
SHARDREC_KERNEL(4)
narrow_rows(const shardrec_cuda_row_encoding* jobs, const int64_t* first_block, int32_t count) {
  const int32_t number = last_start(first_block, count, blockIdx.x);
  const shardrec_cuda_row_encoding job = *global(&jobs[number]);
  for_each_number<kColumns>(blockIdx.x - first_block[number], job.coding.rows * job.coding.width,
                            [&](int64_t i) {
                              float x[kColumns];
                              load_columns(job.floats + i, x);
                              if (job.coding.element == SHARDREC_CUDA_FLOAT16) {
#pragma unroll
                                for (float& value : x) value = math::within_float16(value);
                              }
                              store_columns(job.coded, job.coding.element, i, x);
                            });
}

template <int kColumns>
SHARDREC_KERNEL(4)
widen_rows(const shardrec_cuda_row_decoding* jobs, const int64_t* first_block, int32_t count) {
  const int32_t number = last_start(first_block, count, blockIdx.x);
  const shardrec_cuda_row_decoding job = *global(&jobs[number]);
  for_each_number<kColumns>(blockIdx.x - first_block[number], job.coding.rows * job.coding.width,
                            [&](int64_t i) {
                              float x[kColumns];
                              load_numbers(global(job.coded), job.coding.element, i, x);
                              store_columns(global(job.floats), SHARDREC_CUDA_FLOAT32, i, x);
                            });
}

// A box of a row, where its scale is and its codes are, and this thread's columns of it.
struct CodedBox {
  bool exists;
  int64_t scale;   // bytes from the beginning
  int64_t codes;   // the same
  int64_t floats;  // numbers from the beginning
  int64_t columns;
  int64_t first_column;
  int64_t step;
};

template <int kColumns>
SHARDREC_DEVICE CodedBox box_of_group(const shardrec_cuda_row_coding& coding, int64_t block) {
  const auto thread = static_cast<int>(threadIdx.x);
  const int64_t number = block * (kThreads / coding.lanes) + thread / coding.lanes;
  const int64_t row = number / coding.box_count;
  CodedBox box = {};
  if (row >= coding.rows) return box;
  const shardrec_cuda_column_range range = global(coding.boxes)[number % coding.box_count];
  const int64_t at = row * coding.width + range.begin;
  constexpr int64_t kScaleBytes = sizeof(RowScale);
  return {.exists = true,
          .scale = number * kScaleBytes,
          .codes = coding.rows * coding.box_count * kScaleBytes + at,
          .floats = at,
          .columns = range.end - range.begin,
          .first_column = int64_t{thread % coding.lanes} * kColumns,
          .step = int64_t{coding.lanes} * kColumns};
}

// What the lanes of a group know of the numbers of a box. All lanes of the warp call it.
struct BoxRange {
  float least;
  float most;
  bool finite;

  SHARDREC_DEVICE void see(float x) {
    least = x < least ? x : least;
    most = most < x ? x : most;
    finite = finite && math::is_finite(x);
  }
  SHARDREC_DEVICE void see_lanes(int lanes) {
    for (int distance = 1; distance < lanes; distance *= 2) {
      const float other_least = __shfl_xor_sync(kAllLanes, least, distance);
      const float other_most = __shfl_xor_sync(kAllLanes, most, distance);
      const int other_finite = __shfl_xor_sync(kAllLanes, finite ? 1 : 0, distance);
      least = other_least < least ? other_least : least;
      most = most < other_most ? other_most : most;
      finite = finite && other_finite != 0;
    }
  }
};

template <int kColumns>
SHARDREC_DEVICE void store_codes(unsigned char* to, const uint32_t (&code)[kColumns]) {
  if constexpr (kColumns == 4) {
    *reinterpret_cast<uint32_t*>(to) = code[0] | code[1] << 8 | code[2] << 16 | code[3] << 24;
  } else {
    *to = static_cast<unsigned char>(code[0]);
  }
}

template <int kColumns>
SHARDREC_DEVICE void load_codes(const unsigned char* from, uint32_t (&code)[kColumns]) {
  if constexpr (kColumns == 4) {
    const uint32_t codes = *reinterpret_cast<const uint32_t*>(from);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) code[c] = codes >> (8 * c) & 0xFF;
  } else {
    code[0] = *from;
  }
}

template <int kColumns>
SHARDREC_KERNEL(4)
encode_boxes(const shardrec_cuda_row_encoding* jobs, const int64_t* first_block, int32_t count) {
  const int32_t number = last_start(first_block, count, blockIdx.x);
  const shardrec_cuda_row_encoding job = *global(&jobs[number]);
  const CodedBox box = box_of_group<kColumns>(job.coding, blockIdx.x - first_block[number]);
  const float* const in = job.floats + box.floats;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  BoxRange range{.least = kInfinity, .most = -kInfinity, .finite = true};
  for (int64_t column = box.first_column; column < box.columns; column += box.step) {
    float x[kColumns];
    load_columns(in + column, x);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) range.see(x[c]);
  }
  range.see_lanes(job.coding.lanes);
  if (!box.exists) return;
  math::RowCode code;
  if (box.columns != 0) code = math::code_of_row(range.least, range.most, range.finite);
  // At any address.
  if (box.first_column == 0)
    std::memcpy(global(job.coded) + box.scale, &code.scale, sizeof code.scale);
  for (int64_t column = box.first_column; column < box.columns; column += box.step) {
    float x[kColumns];
    uint32_t codes[kColumns];
    load_columns(in + column, x);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const float steps = math::unrounded_code(x[c], code.scale.offset, code.inverse);
      codes[c] = code.inverse == 0 ? 0 : static_cast<uint32_t>(std::rint(steps));
    }
    store_codes(global(job.coded) + box.codes + column, codes);
  }
}

template <int kColumns>
SHARDREC_KERNEL(4)
decode_boxes(const shardrec_cuda_row_decoding* jobs, const int64_t* first_block, int32_t count) {
  const int32_t number = last_start(first_block, count, blockIdx.x);
  const shardrec_cuda_row_decoding job = *global(&jobs[number]);
  const CodedBox box = box_of_group<kColumns>(job.coding, blockIdx.x - first_block[number]);
  if (!box.exists) return;
  RowScale scale;
  std::memcpy(&scale, global(job.coded) + box.scale, sizeof scale);
  for (int64_t column = box.first_column; column < box.columns; column += box.step) {
    uint32_t codes[kColumns];
    float x[kColumns];
    load_codes(global(job.coded) + box.codes + column, codes);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      x[c] = math::decoded(static_cast<float>(codes[c]), scale.scale, scale.offset);
    }
    store_columns(job.floats, SHARDREC_CUDA_FLOAT32, box.floats + column, x);
  }
}

}  // namespace shardrec::compute::cuda
