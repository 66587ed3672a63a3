// A file that is complete or is not there: it is written beside, and renamed at the end.
#pragma once

#include <string>
#include <string_view>

namespace shardrec::cli {

class WholeFile {
 public:
  // ending: of the path, which the name beside has too, such as ".gz".
  explicit WholeFile(std::string path, std::string_view ending = "");
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;
  // Removes what is not complete.
  ~WholeFile();

  [[nodiscard]] const std::string& path() const { return path_; }
  // Where it is written until it is complete; the path itself where that is no regular file, such as /dev/stdout.
  [[nodiscard]] const std::string& part() const { return part_; }
  // The part is closed and complete. Throws UserError.
  void finish();

 private:
  std::string path_;
  std::string part_;
  bool finished_ = false;
};

}  // namespace shardrec::cli
