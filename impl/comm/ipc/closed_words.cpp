#include "comm/ipc/closed_words.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace shardrec::comm::ipc {
namespace {

[[noreturn]] void fail_with(shardrec_status status, const char* what) {
  core::fail(status, core::sentence(what, ": ", std::system_category().message(errno)));
}

uint64_t inode_of(int file) {
  struct stat about{};
  return fstat(file, &about) == 0 ? about.st_ino : 0;
}

}  // namespace

ClosedWords::ClosedWords(size_t ranks) : file_(memfd_create("shardrec", MFD_CLOEXEC)) {
  const auto bytes = static_cast<off_t>(ranks * sizeof(Word));
  if (file_ >= 0 && ftruncate(file_, bytes) == 0) {
    map(ranks);
    return;
  }
  if (file_ >= 0) close(file_);
  fail_with(SHARDREC_OUT_OF_MEMORY, "the system makes no memory that processes share");
}

ClosedWords::ClosedWords(const WordsHandle& handle, size_t ranks)
    : file_(open(core::sentence("/proc/", handle.process, "/fd/", handle.file).c_str(),
                 O_RDWR | O_CLOEXEC)) {
  if (file_ >= 0 && inode_of(file_) == handle.inode) {
    map(ranks);
    close(std::exchange(file_, -1));  // what is mapped needs no file
    return;
  }
  if (file_ >= 0) close(file_);
  fail_with(SHARDREC_INTERNAL, "memory that another process shares is out of reach");
}

void ClosedWords::map(size_t ranks) {
  void* const mapped =
      mmap(nullptr, ranks * sizeof(Word), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (mapped == MAP_FAILED) {
    close(file_);
    fail_with(SHARDREC_OUT_OF_MEMORY, "the system maps no memory that processes share");
  }
  words_ = static_cast<Word*>(mapped);
  bytes_ = ranks * sizeof(Word);
}

ClosedWords::ClosedWords(ClosedWords&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      bytes_(other.bytes_),
      words_(std::exchange(other.words_, nullptr)) {}

ClosedWords::~ClosedWords() {
  if (words_ != nullptr) munmap(words_, bytes_);
  if (file_ >= 0) close(file_);
}

WordsHandle ClosedWords::handle() const noexcept {
  return {.process = getpid(), .file = file_, .inode = inode_of(file_)};
}

}  // namespace shardrec::comm::ipc
