// The first NaN or infinity of a matrix on a device is the one that the host finds.
#include "compute/cuda/host/gradients/non_finite_search.h"

#include <cstring>
#include <optional>
#include <vector>

#include "device/device_arrays.h"
#include "device/of_plugin.h"

namespace shardrec::test {
namespace {

using compute::Element;
using compute::element_bytes;

struct Bits {
  Element element;
  uint32_t infinity;
  uint32_t sign;
};
constexpr Bits kBits[] = {{Element::kFloat32, 0x7F800000U, 0x80000000U},
                          {Element::kFloat16, 0x7C00U, 0x8000U},
                          {Element::kBfloat16, 0x7F80U, 0x8000U}};

struct Shape {
  int64_t rows;
  int64_t columns;
  int64_t stride;
};

// Rows of the largest finite number, with its sign and without; NaN stand between them.
class Matrix {
 public:
  Matrix(const Bits& bits, const Shape& shape) : bits_(bits), shape_(shape) {
    const int64_t numbers = shape.rows * shape.stride;
    bytes_.resize(static_cast<size_t>(numbers) * element_bytes(bits.element));
    for (int64_t i = 0; i < numbers; ++i) {
      const bool given = i % shape.stride < shape.columns;
      put(i, given ? (bits.infinity - 1) | (i % 2 == 0 ? bits.sign : 0) : bits.infinity + 1);
    }
  }

  // position: row * columns + column.
  void set(int64_t position, uint32_t word) {
    put(position / shape_.columns * shape_.stride + position % shape_.columns, word);
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  compute::GivenNumbers at(const void* data) const {
    return {.data = data,
            .element = bits_.element,
            .rows = shape_.rows,
            .columns = shape_.columns,
            .stride = shape_.stride};
  }

 private:
  void put(int64_t at, uint32_t word) {
    const size_t size = element_bytes(bits_.element);
    std::memcpy(&bytes_[static_cast<size_t>(at) * size], &word, size);
  }

  Bits bits_;
  Shape shape_;
  std::vector<std::byte> bytes_;
};

class NonFiniteSearchOnDevice : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (!IsSkipped()) search_.emplace(stream_);
  }
  int64_t first(const Matrix& matrix) {
    Array there(*this, matrix.bytes().data(), matrix.bytes().size());
    search_->begin(matrix.at(there.data()));
    return search_->first();
  }

  std::optional<compute::cuda::host::FirstNonFinite> search_;
};

TEST_F(NonFiniteSearchOnDevice, FindsTheFirstOneInMatricesOfAnyShape) {
  for (const Bits& bits : kBits) {
    for (const Shape& shape : {Shape{1, 1, 1}, Shape{1, 2049, 2049}, Shape{700, 3, 5},
                               Shape{5, 1000, 1001}, Shape{9, 256, 256}, Shape{4100, 1, 2}}) {
      Matrix matrix(bits, shape);
      EXPECT_EQ(first(matrix), -1) << shape.rows << " rows of " << shape.columns;
      const int64_t last = shape.rows * shape.columns - 1;
      // From the last one on, each is before those that are there.
      for (const int64_t position : {last, last - last / 7, last / 2, last / 3, int64_t{0}}) {
        const uint32_t kinds[] = {bits.infinity, bits.infinity | bits.sign, bits.infinity + 1,
                                  bits.infinity | bits.sign | 1U};
        matrix.set(position, kinds[position % 4]);
        EXPECT_EQ(first(matrix), position) << shape.rows << " rows of " << shape.columns;
      }
    }
  }
}

TEST_F(NonFiniteSearchOnDevice, ForgetsWhatItFoundBefore) {
  Matrix matrix(kBits[0], {2, 8, 8});
  matrix.set(3, kBits[0].infinity);
  EXPECT_EQ(first(matrix), 3);
  EXPECT_EQ(search_->first(), 3);
  matrix.set(3, 0);
  EXPECT_EQ(first(matrix), -1);
}

TEST_F(NonFiniteSearchOnDevice, MayBeginAgainAfterMemoryRanOut) {
  auto* const fail_allocation = of_plugin<void(int64_t)>("simt_fail_allocation");
  if (fail_allocation == nullptr) GTEST_SKIP() << "only CUDA on the CPU fails on demand";
  Matrix matrix(kBits[0], {2, 8, 8});
  matrix.set(11, kBits[0].infinity);
  Array there(*this, matrix.bytes().data(), matrix.bytes().size());
  compute::cuda::host::FirstNonFinite fresh(stream_);
  fail_allocation(1);
  try {
    fresh.begin(matrix.at(there.data()));
    ADD_FAILURE() << "nothing failed";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.status(), SHARDREC_OUT_OF_MEMORY);
  }
  fail_allocation(0);
  fresh.begin(matrix.at(there.data()));
  EXPECT_EQ(fresh.first(), 11);
}

// What was looked through by then is known without another wait.
TEST_F(NonFiniteSearchOnDevice, IsWaitedForOnceWithWhatIsBehindIt) {
  shardrec_cuda_calls before{};
  shardrec_cuda_calls after{};
  const Matrix matrix(kBits[0], {2, 8, 8});
  Array there(*this, matrix.bytes().data(), matrix.bytes().size());
  compute::cuda::host::FirstNonFinite later(stream_);
  search_->begin(matrix.at(there.data()));
  later.begin(matrix.at(there.data()));
  EXPECT_EQ(later.first(), -1);
  compute::cuda::host::table().count_calls(&before);
  EXPECT_EQ(search_->first(), -1);
  compute::cuda::host::table().count_calls(&after);
  EXPECT_EQ(after.calls, before.calls);
}

}  // namespace
}  // namespace shardrec::test
