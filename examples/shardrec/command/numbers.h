// Numbers to and from text, the same under every locale.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardrec::cli {

std::string fixed(double value, int digits);
std::string scientific(double value, int digits);
std::string number_text(double value);  // as few digits as read back to it; of a float, to that
std::string number_text(float value);
std::string with_separators(int64_t value);  // 1,234,567
std::string bytes_text(int64_t bytes);       // "12.3 MiB"
std::string quoted(std::string_view text);   // 'text', shortened

std::optional<double> parse_real(std::string_view text);  // the whole text, finite
std::optional<int64_t> parse_integer(std::string_view text);
std::vector<std::string_view> split(std::string_view text, char separator);

}  // namespace shardrec::cli
