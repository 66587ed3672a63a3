// The table of options: a row per key. Everything else (setters, getters, text, sentences) is
// derived from it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "shardrec/options.h"

namespace shardrec::capi {

enum class OptionType : uint8_t { kInteger, kReal, kChoice, kText };

// The enumerators, or sets of them, that a kChoice row takes.
struct OptionChoices {
  std::string (*name)(int64_t value);  // empty: no such enumerator
  std::optional<int64_t> (*value)(std::string_view name);
  std::string (*list)();
  const char* lead = "one of ";  // what sentences put before the list
};

struct OptionRow {
  shardrec_option key;
  const char* name;  // "SHARDREC_OPTION_SEED"
  uint32_t kinds;    // bit k: shardrec_options_kind k takes it
  OptionType type;
  const char* accepted;  // "an integer in [1, 8]"; choices: their list stands for it
  // kInteger: [least, most]. kReal: finite, and as the two functions of the row's range say.
  int64_t least = INT64_MIN;
  int64_t most = INT64_MAX;
  bool (*real_accepted)(double value) = nullptr;
  bool (*text_accepted)(std::string_view value) = nullptr;
  const OptionChoices* choices = nullptr;
  // All empty: the default depends on what the options are used for.
  std::optional<int64_t> default_i64{};
  std::optional<double> default_f64{};
  const char* default_text = nullptr;

  bool taken_by(shardrec_options_kind kind) const noexcept { return (kinds >> kind & 1u) != 0; }
};

std::span<const OptionRow> option_rows() noexcept;
const OptionRow* find_option(shardrec_option key) noexcept;  // null: no such key

// "TABLE"; null for a number that is no kind.
const char* options_kind_name(shardrec_options_kind kind) noexcept;

}  // namespace shardrec::capi
