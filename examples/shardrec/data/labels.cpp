// Labels of both kinds, read and refused.
#include "data/labels.h"

#include "command/numbers.h"
#include "command/user_error.h"

namespace shardrec::cli {

Labels labels_of(const std::string& name) {
  if (name == "binary") return Labels::kBinary;
  if (name == "signed") return Labels::kSigned;
  throw UserError("--labels is binary or signed, not '" + name + "'.");
}

std::optional<float> parse_label(std::string_view text, Labels labels) {
  const auto value = parse_real(text);
  if (!value) return std::nullopt;
  if (*value == 1) return 1.0F;
  if (*value == (labels == Labels::kSigned ? -1 : 0)) return 0.0F;
  return std::nullopt;
}

std::string label_problem(std::string_view text, Labels labels) {
  const bool is_signed = labels == Labels::kSigned;
  std::string problem = "label is " + quoted(text) + (is_signed ? ", not -1 or 1" : ", not 0 or 1");
  if (parse_label(text, is_signed ? Labels::kBinary : Labels::kSigned)) {
    problem += is_signed ? " (labels look like 0/1: --labels binary)"
                         : " (labels look like -1/1: --labels signed)";
  } else if (parse_real(text)) {
    problem += " (labels look like numbers: make them 1 and 0 first)";
  } else if (text.empty()) {
    problem += " (labels are missing)";
  } else {
    problem += " (labels look like text: make them 1 and 0 first)";
  }
  return problem;
}

}  // namespace shardrec::cli
