#include "elements.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <type_traits>

#include "comm/nccl/nccl_api.h"
#include "halves.h"

namespace fake_nccl {
namespace {

// What sums are made in before they are rounded.
template <class T>
using Wide = std::conditional_t<sizeof(T) == 2, float, T>;

template <class T>
Wide<T> combine(int32_t reduction, Wide<T> a, Wide<T> b) {
  switch (reduction) {
    case SHARDREC_NCCL_MAX:
      return std::max(a, b);
    case SHARDREC_NCCL_MIN:
      return std::min(a, b);
    default:
      if constexpr (std::is_integral_v<T>) {  // sums of integers wrap around
        return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
      } else {
        return a + b;
      }
  }
}

template <class T>
void reduce_as(int32_t reduction, void* into, const void* from, size_t count) {
  T* const to = static_cast<T*>(into);
  const T* const other = static_cast<const T*>(from);
  for (size_t i = 0; i < count; ++i) {
    to[i] = T(combine<T>(reduction, Wide<T>(to[i]), Wide<T>(other[i])));
  }
}

template <class T>
void divide_as(void* sums, size_t count, int ranks) {
  T* const to = static_cast<T*>(sums);
  for (size_t i = 0; i < count; ++i) to[i] = T(Wide<T>(to[i]) / Wide<T>(ranks));
}

// Calls with a value of the element's type.
template <class Call>
void with_type(int32_t dtype, Call call) {
  switch (dtype) {
    case SHARDREC_NCCL_INT32:
      return call(int32_t{});
    case SHARDREC_NCCL_INT64:
      return call(int64_t{});
    case SHARDREC_NCCL_FLOAT16:
      return call(simt::Half{});
    case SHARDREC_NCCL_FLOAT32:
      return call(float{});
    case SHARDREC_NCCL_FLOAT64:
      return call(double{});
    case SHARDREC_NCCL_BFLOAT16:
      return call(simt::Bfloat{});
    default:
      return call(int8_t{});
  }
}

}  // namespace

size_t bytes_of_element(int32_t dtype) noexcept {
  constexpr size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};  // in the order of ncclDataType_t
  return dtype >= 0 && dtype < static_cast<int32_t>(std::size(kBytes)) ? kBytes[dtype] : 0;
}

bool is_reduction(int32_t reduction) noexcept {
  return reduction == SHARDREC_NCCL_SUM || reduction == SHARDREC_NCCL_MAX ||
         reduction == SHARDREC_NCCL_MIN || reduction == SHARDREC_NCCL_AVG;
}

void reduce(int32_t dtype, int32_t reduction, void* into, const void* from, size_t count) noexcept {
  with_type(dtype, [&](auto type) { reduce_as<decltype(type)>(reduction, into, from, count); });
}

void divide(int32_t dtype, void* sums, size_t count, int ranks) noexcept {
  with_type(dtype, [&](auto type) { divide_as<decltype(type)>(sums, count, ranks); });
}

}  // namespace fake_nccl
