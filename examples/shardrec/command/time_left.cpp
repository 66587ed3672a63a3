#include "command/time_left.h"

#include <cmath>
#include <cstdint>

namespace shardrec::cli {
namespace {

std::string two_digits(int64_t value) { return (value < 10 ? "0" : "") + std::to_string(value); }

}  // namespace

std::string TimeLeft::text(double fraction) const {
  const double passed = std::chrono::duration<double>(Clock::now() - begun_).count();
  if (passed < 0.1 || fraction <= first_ || fraction >= 1) return "";
  return "  " + clock_text(passed * (1 - fraction) / (fraction - first_)) + " left";
}

std::string clock_text(double seconds) {
  constexpr double kMost = 1e9;
  const auto whole = static_cast<int64_t>(std::ceil(std::fmin(seconds, kMost)));
  const int64_t minutes = whole / 60;
  const int64_t hours = minutes / 60;
  if (hours >= 48) return std::to_string(hours / 24) + " d " + std::to_string(hours % 24) + " h";
  if (hours > 0) {
    return std::to_string(hours) + ":" + two_digits(minutes % 60) + ":" + two_digits(whole % 60);
  }
  return std::to_string(minutes) + ":" + two_digits(whole % 60);
}

}  // namespace shardrec::cli
