// How a log says whether a sample is a click.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace shardrec::cli {

enum class Labels { kBinary, kSigned };  // 1 and 0; 1 and -1

// "binary" or "signed"; UserError for anything else.
Labels labels_of(const std::string& name);

// 1 or 0; empty where the text is no label. Numbers may have decimals, as "1.0" has.
std::optional<float> parse_label(std::string_view text, Labels labels);

// What is wrong with such a text, and which --labels would take it.
std::string label_problem(std::string_view text, Labels labels);

}  // namespace shardrec::cli
