// Matrices that the CPU and a device have, with the same numbers and the same gaps between rows. What the one's kernels
// and the other's write is compared bit for bit, gaps included.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "dense/device/kernels.h"
#include "dense/kernels.h"
#include "device/device_arrays.h"
#include "support/one_nan.h"

namespace shardrec::dense::device::test {

// How rows lie in memory: rows of `gap` numbers more than they have, from number `offset` on.
struct Layout {
  int64_t gap = 0;
  int64_t offset = 0;
};
// Without gaps; with gaps that allow vectors; with none of that.
inline constexpr std::array kLayouts = {Layout{}, Layout{.gap = 4, .offset = 8},
                                        Layout{.gap = 3, .offset = 1}};

struct Shape {
  int64_t rows = 0;
  int64_t cols = 0;
  Layout layout;
  bool special =
      false;  // NaN, infinities, zeros of both signs, and numbers that are not normal, among the others

  std::string text() const {
    return core::sentence(rows, " rows of ", cols, ", gap ", layout.gap, ", offset ", layout.offset,
                          special ? ", special numbers" : "");
  }
};

class OnDevice : public shardrec::test::DeviceTest {
 protected:
  class Both {
   public:
    Both(OnDevice& test, const Shape& shape, uint32_t seed) : test_(&test), shape_(shape) {
      const int64_t stride = shape.cols + shape.layout.gap;
      numbers_.resize(static_cast<size_t>(shape.rows * stride + shape.layout.offset));
      std::mt19937 random(seed);
      std::normal_distribution<float> normal;
      for (float& number : numbers_) number = normal(random);
      if (shape.special) add_special_numbers(random);
      array_ = std::make_unique<Array>(test, numbers_.data(), numbers_.size() * sizeof(float));
    }

    core::Matrix host() { return matrix(numbers_.data()); }
    core::Matrix there() { return matrix(static_cast<float*>(array_->data())); }

    // Is what the device wrote what the host wrote? `where` is said where it is not.
    void expect_same(const std::string& where) {
      const std::vector<float> found =
          test_->read(static_cast<const float*>(array_->data()), numbers_.size());
      for (size_t i = 0; i < found.size(); ++i) {
        if (shardrec::test::same_number(found[i], numbers_[i])) continue;
        ADD_FAILURE() << where << ", " << shape_.text() << ": number " << i << " is " << found[i]
                      << " on the device, " << numbers_[i] << " on the CPU";
        return;
      }
    }

   private:
    core::Matrix matrix(float* data) const {
      return {.data = data + shape_.layout.offset,
              .rows = shape_.rows,
              .cols = shape_.cols,
              .stride = shape_.cols + shape_.layout.gap};
    }
    // About one of 40 numbers, so that most rows and sums stay finite.
    void add_special_numbers(std::mt19937& random) {
      using Limits = std::numeric_limits<float>;
      constexpr std::array kSpecial = {0.0F,
                                       -0.0F,
                                       Limits::denorm_min(),
                                       -Limits::min() / 3,
                                       Limits::max(),
                                       Limits::infinity(),
                                       -Limits::infinity(),
                                       Limits::quiet_NaN()};
      for (size_t i = random() % 40; i < numbers_.size(); i += 1 + random() % 80) {
        numbers_[i] = kSpecial[random() % kSpecial.size()];
      }
    }

    OnDevice* test_;
    Shape shape_;
    std::vector<float> numbers_;
    std::unique_ptr<Array> array_;
  };

  // A word of the device.
  class Word {
   public:
    Word(OnDevice& test, uint32_t word) : array_(test, &kBefore, sizeof word) {
      store_word(*test.stream_, get(), word);
    }
    uint32_t* get() { return static_cast<uint32_t*>(array_.data()); }

   private:
    static constexpr uint32_t kBefore = 0x5A5A5A5A;
    Array array_;
  };

  Both both(const Shape& shape, uint32_t seed) { return {*this, shape, seed}; }
  // A vector, at any address.
  Both vector(const Shape& shape, uint32_t seed) {
    return {*this,
            {.rows = 1,
             .cols = shape.cols,
             .layout = {.offset = shape.layout.offset},
             .special = shape.special},
            seed};
  }
};

// Calls body(shape) for matrices of many shapes, each with one or two of the layouts.
template <class Body>
void for_each_shape(const Body& body) {
  size_t number = 0;
  for (const int64_t rows : {0, 1, 7, 17, 64, 65, 128, 129, 1000}) {
    for (const int64_t cols : {1, 3, 16, 17, 64, 130}) {
      const auto layout = [&] { return kLayouts[number % kLayouts.size()]; };
      body(Shape{.rows = rows, .cols = cols, .layout = layout()});
      ++number;
      if (rows < 1000) body(Shape{.rows = rows, .cols = cols, .layout = layout(), .special = true});
    }
    ++number;
  }
}

}  // namespace shardrec::dense::device::test
