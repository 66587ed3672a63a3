// How a table is laid out: widths in letters, not bytes.
#include "command/text_table.h"

#include <algorithm>

namespace shardrec::cli {
namespace {

// Of UTF-8: bytes that begin a letter.
size_t letters(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace

std::string TextTable::text() const {
  std::vector<size_t> widths;
  for (const Column& column : columns_) widths.push_back(letters(column.title));
  for (const auto& row : rows_) {
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], letters(row[c]));
  }

  std::string out;
  const auto add_line = [&](const auto& cell) {
    std::string line;
    for (size_t c = 0; c < columns_.size(); ++c) {
      const std::string& value = cell(c);
      const std::string padding(widths[c] - letters(value), ' ');
      if (c > 0) line += "  ";
      line += columns_[c].align == Align::kRight ? padding + value : value + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  };
  const std::string empty;
  add_line([&](size_t c) -> const std::string& { return columns_[c].title; });
  std::vector<std::string> rule;
  for (const size_t width : widths) rule.emplace_back(width, '-');
  add_line([&](size_t c) -> const std::string& { return rule[c]; });
  for (const auto& row : rows_) {
    add_line([&](size_t c) -> const std::string& { return c < row.size() ? row[c] : empty; });
  }
  return out;
}

}  // namespace shardrec::cli
