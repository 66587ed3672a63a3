// Patterns are matched by the C library; names are put in order here.
#include "data/data_files.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "command/user_error.h"

namespace shardrec::cli {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Numbers in the names by value, everything else by bytes.
bool comes_before(std::string_view a, std::string_view b) {
  const auto take_number = [](std::string_view& text) {
    text.remove_prefix(std::min(text.find_first_not_of('0'), text.size()));
    size_t length = 0;
    while (length < text.size() && is_digit(text[length])) ++length;
    const std::string_view number = text.substr(0, length);
    text.remove_prefix(length);
    return number;
  };
  const std::string_view all_a = a;
  const std::string_view all_b = b;
  while (!a.empty() && !b.empty()) {
    if (is_digit(a[0]) && is_digit(b[0])) {
      const std::string_view first = take_number(a);
      const std::string_view second = take_number(b);
      if (first.size() != second.size()) return first.size() < second.size();
      if (first != second) return first < second;
    } else if (a[0] != b[0]) {
      return a[0] < b[0];
    } else {
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.empty() && b.empty() ? all_a < all_b : a.empty();
}

std::vector<std::string> files_of(const std::filesystem::path& directory) {
  std::vector<std::string> files;
  std::error_code error;
  for (auto at = std::filesystem::directory_iterator(directory, error);
       !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name[0] == '.' || name[0] == '_' || name.ends_with(".json")) continue;
    if (at->is_regular_file()) files.push_back(at->path().string());
  }
  if (error) throw UserError("Cannot read " + directory.string() + ": " + error.message() + ".");
  return files;
}

std::vector<std::string> matches_of(const std::string& pattern) {
  glob_t found = {};
  const int error = ::glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> files(found.gl_pathv,
                                 found.gl_pathv + (error == 0 ? found.gl_pathc : 0));
  ::globfree(&found);
  std::erase_if(files, [](const std::string& file) { return std::filesystem::is_directory(file); });
  return files;
}

}  // namespace

std::vector<std::string> data_files(const std::vector<std::string>& given) {
  std::vector<std::string> all;
  for (const std::string& one : given) {
    std::error_code error;
    const auto status = std::filesystem::status(one, error);
    std::vector<std::string> files;
    if (std::filesystem::is_directory(status)) {
      files = files_of(one);
      if (files.empty()) throw UserError("The directory " + one + " holds no data.");
    } else if (!std::filesystem::exists(status) && one.find_first_of("*?[") != std::string::npos) {
      files = matches_of(one);
      if (files.empty()) throw UserError("No file matches " + one + ".");
    } else {
      files = {one};
    }
    std::sort(files.begin(), files.end(),
              [](const std::string& a, const std::string& b) { return comes_before(a, b); });
    all.insert(all.end(), files.begin(), files.end());
  }
  return all;
}

}  // namespace shardrec::cli
