// Files whose operations can be made to do something else: fail, end the process, change a byte.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/environment.h"
#include "core/error.h"

namespace shardrec::checkpoint {

// Passes everything on; before(what, path) is called first and may throw or not return, and
// after_read may change what was read.
class HookedEnvironment : public core::Environment {
 public:
  std::function<void(const char* what, const std::string& path)> before = [](const char*,
                                                                             const std::string&) {};
  std::function<void(const std::string& path, std::span<std::byte> bytes)> after_read =
      [](const std::string&, std::span<std::byte>) {};

  std::unique_ptr<core::ReadFile> open(const std::string& path) override {
    before("open", path);
    return std::make_unique<Reader>(*this, real_.open(path), path);
  }
  std::unique_ptr<core::MappedFile> map(const std::string& path, int64_t size) override {
    before("map", path);
    return real_.map(path, size);
  }
  std::unique_ptr<core::WriteFile> create(const std::string& path) override {
    before("create", path);
    return std::make_unique<Writer>(*this, real_.create(path), path);
  }
  bool exists(const std::string& path) override { return real_.exists(path); }
  void rename(const std::string& from, const std::string& to) override {
    before("rename", to);
    real_.rename(from, to);
  }
  bool rename_if_free(const std::string& from, const std::string& to) override {
    before("rename", to);
    return real_.rename_if_free(from, to);
  }
  void remove(const std::string& path) override {
    before("remove", path);
    real_.remove(path);
  }
  void remove_directory(const std::string& path) override {
    before("remove", path);
    real_.remove_directory(path);
  }
  bool make_directory(const std::string& path) override {
    before("make the directory", path);
    return real_.make_directory(path);
  }
  void make_directories(const std::string& path) override {
    before("make the directory", path);
    real_.make_directories(path);
  }
  void sync_directory(const std::string& path) override {
    before("sync", path);
    real_.sync_directory(path);
  }
  std::vector<std::string> list(const std::string& directory) override {
    return real_.list(directory);
  }
  LockResult lock(const std::string& path, std::unique_ptr<core::FileLock>& out) override {
    before("lock", path);
    return real_.lock(path, out);
  }
  std::chrono::steady_clock::time_point now() override { return real_.now(); }

 private:
  class Reader final : public core::ReadFile {
   public:
    Reader(HookedEnvironment& hooks, std::unique_ptr<core::ReadFile> real, std::string path)
        : hooks_(hooks), real_(std::move(real)), path_(std::move(path)) {}
    int64_t size() const override { return real_->size(); }
    void read_at(int64_t offset, std::span<std::byte> out) const override {
      hooks_.before("read", path_);
      real_->read_at(offset, out);
      hooks_.after_read(path_, out);
    }

   private:
    HookedEnvironment& hooks_;
    std::unique_ptr<core::ReadFile> real_;
    std::string path_;
  };

  class Writer final : public core::WriteFile {
   public:
    Writer(HookedEnvironment& hooks, std::unique_ptr<core::WriteFile> real, std::string path)
        : hooks_(hooks), real_(std::move(real)), path_(std::move(path)) {}
    void append(std::span<const std::byte> bytes) override {
      hooks_.before("write", path_);
      real_->append(bytes);
    }
    void sync() override {
      hooks_.before("sync", path_);
      real_->sync();
    }
    void close() override {
      hooks_.before("close", path_);
      real_->close();
    }

   private:
    HookedEnvironment& hooks_;
    std::unique_ptr<core::WriteFile> real_;
    std::string path_;
  };

  core::Environment& real_ = core::default_environment();
};

// Lets `allowed` operations pass and fails the next one (and, when `for_good`, all later ones but
// those that remove and examine).
class FaultyEnvironment final : public HookedEnvironment {
 public:
  FaultyEnvironment(int64_t allowed, bool for_good) : allowed_(allowed), for_good_(for_good) {
    before = [this](const char* what, const std::string& path) {
      if (std::string(what) != "remove") step(what, path);
    };
  }

  bool failed() const { return count_.load() > allowed_; }

 private:
  void step(const char* what, const std::string& path) {
    const int64_t number = count_.fetch_add(1);
    if (number == allowed_ || (for_good_ && number > allowed_)) {
      core::fail(SHARDREC_IO_ERROR, core::sentence("cannot ", what, " ", path, ": injected"),
                 {.path = path});
    }
  }

  int64_t allowed_;
  bool for_good_;
  std::atomic<int64_t> count_{0};
};

}  // namespace shardrec::checkpoint
