// Lines into a file, through zlib where it is named .gz.
#include "data/line_sink.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "command/user_error.h"

namespace shardrec::cli {
namespace {

// 'T': as the bytes are, not compressed. The quickest compression halves a click log, nearly as the
// best does.
const char* mode_of(const std::string& path) { return is_gzip_name(path) ? "wb1e" : "wbTe"; }

}  // namespace

bool is_gzip_name(std::string_view path) { return path.ends_with(".gz"); }

std::string without_gzip_name(const std::string& path) {
  return is_gzip_name(path) ? path.substr(0, path.size() - 3) : path;
}

void LineSink::Close::operator()(gzFile_s* file) const { (void)gzclose(file); }

LineSink::LineSink(std::string path) : path_(std::move(path)) {
  errno = 0;
  file_.reset(path_ == "-" ? gzdopen(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0), mode_of(path_))
                           : gzopen(path_.c_str(), mode_of(path_)));
  if (file_ == nullptr) fail(errno);
}

void LineSink::write(std::string_view text) {
  constexpr size_t kMost = size_t{1} << 20;  // zlib counts in 31 bits
  while (!text.empty()) {
    const size_t count = std::min(text.size(), kMost);
    errno = 0;
    if (gzwrite(file_.get(), text.data(), static_cast<unsigned>(count)) <= 0) fail(errno);
    text.remove_prefix(count);
  }
}

void LineSink::finish() {
  errno = 0;
  if (gzclose(file_.release()) != Z_OK) fail(errno);
}

void LineSink::fail(int error) const {
  const std::string what = path_ == "-" ? "standard output" : path_;
  throw UserError("Cannot write " + what +
                  (error == 0 ? "." : ": " + std::generic_category().message(error) + "."));
}

}  // namespace shardrec::cli
