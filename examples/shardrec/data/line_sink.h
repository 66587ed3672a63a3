// Where lines of text go: a file, in gzip format where its name ends with ".gz", or standard output
// for "-".
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct gzFile_s;

namespace shardrec::cli {

bool is_gzip_name(std::string_view path);
std::string without_gzip_name(const std::string& path);  // without ".gz" at its end

class LineSink {
 public:
  explicit LineSink(std::string path);  // UserError where it cannot be written

  void write(std::string_view text);  // UserError: the disk is full, for example
  void finish();                      // the last call; without it the file is not complete

 private:
  struct Close {
    void operator()(gzFile_s* file) const;
  };
  [[noreturn]] void fail(int error) const;

  std::string path_;
  std::unique_ptr<gzFile_s, Close> file_;
};

}  // namespace shardrec::cli
