// What copies of rows have gained, added to the rows: against numbers that are computed one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "compute/backend.h"
#include "compute/cpu/backend.h"
#include "compute/cpu/kernels/dispatch.h"
#include "jobs.h"

namespace shardrec::compute {
namespace {

class RowGainsOnCpu : public ::testing::TestWithParam<int> {
 protected:
  static std::vector<std::byte> stored(const std::vector<float>& floats, Element element) {
    std::vector<std::byte> out(floats.size() * element_bytes(element));
    if (element == Element::kFloat32) {
      std::memcpy(out.data(), floats.data(), out.size());
    } else {
      cpu_kernels().narrow(floats.data(), element, out.data(), std::ssize(floats));
    }
    return out;
  }
  static std::vector<float> widened(const std::vector<std::byte>& elements, Element element) {
    std::vector<float> out(elements.size() / element_bytes(element));
    if (element == Element::kFloat32) {
      std::memcpy(out.data(), elements.data(), elements.size());
    } else {
      cpu_kernels().widen(elements.data(), element, out.data(), std::ssize(out));
    }
    return out;
  }

  Random random_{11};
  core::Threads threads_{GetParam()};
  std::unique_ptr<Backend> backend_ = make_cpu_backend(cpu_kernels(), threads_);
};

TEST_P(RowGainsOnCpu, AreAddedToTheRowsThatNumbersNameAndToNothingElse) {
  for (const Element element : {Element::kFloat32, Element::kFloat16, Element::kBfloat16}) {
    for (const int64_t width : {1, 7, 300}) {
      for (const bool listed : {false, true}) {
        for (const bool at_least_zero : {false, true}) {
          const int64_t rows = 500;
          const int64_t stride = width + 3;
          std::vector<int64_t> numbers;
          for (int64_t r = 0; r < rows; r += 3) numbers.push_back(r);
          const int64_t count = listed ? std::ssize(numbers) : rows;
          const auto table_before = stored(
              numbers_of(random_, static_cast<size_t>(rows * stride), Numbers::kOrdinary), element);
          const auto numbers_in = static_cast<size_t>(count * width);
          auto before = stored(numbers_of(random_, numbers_in, Numbers::kOrdinary), element);
          const auto after = stored(numbers_of(random_, numbers_in, Numbers::kOrdinary), element);
          // Every other number of the rows is as it was when they were copied.
          const size_t size = element_bytes(element);
          const auto place = [&](int64_t i) {
            const int64_t row = listed ? numbers[static_cast<size_t>(i / width)] : i / width;
            return static_cast<size_t>(row * stride + i % width);
          };
          for (int64_t i = 0; i < count * width; i += 2) {
            std::memcpy(before.data() + static_cast<size_t>(i) * size,
                        table_before.data() + place(i) * size, size);
          }
          std::vector<std::byte> table = table_before;
          const RowGains gains{.rows = {table.data(), element, static_cast<size_t>(stride),
                                        listed ? numbers.data() : nullptr},
                               .before = before.data(),
                               .after = after.data(),
                               .count = count,
                               .width = width,
                               .at_least_zero = at_least_zero};
          backend_->transfer().add_gains({&gains, 1});
          std::vector<float> expected = widened(table_before, element);
          const std::vector<float> copies = widened(before, element);
          const std::vector<float> become = widened(after, element);
          for (int64_t i = 0; i < count * width; ++i) {
            float& x = expected[place(i)];
            const auto at = static_cast<size_t>(i);
            x = x == copies[at] ? become[at] : x + (become[at] - copies[at]);
            if (at_least_zero) x = std::max(x, 0.0F);
          }
          ASSERT_TRUE(table == stored(expected, element))
              << "width " << width << (listed ? ", listed" : "");
        }
      }
    }
  }
}

TEST_P(RowGainsOnCpu, KeepANanAndTakeItsMeanWhereItIsAsItWas) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> row = {nan, 2, 1e8F, 3};
  const std::vector<float> before = {nan, nan, 1e8F, 1};
  const std::vector<float> after = {1, 1, 1, nan};
  const RowGains gains{.rows = {row.data(), Element::kFloat32, 4},
                       .before = std::as_bytes(std::span(before)).data(),
                       .after = std::as_bytes(std::span(after)).data(),
                       .count = 1,
                       .width = 4,
                       .at_least_zero = true};
  backend_->transfer().add_gains({&gains, 1});
  EXPECT_TRUE(std::isnan(row[0]) && std::isnan(row[1]) && std::isnan(row[3]));
  EXPECT_EQ(row[2], 1);  // 1e8 + (1 - 1e8) would be 0
}

INSTANTIATE_TEST_SUITE_P(Threads, RowGainsOnCpu, ::testing::Values(1, 3));

}  // namespace
}  // namespace shardrec::compute
