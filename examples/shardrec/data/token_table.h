// A tab-separated file with a header such as "user_id:token<TAB>age:token" (RecBole's atomic
// files).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace shardrec::cli {

class TokenTable {
 public:
  // Reads the header; UserError when the file or a wanted column is missing. Columns are handed out
  // in the order of `wanted`.
  TokenTable(std::string path, const std::vector<std::string>& wanted);

  // Calls `row` with each line's number (from 1) and wanted fields; fields is empty when the line
  // has another number of columns than the header.
  void each(const std::function<void(int64_t line, const std::vector<std::string_view>& fields)>&
                row) const;

 private:
  std::string path_;
  size_t columns_ = 0;
  std::vector<size_t> at_;
};

}  // namespace shardrec::cli
