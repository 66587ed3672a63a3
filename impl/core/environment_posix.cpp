#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "core/environment.h"
#include "core/error.h"
#include "core/held_signal.h"

namespace shardrec::core {

namespace {

[[noreturn]] void fail_with(const std::error_code& reason, const char* what,
                            const std::string& path,
                            shardrec_status if_missing = SHARDREC_IO_ERROR) {
  shardrec_status status = SHARDREC_IO_ERROR;
  if (reason == std::errc::no_such_file_or_directory) status = if_missing;
  if (reason == std::errc::not_enough_memory) status = SHARDREC_OUT_OF_MEMORY;
  fail(status, sentence("cannot ", what, " ", path, ": ", reason.message()), {.path = path});
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

class PosixMappedFile final : public MappedFile {
 public:
  PosixMappedFile(const std::string& path, int64_t size) : size_(static_cast<size_t>(size)) {
    const Descriptor file(path, O_RDONLY | O_NONBLOCK, "open", SHARDREC_NOT_FOUND);
    struct stat about = {};
    if (::fstat(file.number(), &about) != 0) fail_errno("examine", path);
    if (about.st_size < size) {
      fail(SHARDREC_CORRUPT_DATA,
           sentence("the file ", path, " has ", about.st_size, " bytes; ", size, " are expected"),
           {.path = path});
    }
    if (size_ == 0) return;
    data_ = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.number(), 0);
    if (data_ == MAP_FAILED) {
      data_ = nullptr;
      fail_errno("map", path);
    }
  }
  ~PosixMappedFile() override {
    if (data_ != nullptr) ::munmap(data_, size_);
  }
  std::span<const std::byte> bytes() const noexcept override {
    return {static_cast<const std::byte*>(data_), size_};
  }

 private:
  void* data_ = nullptr;
  size_t size_;
};

class PosixWriteFile final : public WriteFile {
 public:
  explicit PosixWriteFile(const std::string& path)
      : descriptor_(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, "create", SHARDREC_IO_ERROR) {}

  void append(std::span<const std::byte> bytes) override {
    const HeldSignal held(SIGXFSZ);  // beyond the limit of a file's size: EFBIG only
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

class PosixFileLock final : public FileLock {
 public:
  explicit PosixFileLock(const std::string& path)
      : descriptor_(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, "lock", SHARDREC_IO_ERROR) {}

  Environment::LockResult take() const {
    while (::flock(descriptor_.number(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno == EWOULDBLOCK) return Environment::LockResult::kHeldByAnother;
      if (errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP || errno == EINVAL) {
        return Environment::LockResult::kUnsupported;
      }
      fail_errno("lock", descriptor_.path());
    }
    return Environment::LockResult::kTaken;
  }

 private:
  Descriptor descriptor_;
};

class PosixEnvironment final : public Environment {
 public:
  std::unique_ptr<ReadFile> open(const std::string& path) override {
    return std::make_unique<PosixReadFile>(path);
  }

  std::unique_ptr<MappedFile> map(const std::string& path, int64_t size) override {
    return std::make_unique<PosixMappedFile>(path, size);
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

  bool rename_if_free(const std::string& from, const std::string& to) override {
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) {
      return true;
    }
    if (errno == EEXIST) return false;
    if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP) {
      fail_errno("rename a file to", to);
    }
    // A file system that knows no such renaming: a second name for the file is as exclusive.
    if (::link(from.c_str(), to.c_str()) != 0) {
      if (errno == EEXIST) return false;
      fail_errno("rename a file to", to);
    }
    ::unlink(from.c_str());  // it has its name; a second one beside does no harm
    return true;
  }

  void remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail_errno("remove", path);
  }

  void remove_directory(const std::string& path) override {
    if (::rmdir(path.c_str()) != 0 && errno != ENOENT) fail_errno("remove the directory", path);
  }

  bool make_directory(const std::string& path) override {
    if (::mkdir(path.c_str(), 0777) != 0) {
      if (errno == EEXIST) return false;
      fail_errno("make the directory", path);
    }
    const std::filesystem::path name = std::filesystem::path(path).lexically_normal();
    const std::filesystem::path parent =
        (name.has_filename() ? name : name.parent_path()).parent_path();
    const std::string above = parent.empty() ? "." : parent.string();
    // One that may be written but not read cannot be opened, hence not synced.
    if (::access(above.c_str(), R_OK) == 0) sync_directory(above);
    return true;
  }

  void make_directories(const std::string& path) override {
    std::filesystem::path made;
    for (const std::filesystem::path& part : std::filesystem::path(path)) {
      made /= part;
      std::error_code reason;
      if (std::filesystem::is_directory(made, reason)) continue;
      if (make_directory(made.string())) continue;
      // Made by somebody else meanwhile, or no directory.
      if (!std::filesystem::is_directory(made, reason)) {
        fail_with(std::make_error_code(std::errc::not_a_directory), "make the directory", path);
      }
    }
  }

  void sync_directory(const std::string& path) override {
    Descriptor(path, O_RDONLY | O_DIRECTORY, "open the directory", SHARDREC_IO_ERROR).sync();
  }

  LockResult lock(const std::string& path, std::unique_ptr<FileLock>& out) override {
    auto lock = std::make_unique<PosixFileLock>(path);
    const LockResult result = lock->take();
    if (result == LockResult::kTaken) out = std::move(lock);
    return result;
  }

  // Not by std::filesystem, whose iterator ends the process where memory runs out.
  std::vector<std::string> list(const std::string& directory) override {
    struct Close {
      void operator()(DIR* open) const noexcept { ::closedir(open); }
    };
    const std::unique_ptr<DIR, Close> open(::opendir(directory.c_str()));
    if (open == nullptr) fail_errno("list the directory", directory, SHARDREC_NOT_FOUND);
    std::vector<std::string> names;
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(open.get());
      if (entry == nullptr) break;
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    if (errno != 0) fail_errno("list the directory", directory);
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
