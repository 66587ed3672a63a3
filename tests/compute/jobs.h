// Random jobs for the kernels, with the memory they point to, and the comparison of results.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "compute/kernels.h"

namespace shardrec::compute {

using Random = std::mt19937_64;

inline int64_t uniform(Random& random, int64_t low, int64_t high) {  // [low, high]
  return std::uniform_int_distribution<int64_t>(low, high)(random);
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

// Equal bits; any NaN equals any other (its payload is not promised).
inline bool same_bits(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

inline testing::AssertionResult same_bits(const std::vector<float>& a,
                                          const std::vector<float>& b) {
  if (a.size() != b.size()) return testing::AssertionFailure() << "sizes differ";
  for (size_t i = 0; i < a.size(); ++i) {
    if (!same_bits(a[i], b[i]))
      return testing::AssertionFailure() << "[" << i << "]: " << a[i] << ", " << b[i];
  }
  return testing::AssertionSuccess();
}

struct PooledShape {
  int64_t rows = 50;
  int64_t width = 8;
  int64_t bags = 20;
  int64_t longest = 6;  // ids in a bag
  size_t padding = 0;   // stride - width, of table and output
  bool is_64 = false;
  bool weighted = false;
  Numbers numbers = Numbers::kOrdinary;
};

class PooledJob {
 public:
  PooledJob(Random& random, const PooledShape& shape) : shape_(shape) {
    const size_t stride = static_cast<size_t>(shape.width) + shape.padding;
    table_ = numbers_of(random, static_cast<size_t>(shape.rows) * stride, shape.numbers);
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
        .stride = stride,
        .width = shape_.width,
        .ids = {.data = shape_.is_64 ? static_cast<const void*>(ids_64_.data()) : ids_32_.data(),
                .is_64 = shape_.is_64},
        .weights = shape_.weighted ? weights_.data() : nullptr,
        .offsets = offsets_.data(),
        .out = out.data(),
        .out_stride = stride};
  }

  const std::vector<int64_t>& ids() const { return ids_64_; }

  static constexpr float kUntouched = 12345.0F;

 private:
  PooledShape shape_;
  std::vector<float> table_;
  std::vector<int64_t> ids_64_;
  std::vector<int32_t> ids_32_;
  std::vector<float> weights_;
  std::vector<int64_t> offsets_;
};

struct UpdateShape {
  int64_t width = 8;
  int64_t unique = 20;
  int64_t longest = 4;  // occurrences of a row
  int64_t bags = 40;
  int64_t bags_per_block = 7;
  size_t padding = 0;
  bool weighted = false;
  int ranges = 1;      // statistics that the columns are cut into
  bool given = false;  // the sums of squares come from elsewhere
  Numbers numbers = Numbers::kOrdinary;
  OptimizerStep step;
};

// Table and state are what a kernel changes; each view() starts from the same ones.
class UpdateJob {
 public:
  UpdateJob(Random& random, const UpdateShape& shape) : shape_(shape) {
    stride_ = static_cast<size_t>(shape.width) + shape.padding;
    int64_t row = 0;
    run_.push_back(uniform(random, 0, 2));
    bag_of_.assign(static_cast<size_t>(run_.back()), 0);
    for (int64_t u = 0; u < shape.unique; ++u) {
      row += uniform(random, 1, 3);
      rows_.push_back(row);
      const int64_t occurrences = u == 0 ? shape.longest : uniform(random, 1, shape.longest);
      std::vector<uint32_t> bags;
      for (int64_t o = 0; o < occurrences; ++o) {
        bags.push_back(static_cast<uint32_t>(uniform(random, 0, shape.bags - 1)));
      }
      std::sort(bags.begin(), bags.end());
      bag_of_.insert(bag_of_.end(), bags.begin(), bags.end());
      run_.push_back(run_.back() + occurrences);
    }
    table_rows_ = row + 1;
    start_table_ = numbers_of(random, static_cast<size_t>(table_rows_) * stride_, shape.numbers);
    gradients_ = numbers_of(random, static_cast<size_t>(shape.bags * shape.width), shape.numbers);
    for (int64_t b = 0; b < shape.bags; ++b) {
      gradient_rows_.push_back(gradients_.data() + b * shape.width);
      blocks_.push_back(static_cast<uint32_t>(b / shape.bags_per_block));
    }
    if (shape.weighted) weights_ = numbers_of(random, bag_of_.size(), shape.numbers);
    const int ranges = shape.given ? 1 : shape.ranges;
    for (int s = 0; s < ranges; ++s) {
      columns_.push_back({shape.width * s / ranges, shape.width * (s + 1) / ranges});
      start_states_.push_back(numbers_of(random, static_cast<size_t>(table_rows_), shape.numbers));
      if (shape.numbers == Numbers::kOrdinary) {
        for (float& h : start_states_.back()) h = std::fabs(h);
      }
    }
    for (int64_t u = 0; u < shape.unique; ++u)
      square_sums_.push_back(std::fabs(number(random, shape.numbers)));
  }
  UpdateJob(const UpdateJob&) = delete;
  UpdateJob& operator=(const UpdateJob&) = delete;

  RowUpdate view() {
    table = start_table_;
    states = start_states_;
    state_pointers_.clear();
    for (std::vector<float>& state : states) state_pointers_.push_back(state.data());
    const bool adagrad = shape_.step.kind == OptimizerKind::kRowwiseAdagrad;
    return {.table = table.data(),
            .stride = stride_,
            .width = shape_.width,
            .rows = rows_.data(),
            .run = run_.data(),
            .bags = bag_of_.data(),
            .weights = shape_.weighted ? weights_.data() : nullptr,
            .gradients = gradient_rows_.data(),
            .blocks = blocks_.data(),
            .step = shape_.step,
            .state = adagrad ? state_pointers_.data() : nullptr,
            .columns = adagrad ? columns_.data() : nullptr,
            .statistics = adagrad ? static_cast<int>(columns_.size()) : 0,
            .sums = adagrad && shape_.given ? square_sums_.data() : nullptr,
            .statistic_columns = 2 * shape_.width + 3};
  }

  const std::vector<float>& start_table() const { return start_table_; }
  const std::vector<std::vector<float>>& start_states() const { return start_states_; }
  const std::vector<ColumnRange>& columns() const { return columns_; }
  int64_t unique() const { return shape_.unique; }

  std::vector<float> table;
  std::vector<std::vector<float>> states;

 private:
  UpdateShape shape_;
  size_t stride_ = 0;
  int64_t table_rows_ = 0;
  std::vector<int64_t> rows_;
  std::vector<int64_t> run_;
  std::vector<uint32_t> bag_of_;
  std::vector<uint32_t> blocks_;
  std::vector<float> weights_;
  std::vector<float> gradients_;
  std::vector<const float*> gradient_rows_;
  std::vector<ColumnRange> columns_;
  std::vector<float> square_sums_;
  std::vector<float> start_table_;
  std::vector<std::vector<float>> start_states_;
  std::vector<float*> state_pointers_;
};

inline std::vector<std::byte> row_scratch(int64_t width) {
  return std::vector<std::byte>(row_update_scratch_bytes(width));
}

inline const Kernels& scalar() { return cpu_kernels_at(0); }

}  // namespace shardrec::compute
