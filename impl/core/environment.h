// The seam under files and the clock. Everything that touches either goes through an Environment,
// so that tests can make any single operation fail; the default one is POSIX.
//
// Failures are IO_ERROR with the operating system's reason and the path as a part; NOT_FOUND when a
// file that is read or listed does not exist.
//
// Thread rule: an Environment may be used from any thread; a file by one thread at a time, except
// read_at().
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace shardrec::core {

class ReadFile {
 public:
  virtual ~ReadFile() = default;
  virtual int64_t size() const = 0;  // when it was opened
  // Fills all of `out`; CORRUPT_DATA when the file ends before.
  virtual void read_at(int64_t offset, std::span<std::byte> out) const = 0;
};

// Bytes of a file as memory that is only read, and shared with whoever else maps the file. They stay
// when the file is removed; the file must not be truncated.
class MappedFile {
 public:
  MappedFile() = default;
  virtual ~MappedFile() = default;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  virtual std::span<const std::byte> bytes() const noexcept = 0;
};

// Destroying a file that was not closed closes it and forgets errors.
class WriteFile {
 public:
  virtual ~WriteFile() = default;
  virtual void append(std::span<const std::byte> bytes) = 0;
  virtual void sync() = 0;  // returns when the bytes would survive a power cut
  virtual void close() = 0;
};

// Held by this process until it is destroyed or the process ends.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

class Environment {
 public:
  virtual ~Environment() = default;

  virtual std::unique_ptr<ReadFile> open(const std::string& path) = 0;
  // The first `size` bytes of a file; CORRUPT_DATA when it has fewer.
  virtual std::unique_ptr<MappedFile> map(const std::string& path, int64_t size) = 0;
  // Makes a file that did not exist. Whatever has the name already, also a link that leads
  // elsewhere, is an error and stays as it is.
  virtual std::unique_ptr<WriteFile> create(const std::string& path) = 0;
  virtual bool exists(const std::string& path) = 0;
  virtual void rename(const std::string& from, const std::string& to) = 0;  // replaces atomically
  // Renames unless `to` exists; then it returns false, and both are as they were. Of several
  // callers that try at the same time, one gets the name.
  virtual bool rename_if_free(const std::string& from, const std::string& to) = 0;
  virtual void remove(const std::string& path) = 0;            // a missing file is no error
  virtual void remove_directory(const std::string& path) = 0;  // an empty one; else IO_ERROR
  // Makes a directory whose parent exists, and syncs the parent; false when the name is taken.
  virtual bool make_directory(const std::string& path) = 0;
  // Makes all directories of the path that are missing, and syncs the parent of each one it makes.
  virtual void make_directories(const std::string& path) = 0;
  virtual void sync_directory(const std::string& path) = 0;
  virtual std::vector<std::string> list(const std::string& directory) = 0;  // names, sorted

  enum class LockResult : uint8_t { kTaken, kHeldByAnother, kUnsupported };
  // Takes the lock of a file, which is made when missing; does not wait. kUnsupported: the file
  // system has no locks.
  virtual LockResult lock(const std::string& path, std::unique_ptr<FileLock>& out) = 0;

  virtual std::chrono::steady_clock::time_point now() = 0;
};

// POSIX; lives until the process ends.
Environment& default_environment();

// directory + "/" + name
std::string join_path(const std::string& directory, const std::string& name);

// 16 hexadecimal digits that no two calls on any machine have in common, for names of files.
std::string unique_suffix();

// Writes a whole file so that it appears under its name complete or not at all, in place of one of
// that name: a temporary file of a name of its own beside it, synced, renamed, directory synced.
// The temporary file is removed after a failure.
void write_file_atomically(Environment& environment, const std::string& directory,
                           const std::string& name, std::span<const std::byte> bytes);

// As write_file_atomically(), unless the name is taken: then it returns false and changes nothing.
bool write_new_file_atomically(Environment& environment, const std::string& directory,
                               const std::string& name, std::span<const std::byte> bytes);

// A whole file of text; CORRUPT_DATA when it is larger than `most` or holds a zero byte, as the
// holes of a sparse file do. Takes at most twice the memory of what it has read by then.
std::string read_text_file(Environment& environment, const std::string& path, int64_t most);

}  // namespace shardrec::core
