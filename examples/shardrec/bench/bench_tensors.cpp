#include "bench/bench_tensors.h"

namespace shardrec::cli {

Vector BenchTensors::place(const std::vector<int64_t>& values) {
  const Vector here(values);
  if (device_ < 0) return here;
  const Vector there = allocate(values.size() * sizeof(int64_t))
                           .vector(SHARDREC_INT64, static_cast<int64_t>(values.size()));
  copy(there, here);
  return there;
}

Matrix BenchTensors::place(const LineBytes& bytes, shardrec_dtype dtype, int64_t rows,
                           int64_t cols) {
  const Matrix here(bytes.data(), dtype, rows, cols);
  if (device_ < 0) return here;
  const Matrix there = allocate(bytes.size()).matrix(dtype, rows, cols);
  copy(there, here);
  return there;
}

const Memory& BenchTensors::allocate(size_t bytes) {
  return copies_.emplace_back(SHARDREC_DEVICE_CUDA, static_cast<int32_t>(device_),
                              static_cast<int64_t>(bytes));
}

}  // namespace shardrec::cli
