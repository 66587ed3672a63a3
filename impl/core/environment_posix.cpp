#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <system_error>

#include "core/environment.h"
#include "core/error.h"

namespace shardrec::core {

namespace {

[[noreturn]] void fail_with(const std::error_code& reason, const char* what,
                            const std::string& path,
                            shardrec_status if_missing = SHARDREC_IO_ERROR) {
  const bool missing = reason == std::errc::no_such_file_or_directory;
  fail(missing ? if_missing : SHARDREC_IO_ERROR,
       sentence("cannot ", what, " ", path, ": ", reason.message()), {.path = path});
}

[[noreturn]] void fail_errno(const char* what, const std::string& path,
                             shardrec_status if_missing = SHARDREC_IO_ERROR) {
  fail_with(std::error_code(errno, std::generic_category()), what, path, if_missing);
}

// Owns a descriptor.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags, const char* what, shardrec_status if_missing)
      : path_(path) {
    do {
      number_ = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
    } while (number_ < 0 && errno == EINTR);
    if (number_ < 0) fail_errno(what, path, if_missing);
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const noexcept { return number_; }
  const std::string& path() const noexcept { return path_; }
  void sync() const {
    while (::fsync(number_) != 0) {
      if (errno != EINTR) fail_errno("sync", path_);
    }
  }
  // EINTR included, the descriptor is gone afterwards.
  void close() {
    const int number = number_;
    number_ = -1;
    if (::close(number) != 0 && errno != EINTR) fail_errno("close", path_);
  }

 private:
  std::string path_;
  int number_ = -1;
};

class PosixReadFile final : public ReadFile {
 public:
  // Not blocking: opening a pipe would wait for its other end.
  explicit PosixReadFile(const std::string& path)
      : descriptor_(path, O_RDONLY | O_NONBLOCK, "open", SHARDREC_NOT_FOUND) {
    struct stat about = {};
    if (::fstat(descriptor_.number(), &about) != 0) fail_errno("examine", path);
    if (!S_ISREG(about.st_mode)) {
      fail(SHARDREC_IO_ERROR, sentence("cannot read ", path, ": it is not a regular file"),
           {.path = path});
    }
    size_ = about.st_size;
  }

  int64_t size() const override { return size_; }

  void read_at(int64_t offset, std::span<std::byte> out) const override {
    while (!out.empty()) {
      const size_t ask = std::min<size_t>(out.size(), SSIZE_MAX);
      const ssize_t got = ::pread(descriptor_.number(), out.data(), ask, offset);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail_errno("read", descriptor_.path());
      if (got == 0) {
        fail(SHARDREC_CORRUPT_DATA,
             sentence("the file ", descriptor_.path(), " ends at byte ", offset, "; ", out.size(),
                      " more bytes are expected"),
             {.position = offset, .path = descriptor_.path()});
      }
      out = out.subspan(static_cast<size_t>(got));
      offset += got;
    }
  }

 private:
  Descriptor descriptor_;
  int64_t size_ = 0;
};

class PosixWriteFile final : public WriteFile {
 public:
  explicit PosixWriteFile(const std::string& path)
      : descriptor_(path, O_WRONLY | O_CREAT | O_TRUNC, "create", SHARDREC_IO_ERROR) {}

  void append(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t put =
          ::write(descriptor_.number(), bytes.data(), std::min<size_t>(bytes.size(), SSIZE_MAX));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) fail_errno("write", descriptor_.path());
      bytes = bytes.subspan(static_cast<size_t>(put));
    }
  }

  void sync() override { descriptor_.sync(); }
  void close() override { descriptor_.close(); }

 private:
  Descriptor descriptor_;
};

class PosixEnvironment final : public Environment {
 public:
  std::unique_ptr<ReadFile> open(const std::string& path) override {
    return std::make_unique<PosixReadFile>(path);
  }

  std::unique_ptr<WriteFile> create(const std::string& path) override {
    return std::make_unique<PosixWriteFile>(path);
  }

  bool exists(const std::string& path) override {
    std::error_code reason;
    const bool there = std::filesystem::exists(path, reason);
    if (reason && reason != std::errc::not_a_directory) fail_with(reason, "examine", path);
    return there;
  }

  void rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) fail_errno("rename a file to", to);
  }

  void remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail_errno("remove", path);
  }

  void make_directories(const std::string& path) override {
    std::error_code reason;
    std::filesystem::create_directories(path, reason);
    if (!reason && !std::filesystem::is_directory(path, reason)) {
      reason = std::make_error_code(std::errc::not_a_directory);
    }
    if (reason) fail_with(reason, "make the directory", path);
  }

  void sync_directory(const std::string& path) override {
    Descriptor(path, O_RDONLY | O_DIRECTORY, "open the directory", SHARDREC_IO_ERROR).sync();
  }

  std::vector<std::string> list(const std::string& directory) override {
    std::error_code reason;
    std::vector<std::string> names;
    for (std::filesystem::directory_iterator at(directory, reason), end; !reason && at != end;
         at.increment(reason)) {
      names.push_back(at->path().filename().string());
    }
    if (reason) fail_with(reason, "list the directory", directory, SHARDREC_NOT_FOUND);
    std::sort(names.begin(), names.end());
    return names;
  }

  std::chrono::steady_clock::time_point now() override { return std::chrono::steady_clock::now(); }
};

}  // namespace

Environment& default_environment() {
  // Leaked, so that threads may use it while the process exits.
  static Environment* const environment = std::make_unique<PosixEnvironment>().release();
  return *environment;
}

}  // namespace shardrec::core
