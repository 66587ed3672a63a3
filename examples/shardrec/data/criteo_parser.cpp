// One line of Criteo's format into a sample: separators, logarithms, hashed ids.
#include "data/criteo_parser.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "command/numbers.h"
#include "command/user_error.h"
#include "data/hash_number.h"

namespace shardrec::cli {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

std::optional<uint64_t> parse_hex(std::string_view text) {
  uint64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string quoted(std::string_view text) {
  constexpr size_t kShown = 40;
  return "'" + std::string(text.substr(0, kShown)) + (text.size() > kShown ? "...'" : "'");
}

}  // namespace

CriteoLayout criteo_layout(const std::string& path, std::string_view first_line) {
  CriteoLayout layout;
  layout.separator = first_line.find('\t') != std::string_view::npos ? '\t' : ',';
  std::vector<std::string> names;
  for (const std::string_view field : split(first_line, layout.separator))
    names.push_back(lower(field));

  layout.header = std::find(names.begin(), names.end(), "label") != names.end();
  if (!layout.header && layout.separator == '\t') {
    for (size_t i = 0; i < kCriteoDense; ++i) layout.dense.push_back(1 + i);
    for (size_t i = 0; i < kCriteoIds; ++i) layout.ids.push_back(1 + kCriteoDense + i);
    return layout;
  }
  const auto find = [&](const std::string& name) {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end()) {
      throw UserError(path + " has no column '" + name +
                      "'. Accepted: tab-separated label, I1..I13, C1..C26 without a header, or a "
                      "header that names Label, I1..I13, C1..C26.");
    }
    return static_cast<size_t>(at - names.begin());
  };
  layout.fields = names.size();
  layout.label = find("label");
  for (int i = 1; i <= kCriteoDense; ++i) layout.dense.push_back(find("i" + std::to_string(i)));
  for (int i = 1; i <= kCriteoIds; ++i) layout.ids.push_back(find("c" + std::to_string(i)));
  return layout;
}

CriteoParser::CriteoParser(CriteoLayout layout, Schema schema)
    : layout_(std::move(layout)), schema_(std::move(schema)), fields_(layout_.fields) {}

bool CriteoParser::cut(std::string_view line) {
  size_t start = 0;
  for (size_t f = 0; f < layout_.fields; ++f) {
    const size_t end = line.find(layout_.separator, start);
    if ((end == std::string_view::npos) != (f + 1 == layout_.fields)) return false;
    fields_[f] = line.substr(start, end == std::string_view::npos ? end : end - start);
    start = end + 1;
  }
  return true;
}

std::string CriteoParser::parse(std::string_view line, Sample& sample) {
  if (!cut(line)) {
    const auto found = std::count(line.begin(), line.end(), layout_.separator) + 1;
    return "has " + std::to_string(found) + " columns, not " + std::to_string(layout_.fields);
  }
  const std::string_view label = fields_[layout_.label];
  if (label != "0" && label != "1") return "label is " + quoted(label) + ", not 0 or 1";
  sample.label = label == "1" ? 1.0f : 0.0f;

  sample.dense.assign(kCriteoDense, 0.0f);
  for (size_t i = 0; i < kCriteoDense; ++i) {
    const std::string_view text = fields_[layout_.dense[i]];
    if (text.empty()) continue;
    const auto value = parse_real(text);
    if (!value) return "I" + std::to_string(i + 1) + " is " + quoted(text) + ", not a number";
    sample.dense[i] = static_cast<float>(std::copysign(std::log1p(std::abs(*value)), *value));
  }

  sample.lengths.assign(kCriteoIds, 1);
  sample.ids.assign(kCriteoIds, 0);
  for (size_t i = 0; i < kCriteoIds; ++i) {
    const std::string_view text = fields_[layout_.ids[i]];
    if (text.empty()) continue;
    const auto value = parse_hex(text);
    if (!value)
      return "C" + std::to_string(i + 1) + " is " + quoted(text) +
             ", not a hex id of up to 64 bits";
    const auto hashed = static_cast<uint64_t>(schema_.features[i].rows - 1);
    if (hashed > 0) sample.ids[i] = static_cast<int64_t>(1 + hash_number(i, *value) % hashed);
  }
  return {};
}

}  // namespace shardrec::cli
