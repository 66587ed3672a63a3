// Random row updates with the memory they point to.
#pragma once

#include <cmath>
#include <string>

#include "compute/jobs.h"

namespace shardrec::compute {

inline OptimizerStep step_of(OptimizerKind kind, WeightDecay mode) {
  return {.kind = kind,
          .decay_mode = mode,
          .learning_rate = 0.05F,
          .eps = 1e-8F,
          .weight_decay = 0.3F,
          .beta1 = 0.9F,
          .beta2 = 0.999F,
          .one_minus_beta1 = 0.1F,
          .one_minus_beta2 = 0.001F,
          .bias1 = 1.4F,
          .bias2 = 7.5F,
          .momentum = 0.8F,
          .eta = 0.7F};
}

// Every optimizer with every weight decay that it accepts.
inline std::vector<OptimizerStep> all_steps() {
  std::vector<OptimizerStep> steps;
  for (size_t kind = 0; kind < kOptimizerKinds; ++kind) {
    for (const WeightDecay mode : {WeightDecay::kNone, WeightDecay::kL2, WeightDecay::kDecouple}) {
      const auto optimizer = static_cast<OptimizerKind>(kind);
      if (accepts(optimizer, mode)) steps.push_back(step_of(optimizer, mode));
    }
  }
  return steps;
}

inline std::string name_of(const OptimizerStep& step) {
  constexpr const char* kKinds[] = {"SGD",          "AdaGrad", "row-wise AdaGrad", "Adam",
                                    "partial Adam", "LAMB",    "partial LAMB",     "LARS"};
  constexpr const char* kModes[] = {"", " with L2", " decoupled"};
  return std::string(kKinds[static_cast<size_t>(step.kind)]) +
         kModes[static_cast<size_t>(step.decay_mode)];
}

struct UpdateShape {
  int64_t width = 8;
  int64_t unique = 20;
  int64_t longest = 4;  // occurrences of a row
  int64_t bags = 40;
  int64_t bags_per_block = 7;
  int64_t block_step = 1;  // between the numbers of neighbouring blocks
  size_t padding = 0;
  bool weighted = false;
  Element element = Element::kFloat32;
  bool stochastic = false;
  int ranges = 1;      // that the columns are cut into for the sums
  bool given = false;  // the sums come from elsewhere
  int maps = 0;        // pieces that the columns have in the table
  Numbers numbers = Numbers::kOrdinary;
  OptimizerStep step;
};

inline UpdateShape random_shape(Random& random, int64_t width, const OptimizerStep& step,
                                Numbers numbers) {
  const auto most = static_cast<int>(std::min<int64_t>(width, 4));
  return {.width = width,
          .unique = uniform(random, 1, 12),
          .longest = uniform(random, 1, 9),
          .bags = uniform(random, 1, 40),
          .bags_per_block = uniform(random, 1, 9),
          .padding = static_cast<size_t>(uniform(random, 0, 5)),
          .weighted = uniform(random, 0, 1) == 1,
          .element = kElements[uniform(random, 0, 2)],
          .stochastic = uniform(random, 0, 1) == 1,
          .ranges = static_cast<int>(uniform(random, 1, most)),
          .given = uniform(random, 0, 3) == 0,
          .maps = static_cast<int>(uniform(random, 0, most)),
          .numbers = numbers,
          .step = step};
}

// What a row update changes.
struct Tensors {
  Elements table;
  std::vector<std::vector<float>> matrices;
  std::vector<std::vector<float>> states;

  friend testing::AssertionResult same_bits(const Tensors& a, const Tensors& b) {
    if (!same_bits(a.table, b.table)) return testing::AssertionFailure() << "tables differ";
    for (size_t i = 0; i < a.matrices.size(); ++i) {
      if (!same_bits(a.matrices[i], b.matrices[i])) {
        return testing::AssertionFailure() << "matrices " << i << " differ";
      }
    }
    for (size_t i = 0; i < a.states.size(); ++i) {
      if (!same_bits(a.states[i], b.states[i])) {
        return testing::AssertionFailure() << "states " << i << " differ";
      }
    }
    return testing::AssertionSuccess();
  }
};

// Each view() starts from the same tensors, in `now`.
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
    const auto rows = static_cast<size_t>(row + 1);
    const auto width = static_cast<size_t>(shape.width);
    start_.table = Elements(shape.element, numbers_of(random, rows * stride_, shape.numbers));
    gradients_ = numbers_of(random, static_cast<size_t>(shape.bags) * width, shape.numbers);
    for (int64_t b = 0; b < shape.bags; ++b) {
      gradient_rows_.push_back(gradients_.data() + b * shape.width);
      blocks_.push_back(static_cast<uint32_t>(b / shape.bags_per_block * shape.block_step));
    }
    if (shape.weighted) weights_ = numbers_of(random, bag_of_.size(), shape.numbers);
    const StateNeeds needs = state_needs(shape.step.kind);
    for (int m = 0; m < needs.matrices; ++m) {
      // The first matrix of a pair, and a momentum, may be negative; sums of squares are not.
      const bool moment = shape.step.kind != OptimizerKind::kAdagrad && m == 0;
      start_.matrices.push_back(state_of(random, rows * width, moment));
    }
    const int ranges = shape.given ? 1 : shape.ranges;
    for (int s = 0; s < ranges; ++s) {
      columns_.push_back({shape.width * s / ranges, shape.width * (s + 1) / ranges});
      for (int v = 0; v < needs.row_values; ++v) {
        start_.states.push_back(state_of(random, rows, false));
      }
    }
    sums_ = state_of(random, static_cast<size_t>(shape.unique * needs.sums), false);
    int64_t column = uniform(random, 0, 9);
    for (int m = 0; m < shape.maps; ++m) {
      const int64_t offset = shape.width * m / shape.maps;
      const int64_t count = shape.width * (m + 1) / shape.maps - offset;
      maps_.push_back({offset, column, count});
      column += count + uniform(random, 0, 9);
    }
    rounding_ = {shape.stochastic, random(), random(), random()};
    first_row_ = uniform(random, 0, int64_t{1} << 34);
  }
  UpdateJob(const UpdateJob&) = delete;
  UpdateJob& operator=(const UpdateJob&) = delete;

  RowUpdate view() {
    now = start_;
    matrix_pointers_.clear();
    state_pointers_.clear();
    for (std::vector<float>& matrix : now.matrices) matrix_pointers_.push_back(matrix.data());
    for (std::vector<float>& state : now.states) state_pointers_.push_back(state.data());
    const bool sums = state_needs(shape_.step.kind).sums > 0;
    return {.table = now.table.data(),
            .element = shape_.element,
            .stride = stride_,
            .width = shape_.width,
            .rows = rows_.data(),
            .run = run_.data(),
            .bags = bag_of_.data(),
            .weights = shape_.weighted ? weights_.data() : nullptr,
            .gradients = gradient_rows_.data(),
            .blocks = blocks_.data(),
            .gradient_scale = std::ldexp(1.0F, static_cast<int>(-(shape_.unique % 3))),
            .step = shape_.step,
            .rounding = rounding_,
            .first_row = first_row_,
            .column_map = maps_.data(),
            .column_maps = static_cast<int>(maps_.size()),
            .matrices = matrix_pointers_.data(),
            .state = state_pointers_.data(),
            .columns = sums ? columns_.data() : nullptr,
            .statistics = sums ? static_cast<int>(columns_.size()) : 0,
            .sums = sums && shape_.given ? sums_.data() : nullptr,
            .statistic_columns = 2 * shape_.width + 3};
  }

  const Tensors& start() const { return start_; }
  // Element of the table as it was or is.
  float before(size_t row, int64_t column) const { return start_.table.at(at(row, column)); }
  float after(size_t row, int64_t column) const { return now.table.at(at(row, column)); }
  size_t at(size_t row, int64_t column) const {
    return row * stride_ + static_cast<size_t>(column);
  }
  const std::vector<ColumnRange>& columns() const { return columns_; }
  int64_t unique() const { return shape_.unique; }

  Tensors now;

 private:
  std::vector<float> state_of(Random& random, size_t count, bool may_be_negative) const {
    std::vector<float> state = numbers_of(random, count, shape_.numbers);
    if (shape_.numbers == Numbers::kOrdinary && !may_be_negative) {
      for (float& h : state) h = std::fabs(h);
    }
    return state;
  }

  UpdateShape shape_;
  size_t stride_ = 0;
  std::vector<int64_t> rows_;
  std::vector<int64_t> run_;
  std::vector<uint32_t> bag_of_;
  std::vector<uint32_t> blocks_;
  std::vector<float> weights_;
  std::vector<float> gradients_;
  std::vector<const float*> gradient_rows_;
  std::vector<ColumnRange> columns_;
  std::vector<float> sums_;
  std::vector<ColumnMap> maps_;
  Rounding rounding_;
  int64_t first_row_ = 0;
  Tensors start_;
  std::vector<float*> matrix_pointers_;
  std::vector<float*> state_pointers_;
};

inline std::vector<std::byte> row_scratch(int64_t width) {
  return std::vector<std::byte>(row_update_scratch_bytes(width));
}

}  // namespace shardrec::compute
