#include "core/exposition.h"

#include <array>
#include <charconv>

#include "core/error.h"

namespace shardrec::core {

void Exposition::family(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  text_ += sentence("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
}

void Exposition::sample(std::string_view labels, int64_t value) { line(labels, sentence(value)); }

void Exposition::sample(std::string_view labels, double value) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  line(labels, std::string_view(digits.data(), end.ptr));
}

void Exposition::line(std::string_view labels, std::string_view value) {
  text_ += name_;
  if (!labels.empty()) text_ += sentence("{", labels, "}");
  text_ += sentence(" ", value, "\n");
}

std::string label(std::string_view name, std::string_view value) {
  std::string out = sentence(name, "=\"");
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace shardrec::core
