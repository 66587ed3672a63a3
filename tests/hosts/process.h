// A program that runs on one of the hosts, watched from outside.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"

namespace shardrec::hosts {

using Clock = std::chrono::steady_clock;
using cli::test::Finished;

class Host;

// Killed with this object. From the main thread.
class Process {
 public:
  // files: where its output is kept, PREFIX.out and PREFIX.err.
  Process(const Host& host, std::vector<std::string> command,
          const std::map<std::string, std::string>& variables, const std::string& files);
  ~Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;
  Process(const Process&) = delete;

  void signal(int number) const;
  // What became of it; nothing: it still runs at the deadline.
  std::optional<Finished> wait(Clock::time_point deadline);
  std::string out() const;
  std::string err() const;

 private:
  pid_t process_ = 0;  // 0: it has ended
  std::string files_;
};

}  // namespace shardrec::hosts
