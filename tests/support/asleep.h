// Whether threads and processes sleep: tests wait for it where a call has to be inside its wait.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "support/process_tree.h"

namespace shardrec::test {

// The letter of /proc/.../stat: R runs, S sleeps, T is stopped; 0 if there is none.
inline char kernel_state(const std::filesystem::path& process_or_thread) {
  const std::string text = line_of(process_or_thread / "stat");
  const size_t name_end = text.rfind(')');  // "123 (name) S ..."
  return name_end == std::string::npos || text.size() < name_end + 3 ? '\0' : text[name_end + 2];
}

// Of a thread of this process, by its gettid().
inline bool is_asleep(pid_t thread) {
  return thread != 0 && kernel_state("/proc/self/task/" + std::to_string(thread)) == 'S';
}

inline bool is_stopped(pid_t process) {
  return kernel_state("/proc/" + std::to_string(process)) == 'T';
}

}  // namespace shardrec::test
