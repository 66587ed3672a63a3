// Sums over the ranks (shardrec_cuda_rank_sum): a thread for some elements, kThreads apart. The tree is gone through in
// the order of the ranks: four inputs are added at once, and what is behind them waits for its right neighbour at its
// level. So the loads of four inputs are on their way at the same time, and no memory holds partial sums.
#pragma once

#include "compute/cuda/kernels/buckets/numbers.h"

namespace shardrec::compute::cuda {

inline constexpr int kBucketItems = SHARDREC_CUDA_BUCKET_TILE / kThreads;
inline constexpr int kSumLevels = 10;  // of groups of four inputs
static_assert((4 << kSumLevels) - 1 == SHARDREC_CUDA_MOST_ADDENDS);

// The tree over inputs at(0) .. at(addends - 1), of which there are at least two.
template <class Sum, class At>
SHARDREC_DEVICE Sum tree_of(int32_t addends, const At& at) {
  Sum waiting[kSumLevels] = {};
  const int32_t groups = addends / 4;
  for (int32_t group = 0; group < groups; ++group) {
    const Sum a = at(4 * group), b = at(4 * group + 1), c = at(4 * group + 2),
              d = at(4 * group + 3);
    Sum x = (a + b) + (c + d);
    bool goes_up = true;  // x does, from the level
#pragma unroll
    for (int level = 0; level < kSumLevels; ++level) {
      const bool has_left = (group >> level & 1) != 0;
      if (goes_up && has_left) {
        x = waiting[level] + x;
      } else if (goes_up) {
        waiting[level] = x;
      }
      goes_up = goes_up && has_left;
    }
  }
  const int32_t first = 4 * groups;
  bool has_sum = first < addends;
  Sum sum = 0;
  if (has_sum) sum = at(first);
  if (first + 1 < addends) sum = sum + at(first + 1);
  if (first + 2 < addends) sum = sum + at(first + 2);
#pragma unroll
  for (int level = 0; level < kSumLevels; ++level) {
    if ((groups >> level & 1) == 0) continue;
    sum = has_sum ? waiting[level] + sum : waiting[level];
    has_sum = true;
  }
  return sum;
}

// The largest float16 of its sign for a finite number that would become infinite; any other as it is.
SHARDREC_DEVICE float kept_finite(float x, bool& saturated) {
  const float within = math::within_float16(x);
  saturated = math::op::bits(x) != math::op::bits(within);
  return within;
}

template <class Sum>
SHARDREC_DEVICE Sum scaled(const shardrec_cuda_rank_sum& job, Sum x) {
  const auto scale = static_cast<Sum>(job.scale);
  if (job.divides != 0) {
    x = x / scale;
  } else if (scale != 1) {
    x = x * scale;
  }
  if (job.factor != 1) x = x * static_cast<Sum>(job.factor);
  if (job.bound >= 0) {
    const auto bound = static_cast<Sum>(job.bound);
    x = x < -bound ? -bound : x > bound ? bound : x;
  }
  return x;
}

// A float32 number as it comes out of a message of another type.
SHARDREC_DEVICE float sent_through(int32_t element, float x) {
  return element == SHARDREC_CUDA_FLOAT16 ? Float16Number::widened(Float16Number::nearest(x))
                                          : Bfloat16Number::widened(Bfloat16Number::nearest(x));
}

template <class From, class To, bool kOneInput>
SHARDREC_KERNEL(4)
add_rank_inputs(shardrec_cuda_rank_sum job) {
  using Sum = typename From::Sum;
  const int32_t number = last_start(job.first_block, job.run_count, blockIdx.x);
  const shardrec_cuda_bucket_run run = *global(&job.runs[number]);
  const int64_t first =
      (int64_t{blockIdx.x} - job.first_block[number]) * SHARDREC_CUDA_BUCKET_TILE + threadIdx.x;
  const auto item = [first](int k) { return first + int64_t{k} * kThreads; };
  unsigned saturated = 0;
  const auto finish = [&](Sum x, int64_t i) {
    x = scaled(job, x);
    if constexpr (std::is_same_v<To, Float16Number>) {
      bool beyond = false;
      if (job.saturated != nullptr) x = kept_finite(x, beyond);
      saturated += beyond ? 1 : 0;
    }
    global(static_cast<typename To::Stored*>(run.out))[i] = To::nearest(x);
  };
  if constexpr (kOneInput) {
    const void* const input = *global(run.inputs);
    typename From::Stored loaded[kBucketItems];
#pragma unroll
    for (int k = 0; k < kBucketItems; ++k) {
      loaded[k] = input != nullptr && item(k) < run.count ? stored_at<From>(input, item(k))
                                                          : typename From::Stored{};
    }
#pragma unroll
    for (int k = 0; k < kBucketItems; ++k) {
      if (item(k) >= run.count) continue;
      Sum x = From::widened(loaded[k]);
      if constexpr (std::is_same_v<From, Float32Number>) {
        if (job.through != SHARDREC_CUDA_NO_ELEMENT) {
          bool beyond = false;
          if (job.saturated != nullptr && job.through == SHARDREC_CUDA_FLOAT16) {
            x = kept_finite(x, beyond);
          }
          saturated += beyond ? 1 : 0;
          x = sent_through(job.through, x);
        }
      }
      finish(x, item(k));
    }
  } else {
    for (int k = 0; k < kBucketItems; ++k) {
      const int64_t i = item(k);
      if (i >= run.count) break;
      finish(tree_of<Sum>(job.addends,
                          [&](int32_t rank) {
                            const void* const input = global(run.inputs)[rank];
                            return input == nullptr ? Sum{0}
                                                    : From::widened(stored_at<From>(input, i));
                          }),
             i);
    }
  }
  if (saturated != 0) {
    atomicAdd(reinterpret_cast<unsigned long long*>(global(job.saturated)),
              static_cast<unsigned long long>(saturated));
  }
}

}  // namespace shardrec::compute::cuda
