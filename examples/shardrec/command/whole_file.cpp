#include "command/whole_file.h"

#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "command/user_error.h"

namespace shardrec::cli {
namespace {

std::string part_of(const std::string& path, std::string_view ending) {
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error)) {
    return path;  // nothing can be renamed to it
  }
  return path.substr(0, path.size() - ending.size()) + ".part" + std::string(ending);
}

}  // namespace

WholeFile::WholeFile(std::string path, std::string_view ending)
    : path_(std::move(path)), part_(part_of(path_, ending)) {}

WholeFile::~WholeFile() {
  if (!finished_ && part_ != path_) std::remove(part_.c_str());
}

void WholeFile::finish() {
  if (part_ != path_) {
    std::error_code error;
    std::filesystem::rename(part_, path_, error);
    if (error) throw UserError("Cannot write " + path_ + ": " + error.message() + ".");
  }
  finished_ = true;
}

}  // namespace shardrec::cli
