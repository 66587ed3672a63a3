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

// Destroying a file that was not closed closes it and forgets errors.
class WriteFile {
 public:
  virtual ~WriteFile() = default;
  virtual void append(std::span<const std::byte> bytes) = 0;
  virtual void sync() = 0;  // returns when the bytes would survive a power cut
  virtual void close() = 0;
};

class Environment {
 public:
  virtual ~Environment() = default;

  virtual std::unique_ptr<ReadFile> open(const std::string& path) = 0;
  virtual std::unique_ptr<WriteFile> create(const std::string& path) = 0;  // empties what is there
  virtual bool exists(const std::string& path) = 0;
  virtual void rename(const std::string& from, const std::string& to) = 0;  // replaces atomically
  virtual void remove(const std::string& path) = 0;            // a missing file is no error
  virtual void make_directories(const std::string& path) = 0;  // those that are missing
  virtual void sync_directory(const std::string& path) = 0;
  virtual std::vector<std::string> list(const std::string& directory) = 0;  // names, sorted

  virtual std::chrono::steady_clock::time_point now() = 0;
};

// POSIX; lives until the process ends.
Environment& default_environment();

// directory + "/" + name
std::string join_path(const std::string& directory, const std::string& name);

// Writes a whole file so that it appears under its name complete or not at all: a temporary file
// beside it, synced, renamed, directory synced. The temporary file is removed after a failure.
void write_file_atomically(Environment& environment, const std::string& directory,
                           const std::string& name, std::span<const std::byte> bytes);

// The whole file; CORRUPT_DATA when it is larger than `most`.
std::string read_file(Environment& environment, const std::string& path, int64_t most);

}  // namespace shardrec::core
