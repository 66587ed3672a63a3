// The exponential and the logarithm of the loss against those of long double.
#include "compute/math/logistic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace shardrec::compute::math {
namespace {

static_assert(std::numeric_limits<long double>::digits > std::numeric_limits<double>::digits);

// The distance of two neighbouring doubles at a number.
double unit_in_last_place(long double number) {
  const auto at = static_cast<double>(number);
  return std::nextafter(at, std::numeric_limits<double>::infinity()) - at;
}

double error_in_units(double found, long double expected) {
  return std::fabs(static_cast<double>((static_cast<long double>(found) - expected) /
                                       static_cast<long double>(unit_in_last_place(expected))));
}

TEST(Logistic, ExponentialsAndLogarithmsAreOffByLessThanAUnitInTheLastPlace) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> uniform(0, 1);
  double worst_exponential = 0, worst_logarithm = 0;
  for (int i = 0; i < 600000; ++i) {
    const double u = uniform(random);
    double x = -u * 745;  // down to the smallest numbers
    if (i % 3 == 1) x = -u * 2;
    if (i % 3 == 2) x = -std::ldexp(u, -static_cast<int>(random() % 60));
    worst_exponential = std::max(
        worst_exponential, error_in_units(exp_of_negative(x), expl(static_cast<long double>(x))));
    const double e = i % 2 == 0 ? u : std::ldexp(u, -static_cast<int>(random() % 1000));
    worst_logarithm =
        std::max(worst_logarithm, error_in_units(log1p_of(e), log1pl(static_cast<long double>(e))));
  }
  EXPECT_LT(worst_exponential, 1);
  EXPECT_LT(worst_logarithm, 1);
  EXPECT_GT(worst_exponential, 0.5);  // the numbers that were drawn are no easy ones
  EXPECT_GT(worst_logarithm, 0.5);
}

TEST(Logistic, BordersAreExact) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(exp_of_negative(0), 1);
  EXPECT_EQ(exp_of_negative(-0.0), 1);
  EXPECT_EQ(exp_of_negative(-0x1p-1074), 1);
  EXPECT_EQ(exp_of_negative(-745.1), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(exp_of_negative(-745.2), 0);
  EXPECT_EQ(exp_of_negative(-746.5), 0);
  EXPECT_EQ(exp_of_negative(-infinity), 0);
  EXPECT_TRUE(std::isnan(exp_of_negative(nan)));
  EXPECT_EQ(log1p_of(0), 0);
  EXPECT_EQ(log1p_of(0x1p-1074), 0x1p-1074);
  EXPECT_EQ(log1p_of(1), 0x1.62e42fefa39efp-1);
  EXPECT_EQ(log1p_of(0.5), 0x1.9f323ecbf984cp-2);
  EXPECT_TRUE(std::isnan(log1p_of(nan)));
}

}  // namespace
}  // namespace shardrec::compute::math
