#include "line_reader.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "api.h"

namespace shardrec::cli {

LineReader::LineReader(const std::string& path)
    : path_(path), file_(std::fopen(path.c_str(), "rb")), block_(kBlock) {
  std::error_code error;
  if (file_ == nullptr || std::filesystem::is_directory(path, error)) {
    const int reason = file_ == nullptr ? errno : EISDIR;
    throw UserError("Cannot read " + path + ": " + std::generic_category().message(reason) + ".");
  }
  const auto size = std::filesystem::file_size(path, error);
  file_size_ = error ? 0 : static_cast<uint64_t>(size);
}

bool LineReader::fill() {
  std::memmove(block_.data(), block_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  const size_t read = std::fread(block_.data() + end_, 1, block_.size() - end_, file_.get());
  if (read == 0 && std::ferror(file_.get()) != 0) {
    throw UserError("Reading " + path_ + " failed: " + std::generic_category().message(errno) +
                    ".");
  }
  end_ += read;
  at_end_ = read == 0;
  return read > 0;
}

bool LineReader::next(std::string_view& line) {
  size_t searched = 0;
  for (;;) {
    const char* start = block_.data() + begin_;
    const void* newline = std::memchr(start + searched, '\n', end_ - begin_ - searched);
    size_t length = end_ - begin_;
    size_t used = length;
    if (newline != nullptr) {
      length = static_cast<size_t>(static_cast<const char*>(newline) - start);
      used = length + 1;
    } else if (!at_end_) {
      if (length == block_.size()) {
        throw UserError(path_ + " has a line of more than 4 MiB; it is not a click log.");
      }
      searched = length;
      fill();
      continue;
    } else if (length == 0) {
      return false;
    }
    begin_ += used;
    handed_out_ += used;
    if (length > 0 && start[length - 1] == '\r') --length;
    line = {start, length};
    return true;
  }
}

double LineReader::fraction() const {
  if (file_size_ == 0) return 0;
  return static_cast<double>(handed_out_) / static_cast<double>(file_size_);
}

}  // namespace shardrec::cli
