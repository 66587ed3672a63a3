#include "comm/rendezvous/client/token_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <utility>

#include "comm/rendezvous/net/socket.h"
#include "core/error.h"

namespace shardrec::comm::rendezvous {
namespace {

constexpr size_t kMostBytes = 1024;  // a token has at most 512

[[noreturn]] void fail_with(const char* what, const std::string& path) {
  const int error = errno;
  core::fail(SHARDREC_IO_ERROR,
             core::sentence("the file \"", path, "\" of the rendezvous cannot be ", what, ": ",
                            reason_of(error)),
             {.value = error});
}

// Not by core/environment.h, whose files others may read: the token holds the secret.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : number_(::open(path.c_str(), flags, 0600)) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const noexcept { return number_; }

 private:
  int number_;
};

[[noreturn]] void refuse(const std::string& path, std::string_view what) {
  core::fail(SHARDREC_INVALID_ARGUMENT,
             core::sentence("the file \"", path, "\" of the rendezvous ", what,
                            "; a regular file that belongs to this user (number ", ::geteuid(),
                            ") or to root, and that no other user may write to, is accepted"),
             {.path = path});
}

// Of the open file, so that nobody can put another in its place meanwhile.
void check_trusted(const Descriptor& file, const std::string& path) {
  struct stat about{};
  if (::fstat(file.number(), &about) != 0) fail_with("looked at", path);
  if (!S_ISREG(about.st_mode)) refuse(path, "is no regular file");
  if (about.st_uid != ::geteuid() && about.st_uid != 0) {
    refuse(path, core::sentence("belongs to the user with the number ", about.st_uid));
  }
  if ((about.st_mode & (S_IWGRP | S_IWOTH)) != 0) refuse(path, "may be written to by other users");
}

// At most kMostBytes; none where there is no such file.
std::optional<std::string> read_text(const std::string& path) {
  // O_NONBLOCK: a pipe is refused, not waited for.
  const Descriptor file(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (file.number() < 0) {
    if (errno == ENOENT) return std::nullopt;
    if (errno == ELOOP) refuse(path, "is a symbolic link");
    fail_with("opened", path);
  }
  check_trusted(file, path);
  std::array<char, kMostBytes> text{};
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = ::read(file.number(), text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_with("read", path);
    if (count == 0) break;
    size += static_cast<size_t>(count);
  }
  return std::string(text.data(), size);
}

void write_text(const std::string& path, const std::string& text) {
  const Descriptor file(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW);
  if (file.number() < 0) fail_with("made", path);
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::write(file.number(), text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail_with("written", path);
    done += static_cast<size_t>(count);
  }
  if (::fsync(file.number()) != 0 && errno != EINVAL) fail_with("written", path);
  check_trusted(file, path);
}

}  // namespace

TokenFile::TokenFile(std::string path, const Token& token)
    : path_(std::move(path)), text_(token.text() + "\n") {
  const std::string draft = core::sentence(path_, ".", random_name());
  try {
    write_text(draft, text_);
    if (std::rename(draft.c_str(), path_.c_str()) != 0) fail_with("made", path_);
  } catch (...) {
    ::unlink(draft.c_str());
    throw;
  }
}

TokenFile::~TokenFile() {
  try {
    if (read_text(path_) == text_) ::unlink(path_.c_str());
  } catch (...) {  // then it stays: who finds it later finds nobody at its address
  }
}

std::optional<Token> read_token_file(const std::string& path) {
  const auto text = read_text(path);
  if (!text) return std::nullopt;
  const std::string_view line = std::string_view(*text).substr(0, text->find('\n'));
  try {
    return parse_token(line);
  } catch (const core::Error& error) {
    core::fail(error.status(), core::sentence("the file \"", path, "\": ", error.sentence()));
  }
}

}  // namespace shardrec::comm::rendezvous
