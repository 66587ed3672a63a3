#include "report/figures.h"

#include <cmath>
#include <cstdint>

#include "command/markup.h"
#include "command/numbers.h"

namespace shardrec::cli {
namespace {

// Four digits that count, and no power of ten where it can be avoided.
std::string four_digits(double value) {
  const double size = std::abs(value);
  if (size == 0) return "0";
  if (size < 1e-4) return scientific(value, 3);
  if (size >= 9999.5) return with_separators(static_cast<int64_t>(std::llround(value)));
  const int digits = 3 - static_cast<int>(std::floor(std::log10(size)));
  return fixed(value, digits < 0 ? 0 : digits);
}

// Times stand below each other: short ones have as many digits behind the point.
std::string short_time(double value, double limit, int digits) {
  return std::abs(value) < limit ? fixed(value, digits) : four_digits(value);
}

}  // namespace

std::string shown(double value, Unit unit) {
  if (!std::isfinite(value)) return value != value ? "NaN" : value > 0 ? "inf" : "-inf";
  switch (unit) {
    case Unit::kCount:
      if (std::abs(value) > 9e15) return scientific(value, 3);
      if (value == std::floor(value)) return with_separators(static_cast<int64_t>(value));
      return four_digits(value);
    case Unit::kQuality:
      return fixed(value, 5);
    case Unit::kSeconds:
      return short_time(value, 1, 4) + " s";
    case Unit::kMilliseconds:
      return short_time(value, 0.1, 5) + " ms";
    case Unit::kBytes:
      return bytes_text(static_cast<int64_t>(value));
    case Unit::kBandwidth:
      return four_digits(value) + " GB/s";
    case Unit::kPercent:
      return fixed(100 * value, 1) + " %";
    case Unit::kNumber:
    case Unit::kText:
      break;
  }
  return four_digits(value);
}

std::string shown_precisely(double value, Unit unit) {
  const bool is_time = unit == Unit::kSeconds || unit == Unit::kMilliseconds;
  if (!is_time || !std::isfinite(value)) return shown(value, unit);
  return four_digits(value) + (unit == Unit::kSeconds ? " s" : " ms");
}

std::string shown(const nlohmann::json& value, Unit unit) {
  if (value.is_null()) return "–";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (!value.is_number()) return value.dump();
  return unit == Unit::kText ? value.dump() : shown(value.get<double>(), unit);
}

std::string Figures::element(const std::string& pointer, Unit unit) const {
  const nlohmann::json& value = at(pointer);
  const std::string exact = value.is_string() ? value.get<std::string>() : value.dump();
  return "<data data-json=\"" + escaped(pointer) + "\" value=\"" + escaped(exact) + "\">" +
         escaped(shown(value, unit)) + "</data>";
}

}  // namespace shardrec::cli
