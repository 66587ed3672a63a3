// Products of matrices over the tests' cuBLASLt (fake_cublaslt.h), and what they are when they are computed in 64 bits.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "compute/cuda/host/stream.h"
#include "dense/device/gemm.h"
#include "dense/device/plugin.h"
#include "fake_cublaslt.h"
#include "halves.h"
#include "support/device_bytes.h"
#include "support/eventually.h"

namespace shardrec::test {

using compute::cuda::host::Stream;
using dense::device::DType;
using dense::device::Epilogue;
using dense::device::Gemm;
using dense::device::Multiplier;
using dense::device::Product;

// Whether the library is the tests' own: else it is NVIDIA's, on a device (tests/gpu/run).
inline bool is_emulated() {
  const char* const library = std::getenv("SHARDREC_CUBLASLT_LIBRARY");
  return library != nullptr && std::strcmp(library, SHARDREC_FAKE_CUBLASLT) == 0;
}

// A function of the tests' cuBLASLt.
template <class Function>
Function* of_fake(const char* name) {
  dense::device::table();
  void* const library = dlopen(SHARDREC_FAKE_CUBLASLT, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) throw std::runtime_error("the tests' cuBLASLt is not loaded");
  return std::bit_cast<Function*>(dlsym(library, name));
}
#define OF_FAKE(name) ::shardrec::test::of_fake<decltype(name)>(#name)

inline size_t bytes_of(DType dtype) { return dtype == DType::kFloat32 ? 4 : 2; }

inline void put(DType dtype, std::string& into, size_t index, double value) {
  const auto as = [&](auto element) {
    std::memcpy(into.data() + index * sizeof element, &element, sizeof element);
  };
  switch (dtype) {
    case DType::kFloat16:
      return as(simt::Half(static_cast<float>(value)));
    case DType::kBfloat16:
      return as(simt::Bfloat(static_cast<float>(value)));
    default:
      return as(static_cast<float>(value));
  }
}

inline double get(DType dtype, const std::string& from, size_t index) {
  const auto as = [&](auto element) {
    std::memcpy(&element, from.data() + index * sizeof element, sizeof element);
    return static_cast<double>(static_cast<float>(element));
  };
  switch (dtype) {
    case DType::kFloat16:
      return as(simt::Half{});
    case DType::kBfloat16:
      return as(simt::Bfloat{});
    default:
      return as(float{});
  }
}

inline double rounded(DType dtype, double value) {
  std::string bytes(4, '\0');
  put(dtype, bytes, 0, value);
  return get(dtype, bytes, 0);
}

inline bool reads_bias(Epilogue epilogue) {
  return epilogue == Epilogue::kBias || epilogue == Epilogue::kReluBias ||
         epilogue == Epilogue::kReluBiasMask;
}
inline bool writes_bias(Epilogue epilogue) {
  return epilogue == Epilogue::kDreluBiasGradient || epilogue == Epilogue::kBiasGradientA ||
         epilogue == Epilogue::kBiasGradientB;
}
inline bool reads_mask(Epilogue epilogue) {
  return epilogue == Epilogue::kDrelu || epilogue == Epilogue::kDreluBiasGradient;
}

// A row-major matrix of the host, rows `ld` elements apart.
class Matrix {
 public:
  Matrix(DType dtype, int64_t rows, int64_t columns, int64_t ld)
      : dtype_(dtype),
        ld_(ld),
        bytes_(static_cast<size_t>(rows == 0 ? 0 : (rows - 1) * ld + columns) * bytes_of(dtype),
               '\0') {}

  void set(int64_t row, int64_t column, double value) {
    put(dtype_, bytes_, at(row, column), value);
  }
  double get(int64_t row, int64_t column) const {
    return test::get(dtype_, bytes_, at(row, column));
  }
  std::string& bytes() { return bytes_; }
  const std::string& bytes() const { return bytes_; }

 private:
  size_t at(int64_t row, int64_t column) const { return static_cast<size_t>(row * ld_ + column); }

  DType dtype_;
  int64_t ld_;
  std::string bytes_;
};

// A product of numbers that all types have and whose sums are exact: multiples of 1/8 from -2 to 2. C holds NaN where
// beta is 0, elements between the rows are NaN too.
struct Case {
  explicit Case(const Product& numbers, uint32_t seed = 1);

  // The same, with addresses of a device behind it.
  struct OnDevice {
    DeviceBytes a, b, c, bias, mask;
    Product product;
  };
  OnDevice on_device(const std::shared_ptr<Stream>& stream) const;
  // Compares C, bias and mask with those that are computed here, each bit.
  void expect(const OnDevice& computed) const;
  // Multiplies, and compares. NVIDIA's library may have no algorithm, and then it says so.
  void run(Gemm& gemm, const std::shared_ptr<Stream>& stream) const;

  Product product;
  Matrix a, b, c;
  std::string bias;
  std::string mask;
  std::string name;

 private:
  int64_t sums() const;  // elements of bias
  bool bit(const std::string& of, int64_t row, int64_t column) const;
  double sum(int64_t row, int64_t column) const;
  double element_a(int64_t row, int64_t k) const;
  double element_b(int64_t k, int64_t column) const;
};

// Without violations, and with all that was made given back. On a device with NVIDIA's cuBLASLt there is nobody to ask.
class CublasTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!dense::device::gemm_on_device_available()) GTEST_SKIP() << "there is no cuBLASLt";
    if (!is_emulated()) return;
    reset();
    OF_FAKE(fake_cublaslt_forget_violations)();
  }
  void TearDown() override {
    if (!is_emulated()) return;
    reset();
    EXPECT_TRUE(eventually([] { return OF_FAKE(fake_cublaslt_live)() == 0; }, 10))
        << OF_FAKE(fake_cublaslt_live)() << " objects are left";
    EXPECT_EQ(OF_FAKE(fake_cublaslt_violations)(), 0) << OF_FAKE(fake_cublaslt_last_violation)();
  }
  static void reset() {
    OF_FAKE(fake_cublaslt_set_no_algorithm)(0);
    OF_FAKE(fake_cublaslt_set_workspace)(0);
    OF_FAKE(fake_cublaslt_fail_call)(0, 0);
  }
};

// What NVIDIA's library cannot be made to do.
class EmulatedCublasTest : public CublasTest {
 protected:
  void SetUp() override {
    if (!is_emulated()) GTEST_SKIP() << "NVIDIA's library";
    CublasTest::SetUp();
  }
};

// Sizes, with rows that are as far apart as they are wide and so many elements more.
Product sized(int64_t m, int64_t n, int64_t k, Epilogue epilogue = Epilogue::kNone,
              int64_t between = 0);
// The same with operands transposed.
Product transposed(Product product, bool a, bool b);

}  // namespace shardrec::test
