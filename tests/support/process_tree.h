// A process and all that it has started, for tests whose processes may hang: what they are doing,
// and their end.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

namespace shardrec::test {

inline std::string line_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
  for (char& letter : text) letter = letter == '\0' || letter == '\n' ? ' ' : letter;
  return text;
}

inline std::vector<std::filesystem::path> threads_of(pid_t process) {
  std::error_code gone;
  std::vector<std::filesystem::path> threads;
  for (std::filesystem::directory_iterator at("/proc/" + std::to_string(process) + "/task", gone),
       end;
       !gone && at != end; at.increment(gone)) {
    threads.push_back(at->path());
  }
  return threads;
}

// root first.
inline std::vector<pid_t> tree_of(pid_t root) {
  std::vector<pid_t> tree{root};
  for (size_t i = 0; i < tree.size(); ++i) {
    for (const auto& thread : threads_of(tree[i])) {
      std::ifstream children(thread / "children");
      for (pid_t child = 0; children >> child;) tree.push_back(child);
    }
  }
  return tree;
}

// A line per process, with the name and the place in the kernel of each of its threads.
inline std::string describe_tree(pid_t root) {
  std::string text;
  for (const pid_t process : tree_of(root)) {
    text += "process " + std::to_string(process) + ": " +
            line_of("/proc/" + std::to_string(process) + "/cmdline") + "; threads:";
    for (const auto& thread : threads_of(process)) {
      text += " " + line_of(thread / "comm") + " (" + line_of(thread / "wchan") + ")";
    }
    text += "\n";
  }
  return text;
}

// What has been stopped too. The caller waits for root.
inline void kill_tree(pid_t root) {
  for (const pid_t process : tree_of(root)) kill(process, SIGKILL);
}

}  // namespace shardrec::test
