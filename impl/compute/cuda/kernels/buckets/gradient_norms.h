// Norms of gradients, and where they are not finite. A sum of squares has 16 lanes (dense/gradient_norm.h): the half of
// a warp takes one, and goes through a block of elements as they lie in memory.
#pragma once

#include "compute/cuda/kernels/buckets/numbers.h"

namespace shardrec::compute::cuda {

// Which sum of norms this half of a warp takes. Those that there are not take the last one, and store nothing.
struct NormPlace {
  shardrec_cuda_gradient gradient;
  int64_t begin;  // the first element
  int64_t count;
  int64_t result;
  bool exists;
};

// last_start() for the half of a warp: every lane looks for itself.
SHARDREC_DEVICE NormPlace norm_place(const shardrec_cuda_gradient_list& list) {
  const int64_t given = grid_thread_index() / kVirtualLanes;
  const bool exists = given < list.units;
  const int64_t unit = exists ? given : list.units - 1;
  int32_t first = 0;
  for (int32_t end = list.count; end - first > 1;) {
    const int32_t middle = first + (end - first) / 2;
    if (global(list.first_unit)[middle] <= unit) {
      first = middle;
    } else {
      end = middle;
    }
  }
  const shardrec_cuda_gradient gradient = *global(&list.gradients[first]);
  const int64_t block = unit - global(list.first_unit)[first];
  const int64_t begin = block * SHARDREC_CUDA_NORM_BLOCK;
  const int64_t rest = gradient.count - begin;
  return {.gradient = gradient,
          .begin = begin,
          .count = rest < SHARDREC_CUDA_NORM_BLOCK ? rest : SHARDREC_CUDA_NORM_BLOCK,
          .result = gradient.first_result + block,
          .exists = exists};
}

template <class T, class Combine>
SHARDREC_DEVICE T over_lanes(T value, const Combine& combine) {
#pragma unroll
  for (int distance = kVirtualLanes / 2; distance > 0; distance /= 2) {
    value = combine(value, __shfl_xor_sync(kAllLanes, value, distance));
  }
  return value;
}

template <class Number>
SHARDREC_KERNEL(4)
sum_squares(shardrec_cuda_norm_blocks job) {
  constexpr int kUnrolled = 8;
  // Elements of 16 bits are added up in pieces.
  constexpr int64_t kPiece =
      sizeof(typename Number::Stored) == 2 ? SHARDREC_CUDA_NORM_PIECE : SHARDREC_CUDA_NORM_BLOCK;
  const NormPlace place = norm_place(job.list);
  const int lane = lane_index() % kVirtualLanes;
  double total = 0;
  for (int64_t piece = 0; piece < SHARDREC_CUDA_NORM_BLOCK; piece += kPiece) {
    const int64_t rest = place.count - piece;
    const int64_t end = rest < kPiece ? rest : kPiece;
    double sum = 0;
    for (int64_t at = lane; at < end; at += int64_t{kUnrolled} * kVirtualLanes) {
      typename Number::Stored loaded[kUnrolled];
#pragma unroll
      for (int u = 0; u < kUnrolled; ++u) {
        const int64_t i = at + u * kVirtualLanes;
        loaded[u] = i < end ? stored_at<Number>(place.gradient.elements, place.begin + piece + i)
                            : typename Number::Stored{};
      }
#pragma unroll
      for (int u = 0; u < kUnrolled; ++u) {
        auto value = static_cast<double>(Number::widened(loaded[u]));
        if constexpr (std::is_same_v<Number, Float64Number>) value = value * job.scale;
        sum += value * value;
      }
    }
    total += over_lanes(sum, [](double a, double b) { return a + b; });
  }
  if (place.exists && lane == 0) global(job.results)[place.result] = total;
}

// Bits of an element without the sign: those of magnitudes are ordered as these are, and NaN comes last.
template <class Number>
SHARDREC_DEVICE unsigned long long magnitude_at(const void* list, int64_t i) {
  if constexpr (std::is_same_v<Number, Float64Number>) {
    return global(static_cast<const unsigned long long*>(list))[i] & 0x7FFFFFFFFFFFFFFFULL;
  } else if constexpr (std::is_same_v<Number, Float32Number>) {
    return math::op::bits(stored_at<Number>(list, i)) & 0x7FFFFFFFU;
  } else {
    return stored_at<Number>(list, i) & 0x7FFFU;
  }
}

template <class Number>
SHARDREC_KERNEL(4)
find_largest(shardrec_cuda_norm_blocks job) {
  const NormPlace place = norm_place(job.list);
  const int lane = lane_index() % kVirtualLanes;
  unsigned long long most = 0;
  for (int64_t at = lane; at < place.count; at += kVirtualLanes) {
    const unsigned long long bits = magnitude_at<Number>(place.gradient.elements, place.begin + at);
    most = bits > most ? bits : most;
  }
  most = over_lanes(most, [](unsigned long long a, unsigned long long b) { return a > b ? a : b; });
  if (!place.exists || lane != 0) return;
  if constexpr (std::is_same_v<Number, Float64Number>) {
    reinterpret_cast<unsigned long long*>(global(job.results))[place.result] = most;
  } else if constexpr (std::is_same_v<Number, Float32Number>) {
    const float magnitude = math::op::from_bits(static_cast<uint32_t>(most));
    global(job.results)[place.result] = static_cast<double>(magnitude);
  } else {
    const float magnitude = Number::widened(static_cast<uint16_t>(most));
    global(job.results)[place.result] = static_cast<double>(magnitude);
  }
}

template <class Number>
SHARDREC_DEVICE constexpr unsigned long long infinity_bits() {
  if constexpr (std::is_same_v<Number, Float64Number>) return 0x7FF0000000000000ULL;
  if constexpr (std::is_same_v<Number, Float32Number>) return 0x7F800000ULL;
  if constexpr (std::is_same_v<Number, Float16Number>) return 0x7C00ULL;
  return 0x7F80ULL;
}

template <class Number>
SHARDREC_KERNEL(4)
find_not_finite(shardrec_cuda_non_finite job) {
  const int32_t number = last_start(job.list.first_unit, job.list.count, blockIdx.x);
  const shardrec_cuda_gradient gradient = *global(&job.list.gradients[number]);
  const int64_t first =
      (int64_t{blockIdx.x} - job.list.first_unit[number]) * SHARDREC_CUDA_BUCKET_TILE + threadIdx.x;
#pragma unroll
  for (int k = 0; k < SHARDREC_CUDA_BUCKET_TILE / kThreads; ++k) {
    const int64_t i = first + int64_t{k} * kThreads;
    if (i >= gradient.count) return;
    if (magnitude_at<Number>(gradient.elements, i) < infinity_bits<Number>()) continue;
    atomicMin(reinterpret_cast<unsigned long long*>(global(job.results)) + gradient.first_result,
              static_cast<unsigned long long>(i));
    return;
  }
}

}  // namespace shardrec::compute::cuda
