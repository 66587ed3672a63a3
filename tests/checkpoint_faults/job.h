// Jobs of checkpoint_host, and the roots they work on.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "file_faults.h"
#include "training.h"

namespace shardrec::checkpoint_faults {

enum class Ranks { kThreads, kProcesses };

struct JobOptions {
  std::string work = "commit";
  std::string root;
  Shape shape;
  Ranks ranks = Ranks::kThreads;
  int64_t keep = 1;
  file_faults::Fault fault = file_faults::Fault::kNone;
  long at = 1;
  int victim = 0;
  std::string text() const;
};

class Job {
 public:
  explicit Job(JobOptions options);
  ~Job();  // ends what still runs
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Waits until the only process has stopped or ended. True: it has stopped.
  bool wait_until_stopped();
  void go_on();
  // False: it took too long, and what was left was ended.
  bool wait();
  // Of a process, as a shell has it; after wait(). Threads: of process 0.
  int exit_code(int process) const { return codes_.at(static_cast<size_t>(process)); }
  std::string output() const;
  // The number that was printed behind the word; -1: it was not.
  long number_after(const std::string& word) const;

 private:
  JobOptions options_;
  std::filesystem::path output_;
  std::optional<Rendezvous> meeting_;  // of processes; lasts as long as they do
  std::vector<pid_t> processes_;       // -1: has ended
  std::vector<int> codes_;
  std::string hung_;
};

// A folder of its own for roots, in memory where the system has such a file system: nothing here
// depends on a disk.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

 private:
  std::filesystem::path folder_;
};

// A new root with a checkpoint of step 1; without one, where no job has been.
void make_root(const std::string& root, const Shape& shape, int64_t keep);
// A copy in place of what is there.
void copy_root(const std::string& from, const std::string& to);

struct Found {
  int64_t step = 0;      // 0: there is no checkpoint
  bool refused = false;  // opening or loading it was an error
  std::string trouble;   // what is not as promised; "" when all is
};

// Opens the newest checkpoint, or that of a step, and compares all that it holds with the
// reference.
Found find_newest(const std::string& root, const Shape& shape, int64_t step = -1);

// Goes on from the newest, or from the start, by one step, and commits that with KEEP_LAST 1; then
// nothing but that checkpoint is left in the root. After a start, whole checkpoints may be left:
// one of the job before, killed as it was about to count, is another run's, and nobody else
// removes it. Returns what is not as promised.
std::string go_on(const std::string& root, const Shape& shape);

}  // namespace shardrec::checkpoint_faults
