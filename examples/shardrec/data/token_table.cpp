// How a separated file with a header becomes columns of tokens.
#include "data/token_table.h"

#include <algorithm>

#include "command/numbers.h"
#include "command/user_error.h"
#include "data/line_reader.h"

namespace shardrec::cli {

TokenTable::TokenTable(std::string path, const std::vector<std::string>& wanted)
    : path_(std::move(path)) {
  LineReader reader(path_);
  std::string_view header;
  if (!reader.next(header)) throw UserError(path_ + " is empty.");
  std::vector<std::string> names;
  for (const std::string_view field : split(header, '\t')) {
    names.emplace_back(field.substr(0, field.find(':')));
  }
  columns_ = names.size();
  for (const std::string& name : wanted) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      throw UserError(path_ + " has no column '" + name +
                      "'. Accepted: a tab-separated file with a header such as " + wanted.front() +
                      ":token.");
    }
    at_.push_back(static_cast<size_t>(found - names.begin()));
  }
}

void TokenTable::each(
    const std::function<void(int64_t, const std::vector<std::string_view>&)>& row) const {
  LineReader reader(path_);
  std::string_view line;
  reader.next(line);
  std::vector<std::string_view> wanted;
  for (int64_t number = 2; reader.next(line); ++number) {
    const auto fields = split(line, '\t');
    wanted.clear();
    if (fields.size() == columns_) {
      for (const size_t at : at_) wanted.push_back(fields[at]);
    }
    row(number, wanted);
  }
}

}  // namespace shardrec::cli
