#include "shared_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace simt {

int make_file(size_t bytes) noexcept {
  const int file = memfd_create("simt", MFD_CLOEXEC);
  if (file < 0) return -1;
  if (ftruncate(file, static_cast<off_t>(bytes)) == 0) return file;
  close(file);
  return -1;
}

FileHandle handle_of(int file, uint64_t kind, size_t bytes, int device) noexcept {
  struct stat about{};
  fstat(file, &about);
  return {.kind = kind,
          .process = static_cast<uint64_t>(getpid()),
          .number = static_cast<uint64_t>(file),
          .inode = about.st_ino,
          .bytes = bytes,
          .device = static_cast<uint64_t>(device)};
}

int open_file(const FileHandle& handle, uint64_t kind) noexcept {
  if (handle.kind != kind) return -1;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%llu/fd/%llu",
                static_cast<unsigned long long>(handle.process),
                static_cast<unsigned long long>(handle.number));
  const int file = open(path, O_RDWR | O_CLOEXEC);
  struct stat about{};
  if (file < 0 || (fstat(file, &about) == 0 && about.st_ino == handle.inode)) return file;
  close(file);
  return -1;
}

void* map_file(int file, size_t offset, size_t bytes) noexcept {
  void* const mapped =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(offset));
  return mapped == MAP_FAILED ? nullptr : mapped;
}

bool is_process_alive(pid_t process) noexcept {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/stat", process);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[512];
  const ssize_t bytes = read(file, text, sizeof text - 1);
  close(file);
  if (bytes <= 0) return false;
  text[bytes] = '\0';
  const char* const behind_name = std::strrchr(text, ')');
  return behind_name != nullptr && behind_name[1] == ' ' && behind_name[2] != 'Z' &&
         behind_name[2] != 'X';
}

}  // namespace simt
