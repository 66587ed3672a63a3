// Numbers to and from text by to_chars and from_chars.
#include "command/numbers.h"

#include <array>
#include <charconv>
#include <cmath>

namespace shardrec::cli {
namespace {

std::string to_text(double value, std::chars_format format, int digits) {
  std::array<char, 512> buffer;
  const auto result =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format, digits);
  return {buffer.data(), result.ptr};
}

template <typename T>
std::string shortest(T value) {
  std::array<char, 64> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

template <typename T>
std::optional<T> parse_whole(std::string_view text) {
  T value{};
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string fixed(double value, int digits) {
  return to_text(value, std::chars_format::fixed, digits);
}

std::string scientific(double value, int digits) {
  return to_text(value, std::chars_format::scientific, digits);
}

std::string number_text(double value) { return shortest(value); }
std::string number_text(float value) { return shortest(value); }

std::string with_separators(int64_t value) {
  std::string digits = std::to_string(value);
  const size_t start = value < 0 ? 1 : 0;
  for (size_t at = digits.size(); at > start + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string bytes_text(int64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  constexpr std::array kUnits{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t unit = 0;
  double value = static_cast<double>(bytes) / 1024;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fixed(value, value < 100 ? 1 : 0) + " " + kUnits[unit];
}

std::string quoted(std::string_view text) {
  constexpr size_t kShown = 40;
  return "'" + std::string(text.substr(0, kShown)) + (text.size() > kShown ? "...'" : "'");
}

std::optional<double> parse_real(std::string_view text) {
  const auto value = parse_whole<double>(text);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return value;
}

std::optional<int64_t> parse_integer(std::string_view text) { return parse_whole<int64_t>(text); }

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  size_t start = 0;
  for (;;) {
    const size_t end = text.find(separator, start);
    parts.push_back(text.substr(start, end == std::string_view::npos ? end : end - start));
    if (end == std::string_view::npos) return parts;
    start = end + 1;
  }
}

}  // namespace shardrec::cli
