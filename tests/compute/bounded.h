// A number computed in double, with a bound on how far the same computation in fp32 may end up:
// each operation hands on the errors of its operands and adds one rounding.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace shardrec::compute {

struct Bounded {
  Bounded(double exact, double bound = 0) : value(exact), error(bound) {}

  static Bounded rounded(double value, double error) {
    constexpr double kUnit = 0x1p-24;
    constexpr double kLeast = 0x1p-149;
    return {value, 1.01 * error + 1.01 * kUnit * std::fabs(value) + kLeast};
  }

  friend Bounded operator+(Bounded a, Bounded b) {
    return rounded(a.value + b.value, a.error + b.error);
  }
  friend Bounded operator-(Bounded a, Bounded b) {
    return rounded(a.value - b.value, a.error + b.error);
  }
  friend Bounded operator*(Bounded a, Bounded b) {
    return rounded(a.value * b.value,
                   std::fabs(a.value) * b.error + std::fabs(b.value) * a.error + a.error * b.error);
  }
  friend Bounded operator/(Bounded a, Bounded b) {
    const double quotient = a.value / b.value;
    const double least = std::fabs(b.value) - b.error;
    if (least <= 0) return {quotient, std::numeric_limits<double>::infinity()};
    return rounded(quotient, (a.error + std::fabs(quotient) * b.error) / least);
  }
  friend Bounded sqrt(Bounded a) {
    const double root = std::sqrt(a.value);
    return rounded(root, std::max(root - std::sqrt(std::max(a.value - a.error, 0.0)),
                                  std::sqrt(a.value + a.error) - root));
  }

  bool holds(double actual) const { return std::fabs(actual - value) <= error; }

  double value;
  double error;
};

}  // namespace shardrec::compute
