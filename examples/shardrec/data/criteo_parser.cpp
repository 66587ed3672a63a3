// One line of Criteo's format into a sample: separators, logarithms, hashed ids.
#include "data/criteo_parser.h"

#include <algorithm>
#include <array>
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

constexpr uint8_t kDigit = 1;
constexpr uint8_t kLetter = 2;  // of a hex number
constexpr auto kKinds = [] {
  std::array<uint8_t, 256> kinds{};
  for (size_t c = '0'; c <= '9'; ++c) kinds[c] = kDigit;
  for (size_t c = 'a'; c <= 'f'; ++c) kinds[c] = kLetter;
  for (size_t c = 'A'; c <= 'F'; ++c) kinds[c] = kLetter;
  return kinds;
}();

// Most values are small counts: theirs are kept.
float signed_log1p(double value) {
  static const auto of_counts = [] {
    std::array<float, 1024> logarithms{};
    for (size_t i = 0; i < logarithms.size(); ++i) {
      logarithms[i] = static_cast<float>(std::log1p(static_cast<double>(i)));
    }
    return logarithms;
  }();
  if (value >= 0 && value < static_cast<double>(of_counts.size())) {
    const auto count = static_cast<size_t>(value);
    if (static_cast<double>(count) == value && !std::signbit(value)) return of_counts[count];
  }
  return static_cast<float>(std::copysign(std::log1p(std::abs(value)), value));
}

}  // namespace

CriteoLayout criteo_layout(const std::string& path, std::string_view first_line) {
  CriteoLayout layout;
  layout.separator = first_line.find('\t') != std::string_view::npos ? '\t' : ',';
  std::vector<std::string> names;
  for (const std::string_view field : split(first_line, layout.separator))
    names.push_back(lower(field));

  const auto has = [&](const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  layout.header = has("label") || has("i1") || has("c1");
  if (!layout.header && layout.separator == '\t') {
    layout.labelled = names.size() != kCriteoDense + kCriteoIds;
    const size_t first = layout.labelled ? 1 : 0;
    layout.fields = first + kCriteoDense + kCriteoIds;
    for (size_t i = 0; i < kCriteoDense; ++i) layout.dense.push_back(first + i);
    for (size_t i = 0; i < kCriteoIds; ++i) layout.ids.push_back(first + kCriteoDense + i);
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
  layout.labelled = has("label");
  if (layout.labelled) layout.label = find("label");
  for (int i = 1; i <= kCriteoDense; ++i) layout.dense.push_back(find("i" + std::to_string(i)));
  for (int i = 1; i <= kCriteoIds; ++i) layout.ids.push_back(find("c" + std::to_string(i)));
  return layout;
}

CriteoParser::CriteoParser(CriteoLayout layout, Schema schema, Labels labels)
    : layout_(std::move(layout)),
      schema_(std::move(schema)),
      labels_(labels),
      columns_(layout_.fields, Column::kOther) {
  for (const size_t field : layout_.dense) columns_[field] = Column::kDense;
  for (const size_t field : layout_.ids) columns_[field] = Column::kId;
  if (layout_.labelled) columns_[layout_.label] = Column::kLabel;
}

bool CriteoParser::is_plain(std::string_view line) const {
  const char* at = line.data();
  const char* const end = at + line.size();
  const auto characters = [&](uint8_t kind) {
    const char* const start = at;
    while (at != end && (kKinds[static_cast<unsigned char>(*at)] & kind) != 0) ++at;
    return at - start;
  };
  for (size_t f = 0; f < columns_.size(); ++f) {
    if (f > 0 && (at == end || *at++ != layout_.separator)) return false;
    switch (columns_[f]) {
      case Column::kLabel: {
        const bool is_signed = labels_ == Labels::kSigned;
        if (is_signed && at != end && *at == '-') ++at;
        if (characters(kDigit) != 1 || (at[-1] != '1' && (is_signed || at[-1] != '0')))
          return false;
        break;
      }
      case Column::kDense: {
        const bool negative = at != end && *at == '-';
        at += negative ? 1 : 0;
        const auto digits = characters(kDigit);
        if (digits > 15 || (negative && digits == 0)) return false;
        break;
      }
      case Column::kId:
        if (characters(kDigit | kLetter) > 16) return false;
        break;
      case Column::kOther:
        while (at != end && *at != layout_.separator) ++at;
    }
  }
  return at == end;
}

bool CriteoParser::cut(std::string_view line, std::vector<std::string_view>& fields) const {
  fields.resize(layout_.fields);
  size_t start = 0;
  for (size_t f = 0; f < layout_.fields; ++f) {
    const size_t end = line.find(layout_.separator, start);
    if ((end == std::string_view::npos) != (f + 1 == layout_.fields)) return false;
    fields[f] = line.substr(start, end == std::string_view::npos ? end : end - start);
    start = end + 1;
  }
  return true;
}

std::string CriteoParser::parse(std::string_view line, Sample& sample) const {
  const std::vector<std::string_view>& fields = sample.fields;
  if (!cut(line, sample.fields)) {
    const auto found = std::count(line.begin(), line.end(), layout_.separator) + 1;
    return "has " + std::to_string(found) + " columns, not " + std::to_string(layout_.fields);
  }
  sample.label = 0;
  if (layout_.labelled) {
    const std::string_view label = fields[layout_.label];
    const auto click = parse_label(label, labels_);
    if (!click) return label_problem(label, labels_);
    sample.label = *click;
  }

  sample.dense.assign(kCriteoDense, 0.0f);
  for (size_t i = 0; i < kCriteoDense; ++i) {
    const std::string_view text = fields[layout_.dense[i]];
    if (text.empty()) continue;
    const auto value = parse_real(text);
    if (!value) return "I" + std::to_string(i + 1) + " is " + quoted(text) + ", not a number";
    sample.dense[i] = signed_log1p(*value);
  }

  sample.lengths.assign(kCriteoIds, 1);
  sample.ids.assign(kCriteoIds, 0);
  for (size_t i = 0; i < kCriteoIds; ++i) {
    const std::string_view text = fields[layout_.ids[i]];
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
