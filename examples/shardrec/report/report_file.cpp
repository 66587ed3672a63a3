#include "report/report_file.h"

#include <cerrno>
#include <system_error>

#include "command/user_error.h"

namespace shardrec::cli {
namespace {

[[noreturn]] void refuse(const std::string& path, int error) {
  throw UserError(path + " cannot be written" +
                  (error == 0 ? "" : ": " + std::generic_category().message(error)) +
                  "; --report needs the path of a file in a directory that is there.");
}

}  // namespace

ReportFile::ReportFile(const std::string& path) {
  if (path.empty()) return;
  auto file = std::make_unique<WholeFile>(path);
  errno = 0;
  out_.open(file->part(), std::ios::binary | std::ios::trunc);
  if (!out_) refuse(path, errno);
  file_ = std::move(file);
}

void ReportFile::write(const std::string& page) {
  if (file_ == nullptr) return;
  errno = 0;
  out_ << page;
  out_.close();
  if (!out_) refuse(file_->path(), errno);
  file_->finish();
}

}  // namespace shardrec::cli
