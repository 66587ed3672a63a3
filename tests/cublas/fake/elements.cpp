#include "elements.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "dense/cublas/cublaslt_api.h"
#include "halves.h"

namespace fake_cublaslt {
namespace {

template <class T>
float load_as(const void* elements, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const T*>(elements) + index, sizeof value);
  return static_cast<float>(value);
}

template <class T>
void store_as(void* elements, int64_t index, float value) {
  const T rounded(value);
  std::memcpy(static_cast<T*>(elements) + index, &rounded, sizeof rounded);
}

}  // namespace

size_t bytes_of_element(int32_t dtype) {
  switch (dtype) {
    case SHARDREC_CUBLAS_FLOAT32:
      return 4;
    case SHARDREC_CUBLAS_FLOAT16:
    case SHARDREC_CUBLAS_BFLOAT16:
      return 2;
    default:
      return 0;
  }
}

float load(int32_t dtype, const void* elements, int64_t index) {
  switch (dtype) {
    case SHARDREC_CUBLAS_FLOAT16:
      return load_as<simt::Half>(elements, index);
    case SHARDREC_CUBLAS_BFLOAT16:
      return load_as<simt::Bfloat>(elements, index);
    default:
      return load_as<float>(elements, index);
  }
}

void store(int32_t dtype, void* elements, int64_t index, float value) {
  switch (dtype) {
    case SHARDREC_CUBLAS_FLOAT16:
      return store_as<simt::Half>(elements, index, value);
    case SHARDREC_CUBLAS_BFLOAT16:
      return store_as<simt::Bfloat>(elements, index, value);
    default:
      return store_as<float>(elements, index, value);
  }
}

float round_to_tf32(float value) {
  if (!std::isfinite(value)) return value;
  const auto bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>((bits + 0xFFF + ((bits >> 13) & 1)) & ~uint32_t{0x1FFF});
}

}  // namespace fake_cublaslt
