// A stack of layers in each precision, written from capi's layers.h, between bounds: what any order of float32 sums
// inside a product may give. Numbers are intervals in double. Rounding is monotonic, so that a rounded interval is that
// of its rounded ends: most numbers that are rounded to 16 bits have one value only.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "dense/layer_reference.h"
#include "dense/layers/mlp.h"

namespace shardrec::dense::test {

struct Interval {
  double low = 0;
  double high = 0;

  Interval() = default;
  Interval(double number) : low(number), high(number) {}  // NOLINT(google-explicit-constructor)
  Interval(double least, double most) : low(least), high(most) {}

  bool has(double number) const { return number >= low && number <= high; }
  double most() const { return std::max(std::fabs(low), std::fabs(high)); }
};

inline Interval operator+(const Interval& x, const Interval& y) {
  return {x.low + y.low, x.high + y.high};
}
inline Interval operator-(const Interval& x, const Interval& y) {
  return {x.low - y.high, x.high - y.low};
}
inline Interval operator*(const Interval& x, const Interval& y) {
  const auto [low, high] =
      std::minmax({x.low * y.low, x.low * y.high, x.high * y.low, x.high * y.high});
  return {low, high};
}
// y is positive.
inline Interval operator/(const Interval& x, const Interval& y) {
  return x * Interval(1 / y.high, 1 / y.low);
}
inline Interval widened(const Interval& x, double by) { return {x.low - by, x.high + by}; }
inline Interval root(const Interval& x) { return {std::sqrt(x.low), std::sqrt(x.high)}; }
inline Interval square(const Interval& x) {
  const double least = x.has(0) ? 0 : std::min(std::fabs(x.low), std::fabs(x.high));
  return {least * least, x.most() * x.most()};
}

// The float that an operation gives whose exact result is in x.
inline Interval single(const Interval& x) {
  constexpr double kDouble = 0x1p-50;  // of the operations on the ends
  return {static_cast<float>(x.low - kDouble * std::fabs(x.low)),
          static_cast<float>(x.high + kDouble * std::fabs(x.high))};
}

// To nearest, ties to even, among numbers with so many bits of mantissa that are multiples of 2^last.
inline double nearest(double x, int bits, int last) {
  if (x == 0) return x;
  int exponent = 0;
  (void)std::frexp(x, &exponent);
  const int place = std::max(exponent - bits, last);
  return std::ldexp(std::nearbyint(std::ldexp(x, -place)), place);
}
inline double nearest_bfloat16(double x) { return nearest(x, 8, -133); }
inline double nearest_float16(double x) {
  const double rounded = nearest(x, 11, -24);
  return std::fabs(rounded) < 0x1p16 ? rounded : std::copysign(INFINITY, x);
}

// A sum of floats in any order, fused or not (Higham, Accuracy and Stability, 2002, 3.1).
class FloatSum {
 public:
  void add(const Interval& term) {
    sum_ = sum_ + term;
    magnitude_ += term.most();
    ++terms_;
  }
  Interval value() const {
    constexpr double kUnit = 0x1p-24;
    const double steps = terms_ + 1;  // and the rounding of each product
    return widened(sum_, (steps * kUnit / (1 - steps * kUnit) + 0x1p-40) * magnitude_);
  }

 private:
  Interval sum_;
  double magnitude_ = 0;
  int terms_ = 0;
};

struct IntervalMatrix {
  IntervalMatrix() = default;
  IntervalMatrix(int64_t its_rows, int64_t its_cols)
      : rows(its_rows), cols(its_cols), numbers(static_cast<size_t>(its_rows * its_cols)) {}

  Interval& at(int64_t r, int64_t c) { return numbers[static_cast<size_t>(r * cols + c)]; }
  const Interval& at(int64_t r, int64_t c) const {
    return numbers[static_cast<size_t>(r * cols + c)];
  }

  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<Interval> numbers;
};

class PrecisionReference {
 public:
  // The parameters as `mlp` has them in the host's memory. scale: of gradients, a power of two.
  PrecisionReference(const Mlp& mlp, Precision precision, double scale = 1)
      : precision_(precision), scale_(scale), shapes_(mlp.shapes()), inputs_(mlp.inputs()) {
    for (const ParameterInfo& info : mlp.parameters().infos()) {
      const float* from = mlp.parameters().values(info.offset);
      const int64_t cols = info.shape.size() > 1 ? info.shape[1] : info.size;
      IntervalMatrix values(info.size / cols, cols);
      std::copy_n(from, info.size, values.numbers.begin());
      if (info.shape.size() > 1) keep(values, true);
      values_[info.name] = values;
    }
  }

  // Dropout as ReferenceStack has it.
  void run(Rows& input, Rows& output_gradient, const ReferenceStack::Dropout& dropout) {
    dropout_ = dropout;
    xs_ = {matrix(input)};
    keep(xs_[0], true);
    layers_.assign(shapes_.size(), {});
    for (size_t l = 0; l < shapes_.size(); ++l) {
      const bool goes_on = l > 0 && is_cross(l) && is_cross(l - 1);
      layers_[l].run = goes_on ? layers_[l - 1].run : l;
      xs_.push_back(forward(l));
    }
    IntervalMatrix gradient = matrix(output_gradient);
    multiply(gradient, scale_);
    keep(gradient, true);
    for (size_t l = shapes_.size(); l-- > 0;) gradient = backward(l, gradient);
    dx = gradient;
    multiply(dx, 1 / scale_);
    for (auto& [name, of_parameter] : gradients) multiply(of_parameter, 1 / scale_);
  }

  const IntervalMatrix& output() const { return xs_.back(); }
  IntervalMatrix dx;
  std::map<std::string, IntervalMatrix> gradients;  // by name

 private:
  struct OfLayer {
    size_t run = 0;
    IntervalMatrix product, low, origin_gradient, mean, scale;
  };

  static IntervalMatrix matrix(Rows& rows) {
    IntervalMatrix out(rows.rows(), rows.cols());
    for (int64_t r = 0; r < rows.rows(); ++r) {
      for (int64_t c = 0; c < rows.cols(); ++c) out.at(r, c) = rows.at(r, c);
    }
    return out;
  }
  bool is_cross(size_t l) const { return shapes_[l].kind == SHARDREC_LAYER_CROSS; }
  static void multiply(IntervalMatrix& x, double factor) {
    for (Interval& number : x.numbers) number = number * Interval(factor);
  }
  void keep(IntervalMatrix& x, bool wanted) const {
    if (element_of(precision_) == compute::Element::kFloat32 || !wanted) return;
    const auto round = precision_ == Precision::kFloat16 ? nearest_float16 : nearest_bfloat16;
    for (Interval& number : x.numbers) number = {round(number.low), round(number.high)};
  }
  IntervalMatrix& value(size_t l, const char* name) {
    return values_.at("layer." + std::to_string(l) + "." + name);
  }
  IntervalMatrix& gradient(size_t l, const char* name) {
    return gradients["layer." + std::to_string(l) + "." + name];
  }

  // A factor of a product: to nearest, or cut off, with 10 bits behind the first.
  Interval factor(const Interval& x) const {
    return precision_ == Precision::kTfloat32 ? widened(x, x.most() * 0x1p-10) : x;
  }
  // out[i][j] = sum over k of a(i, k) b(k, j)
  template <class A, class B>
  IntervalMatrix product(int64_t rows, int64_t cols, int64_t depth, const A& a, const B& b) const {
    IntervalMatrix out(rows, cols);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < cols; ++j) {
        FloatSum sum;
        for (int64_t k = 0; k < depth; ++k) sum.add(factor(a(i, k)) * factor(b(k, j)));
        out.at(i, j) = sum.value();
      }
    }
    return out;
  }
  // x W^T, dz W and dz^T x.
  IntervalMatrix times(const IntervalMatrix& x, const IntervalMatrix& w) const {
    return product(
        x.rows, w.rows, x.cols, [&](int64_t i, int64_t k) { return x.at(i, k); },
        [&](int64_t k, int64_t j) { return w.at(j, k); });
  }
  IntervalMatrix times_back(const IntervalMatrix& dz, const IntervalMatrix& w) const {
    return product(
        dz.rows, w.cols, dz.cols, [&](int64_t i, int64_t k) { return dz.at(i, k); },
        [&](int64_t k, int64_t j) { return w.at(k, j); });
  }
  IntervalMatrix weight_gradient(const IntervalMatrix& dz, const IntervalMatrix& x) const {
    return product(
        dz.cols, x.cols, dz.rows, [&](int64_t i, int64_t k) { return dz.at(k, i); },
        [&](int64_t k, int64_t j) { return x.at(k, j); });
  }
  static IntervalMatrix column_sums(const IntervalMatrix& x) {
    IntervalMatrix sums(1, x.cols);
    for (int64_t c = 0; c < x.cols; ++c) {
      FloatSum sum;
      for (int64_t r = 0; r < x.rows; ++r) sum.add(x.at(r, c));
      sums.at(0, c) = sum.value();
    }
    return sums;
  }
  template <class Body>
  static IntervalMatrix each(const IntervalMatrix& like, const Body& body) {
    IntervalMatrix out(like.rows, like.cols);
    for (int64_t r = 0; r < like.rows; ++r) {
      for (int64_t c = 0; c < like.cols; ++c) out.at(r, c) = body(r, c);
    }
    return out;
  }
  Interval dropped(size_t l, const IntervalMatrix& x, int64_t r, int64_t c) const {
    if (dropout_.forward < 0) return x.at(r, c);
    const Dropped drops{dropout_.seed, static_cast<uint32_t>(l),
                        static_cast<uint32_t>(dropout_.forward), shapes_[l].rate};
    if (drops(static_cast<uint64_t>(r * x.cols + c))) return 0;
    return single(x.at(r, c) * Interval(static_cast<float>(1 / (1 - shapes_[l].rate))));
  }

  IntervalMatrix forward(size_t l) {
    const IntervalMatrix& x = xs_[l];
    const bool is_inner = l + 1 < shapes_.size();
    IntervalMatrix y;
    switch (shapes_[l].kind) {
      case SHARDREC_LAYER_CROSS:
        y = cross(l, x);
        break;
      case SHARDREC_LAYER_LAYER_NORM:
        y = norm(l, x);
        break;
      case SHARDREC_LAYER_DROPOUT:
        y = each(x, [&](int64_t r, int64_t c) { return dropped(l, x, r, c); });
        break;
      default:
        y = times(x, value(l, "weight"));
        keep(y, is_inner);
        y = each(y, [&](int64_t r, int64_t c) {
          const Interval sum = single(y.at(r, c) + value(l, "bias").at(0, c));
          if (shapes_[l].activation != SHARDREC_ACTIVATION_RELU) return sum;
          return Interval(std::max(sum.low, 0.0), std::max(sum.high, 0.0));
        });
    }
    keep(y, is_inner);
    return y;
  }

  IntervalMatrix cross(size_t l, const IntervalMatrix& x) {
    OfLayer& own = layers_[l];
    const IntervalMatrix& origin = xs_[own.run];
    if (shapes_[l].rank > 0) {
      own.low = times(x, value(l, "down"));
      keep(own.low, true);
    }
    own.product = times(shapes_[l].rank > 0 ? own.low : x, value(l, "weight"));
    keep(own.product, true);
    own.product = each(x, [&](int64_t r, int64_t c) {
      return single(own.product.at(r, c) + value(l, "bias").at(0, c));
    });
    const IntervalMatrix y = each(x, [&](int64_t r, int64_t c) {
      return single(single(origin.at(r, c) * own.product.at(r, c)) + x.at(r, c));
    });
    keep(own.product, true);
    return y;
  }

  IntervalMatrix norm(size_t l, const IntervalMatrix& x) {
    OfLayer& own = layers_[l];
    own.mean = own.scale = IntervalMatrix(x.rows, 1);
    const Interval count(static_cast<double>(x.cols));
    for (int64_t r = 0; r < x.rows; ++r) {
      FloatSum sum, squares;
      for (int64_t c = 0; c < x.cols; ++c) sum.add(x.at(r, c));
      own.mean.at(r, 0) = single(sum.value() / count);
      for (int64_t c = 0; c < x.cols; ++c) {
        squares.add(square(single(x.at(r, c) - own.mean.at(r, 0))));
      }
      Interval variance = single(squares.value() / count);
      variance.low = std::max(variance.low, 0.0);
      const Interval sum_with = single(variance + Interval(static_cast<float>(shapes_[l].epsilon)));
      own.scale.at(r, 0) = single(Interval(1) / single(root(sum_with)));
    }
    return each(x, [&](int64_t r, int64_t c) {
      const Interval weighted = single(normal(l, x, r, c) * value(l, "weight").at(0, c));
      return single(weighted + value(l, "bias").at(0, c));
    });
  }
  Interval normal(size_t l, const IntervalMatrix& x, int64_t r, int64_t c) const {
    return single(single(x.at(r, c) - layers_[l].mean.at(r, 0)) * layers_[l].scale.at(r, 0));
  }

  IntervalMatrix backward(size_t l, const IntervalMatrix& dy) {
    const IntervalMatrix& x = xs_[l];
    IntervalMatrix result;
    switch (shapes_[l].kind) {
      case SHARDREC_LAYER_CROSS:
        return cross_back(l, x, dy);
      case SHARDREC_LAYER_LAYER_NORM:
        result = norm_back(l, x, dy);
        break;
      case SHARDREC_LAYER_DROPOUT:
        result = each(dy, [&](int64_t r, int64_t c) { return dropped(l, dy, r, c); });
        break;
      default: {
        const IntervalMatrix& y = xs_[l + 1];
        const bool relu = shapes_[l].activation == SHARDREC_ACTIVATION_RELU;
        const IntervalMatrix dz = each(dy, [&](int64_t r, int64_t c) {
          const Interval &at = y.at(r, c), &d = dy.at(r, c);
          if (!relu || at.low > 0) return d;
          if (at.high <= 0) return Interval();
          return Interval(std::min(d.low, 0.0), std::max(d.high, 0.0));
        });
        gradient(l, "bias") = column_sums(dz);
        gradient(l, "weight") = weight_gradient(dz, x);
        result = times_back(dz, value(l, "weight"));
      }
    }
    keep(result, l > 0);
    return result;
  }

  IntervalMatrix cross_back(size_t l, const IntervalMatrix& x, const IntervalMatrix& dy) {
    OfLayer& own = layers_[l];
    const IntervalMatrix& origin = xs_[own.run];
    IntervalMatrix dz =
        each(dy, [&](int64_t r, int64_t c) { return single(dy.at(r, c) * origin.at(r, c)); });
    keep(dz, true);
    IntervalMatrix& to_origin = layers_[own.run].origin_gradient;
    const bool starts = to_origin.numbers.empty();
    to_origin = each(dy, [&](int64_t r, int64_t c) {
      const Interval part = single(dy.at(r, c) * own.product.at(r, c));
      return starts ? part : single(to_origin.at(r, c) + part);
    });
    gradient(l, "bias") = column_sums(dz);
    const bool is_low = shapes_[l].rank > 0;
    IntervalMatrix factor = dz;
    if (is_low) {
      gradient(l, "weight") = weight_gradient(dz, own.low);
      factor = times_back(dz, value(l, "weight"));
      keep(factor, true);
    }
    gradient(l, is_low ? "down" : "weight") = weight_gradient(factor, x);
    IntervalMatrix result = times_back(factor, value(l, is_low ? "down" : "weight"));
    keep(result, l > 0);
    add(result, dy, l > 0);
    if (own.run == l) add(result, to_origin, l > 0);
    return result;
  }
  void add(IntervalMatrix& sum, const IntervalMatrix& x, bool is_inner) const {
    for (size_t i = 0; i < x.numbers.size(); ++i) {
      sum.numbers[i] = single(sum.numbers[i] + x.numbers[i]);
    }
    keep(sum, is_inner);
  }

  IntervalMatrix norm_back(size_t l, const IntervalMatrix& x, const IntervalMatrix& dy) {
    const Interval count(static_cast<double>(x.cols));
    const IntervalMatrix h = each(x, [&](int64_t r, int64_t c) { return normal(l, x, r, c); });
    gradient(l, "bias") = column_sums(dy);
    gradient(l, "weight") =
        column_sums(each(x, [&](int64_t r, int64_t c) { return dy.at(r, c) * h.at(r, c); }));
    const IntervalMatrix g = each(
        x, [&](int64_t r, int64_t c) { return single(dy.at(r, c) * value(l, "weight").at(0, c)); });
    IntervalMatrix out(x.rows, x.cols);
    for (int64_t r = 0; r < x.rows; ++r) {
      FloatSum sum, products;
      for (int64_t c = 0; c < x.cols; ++c) {
        sum.add(g.at(r, c));
        products.add(g.at(r, c) * h.at(r, c));
      }
      const Interval a = single(sum.value() / count), b = single(products.value() / count);
      for (int64_t c = 0; c < x.cols; ++c) {
        out.at(r, c) = single(single(single(g.at(r, c) - a) - single(h.at(r, c) * b)) *
                              layers_[l].scale.at(r, 0));
      }
    }
    return out;
  }

  Precision precision_;
  double scale_;
  std::vector<LayerShape> shapes_;
  int64_t inputs_;
  std::map<std::string, IntervalMatrix> values_;
  ReferenceStack::Dropout dropout_;
  std::vector<IntervalMatrix> xs_;  // of all layers; [0] is the input
  std::vector<OfLayer> layers_;
};

// How many of the numbers are not in their intervals.
inline int64_t outside(std::span<const float> values, const IntervalMatrix& bounds) {
  int64_t count = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!bounds.numbers[i].has(values[i])) ++count;
  }
  return count;
}

inline void expect_inside(std::span<const float> values, const IntervalMatrix& bounds,
                          const std::string& what) {
  ASSERT_EQ(values.size(), bounds.numbers.size()) << what;
  for (size_t i = 0; i < values.size(); ++i) {
    const Interval& bound = bounds.numbers[i];
    ASSERT_TRUE(bound.has(values[i])) << what << " element " << i << " is " << values[i]
                                      << ", not from " << bound.low << " to " << bound.high;
  }
}

}  // namespace shardrec::dense::test
