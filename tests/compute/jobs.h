// Random jobs for the kernels, with the memory they point to, and the comparison of results.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "compute/cpu/kernels/dispatch.h"
#include "compute/half_reference.h"
#include "compute/kernels.h"
#include "compute/profile/memory_profile.h"
#include "support/same_element.h"

namespace shardrec::compute {

using Random = std::mt19937_64;

inline int64_t uniform(Random& random, int64_t low, int64_t high) {  // [low, high]
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

// Any that a profile may ask for.
inline Prefetch random_prefetch(Random& random) {
  return {.hint = uniform(random, 0, 1) == 0 ? PrefetchHint::kT0 : PrefetchHint::kT1,
          .distance_rows = uniform(random, kLeastPrefetchDistance, kMostPrefetchDistance)};
}

// What the numbers of a job are like. kSpecial: subnormals, infinities, NaN and both zeros among
// them.
enum class Numbers : uint8_t { kOrdinary, kSpecial };

inline float number(Random& random, Numbers numbers) {
  const float ordinary = std::normal_distribution<float>(0, 1)(random);
  if (numbers == Numbers::kOrdinary) return ordinary;
  switch (uniform(random, 0, 11)) {
    case 0:
      return 0.0F;
    case 1:
      return -0.0F;
    case 2:
      return std::numeric_limits<float>::infinity();
    case 3:
      return -std::numeric_limits<float>::infinity();
    case 4:
      return std::numeric_limits<float>::quiet_NaN();
    case 5:
      return ordinary * 1e-40F;
    case 6:
      return ordinary * 1e38F;
    case 7:
      return ordinary * 1e-20F;
    default:
      return ordinary;
  }
}

inline std::vector<float> numbers_of(Random& random, size_t count, Numbers numbers) {
  std::vector<float> out(count);
  for (float& x : out) x = number(random, numbers);
  return out;
}

// Equal bits; any NaN equals any other.
inline bool same_bits(float a, float b) { return test::same_number(a, b); }

inline testing::AssertionResult same_bits(const std::vector<float>& a,
                                          const std::vector<float>& b) {
  if (a.size() != b.size()) return testing::AssertionFailure() << "sizes differ";
  for (size_t i = 0; i < a.size(); ++i) {
    if (!same_bits(a[i], b[i]))
      return testing::AssertionFailure() << "[" << i << "]: " << a[i] << ", " << b[i];
  }
  return testing::AssertionSuccess();
}

inline constexpr Element kElements[] = {Element::kFloat32, Element::kFloat16, Element::kBfloat16};

inline const char* name_of(Element element) {
  return element == Element::kFloat32 ? "fp32" : element == Element::kFloat16 ? "fp16" : "bf16";
}

// Numbers stored as one type of element.
class Elements {
 public:
  Elements() = default;
  Elements(Element element, const std::vector<float>& numbers) : element_(element) {
    if (element == Element::kFloat32) {
      floats_ = numbers;
    } else {
      for (const float x : numbers) halves_.push_back(nearest_half(element, x));
    }
  }

  void* data() {
    return element_ == Element::kFloat32 ? static_cast<void*>(floats_.data()) : halves_.data();
  }
  const void* data() const {
    return element_ == Element::kFloat32 ? static_cast<const void*>(floats_.data())
                                         : halves_.data();
  }
  size_t size() const { return element_ == Element::kFloat32 ? floats_.size() : halves_.size(); }
  float at(size_t i) const {
    return element_ == Element::kFloat32 ? floats_[i]
                                         : static_cast<float>(half_value(element_, halves_[i]));
  }
  // Of 16-bit elements.
  uint16_t half_at(size_t i) const { return halves_[i]; }
  std::vector<uint16_t>& halves() { return halves_; }

  friend bool same_bits(const Elements& a, const Elements& b) {
    const auto same_half = [&](uint16_t x, uint16_t y) {
      return test::bits_with_one_nan(a.element_, x) == test::bits_with_one_nan(a.element_, y);
    };
    return std::ranges::equal(a.halves_, b.halves_, same_half) &&
           static_cast<bool>(same_bits(a.floats_, b.floats_));
  }

 private:
  Element element_ = Element::kFloat32;
  std::vector<float> floats_;
  std::vector<uint16_t> halves_;
};

struct PooledShape {
  int64_t rows = 50;
  int64_t width = 8;
  int64_t bags = 20;
  int64_t longest = 6;  // ids in a bag
  size_t padding = 0;   // stride - width, of table and output
  bool is_64 = false;
  bool weighted = false;
  Element element = Element::kFloat32;
  Numbers numbers = Numbers::kOrdinary;
};

class PooledJob {
 public:
  PooledJob(Random& random, const PooledShape& shape) : shape_(shape) {
    const size_t stride = static_cast<size_t>(shape.width) + shape.padding;
    table_ = Elements(shape.element,
                      numbers_of(random, static_cast<size_t>(shape.rows) * stride, shape.numbers));
    offsets_.push_back(uniform(random, 0, 3));  // a cut of a longer list of ids
    for (int64_t b = 0; b < shape.bags; ++b) {
      offsets_.push_back(offsets_.back() + uniform(random, 0, shape.longest));
    }
    for (int64_t i = 0; i < offsets_.back(); ++i) {
      ids_64_.push_back(uniform(random, 0, shape.rows - 1));
      ids_32_.push_back(static_cast<int32_t>(ids_64_.back()));
    }
    if (shape.weighted) weights_ = numbers_of(random, ids_64_.size(), shape.numbers);
  }

  PooledLookup view(std::vector<float>& out) const {
    const size_t stride = static_cast<size_t>(shape_.width) + shape_.padding;
    out.assign(static_cast<size_t>(shape_.bags) * stride, kUntouched);
    return {
        .table = table_.data(),
        .element = shape_.element,
        .stride = stride,
        .width = shape_.width,
        .ids = {.data = shape_.is_64 ? static_cast<const void*>(ids_64_.data()) : ids_32_.data(),
                .is_64 = shape_.is_64},
        .weights = shape_.weighted ? weights_.data() : nullptr,
        .offsets = offsets_.data(),
        .out = out.data(),
        .out_stride = stride};
  }

  // Element i of the table.
  float at(size_t i) const { return table_.at(i); }
  const std::vector<int64_t>& ids() const { return ids_64_; }

  static constexpr float kUntouched = 12345.0F;

 private:
  PooledShape shape_;
  Elements table_;
  std::vector<int64_t> ids_64_;
  std::vector<int32_t> ids_32_;
  std::vector<float> weights_;
  std::vector<int64_t> offsets_;
};

// A pooled lookup of rows of 8-bit codes, each with its scale and offset.
class CodedJob {
 public:
  CodedJob(Random& random, const PooledShape& shape) : plain_(random, shape), shape_(shape) {
    const auto width = static_cast<size_t>(shape.width);
    stride_ = width + sizeof(RowScale) + shape.padding;
    table_.resize(static_cast<size_t>(shape.rows) * stride_);
    for (std::byte& byte : table_) byte = static_cast<std::byte>(uniform(random, 0, 255));
    for (size_t row = 0; row < static_cast<size_t>(shape.rows); ++row) {
      const RowScale scale{.scale = std::fabs(number(random, shape.numbers)),
                           .offset = number(random, shape.numbers)};
      std::memcpy(table_.data() + row * stride_ + width, &scale, sizeof scale);
    }
  }

  PooledLookup view(std::vector<float>& out) const {
    PooledLookup view = plain_.view(out);
    view.table = table_.data();
    view.coded = true;
    view.stride = stride_;
    return view;
  }
  double at(int64_t row, int64_t column) const {
    const std::byte* const from = table_.data() + static_cast<size_t>(row) * stride_;
    RowScale scale;
    std::memcpy(&scale, from + shape_.width, sizeof scale);
    return double{scale.scale} * std::to_integer<int>(from[column]) + double{scale.offset};
  }
  const std::vector<int64_t>& ids() const { return plain_.ids(); }
  std::span<const std::byte> table() const { return table_; }

 private:
  PooledJob plain_;
  PooledShape shape_;
  size_t stride_ = 0;  // bytes
  std::vector<std::byte> table_;
};

inline const Kernels& scalar() { return cpu_kernels_at(0); }

}  // namespace shardrec::compute
