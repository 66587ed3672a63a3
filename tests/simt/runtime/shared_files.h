// Files in memory that another process of the machine finds by a handle: what is behind cudaIpcMemHandle_t and
// cudaIpcEventHandle_t. A file is gone with the last process that has it, however that ended.
//
// Thread rule: any thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace simt {

// In the 64 bytes of CUDA's handles.
struct FileHandle {
  uint64_t kind = 0;     // of what is in the file
  uint64_t process = 0;  // that keeps the file open as `number`
  uint64_t number = 0;
  uint64_t inode = 0;  // tells the file from a later one of this number
  uint64_t bytes = 0;
  uint64_t device = 0;
};

// A new file of so many bytes, all of them zero. -1 without room.
int make_file(size_t bytes) noexcept;
FileHandle handle_of(int file, uint64_t kind, size_t bytes, int device) noexcept;
// -1 where the process, or its file, is gone.
int open_file(const FileHandle& handle, uint64_t kind) noexcept;
// All of the file, or from `offset` on; null without room.
void* map_file(int file, size_t offset, size_t bytes) noexcept;

// False also for a process that has ended and was not waited for.
bool is_process_alive(pid_t process) noexcept;

}  // namespace simt
