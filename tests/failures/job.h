// A group of failure_host processes, and what they reported.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shardrec::failures {

// What happens to one rank; see host.h.
struct Trouble {
  int rank = -1;
  std::string phase{};
  int step = 0;
  int signal = 0;
  int delay_us = 0;
  bool goes_on = false;  // the rank was stopped, and is continued when the others have ended
  std::string text() const;
};

struct JobOptions {
  std::string engine = "gloo";
  std::vector<std::string> environment{};  // "NAME=VALUE", in front of this process' own
  int count = 4;
  int steps = 6;
  bool on_devices = false;  // the environment says so: groups report what devices copied
  double limit = 0;         // of waits in steps, in seconds; 0: the library's
  bool lonely = false;      // those without the rank in trouble form no other group
  Trouble trouble{};
};

// A call that failed.
struct Failed {
  std::string caller, phase, status;
  int64_t rank = -1;
  int64_t when = 0;
  std::string operation, sentence;
};

struct Left {
  int threads = 0, files = 0, objects = 0;
};

struct Report {
  pid_t process = 0;
  std::optional<int64_t> struck;  // nanoseconds
  std::vector<Failed> failed;
  std::map<int, std::string> digests;  // by generation
  std::map<int, int64_t> destroyed;    // how long it took
  std::vector<Left> left;
  std::vector<int64_t>
      peer_bytes;  // on devices: copied from those of other processes, up to the end of each group
  bool ended = false;
  std::vector<std::string> others;  // lines that nobody wants
};

class Job {
 public:
  explicit Job(JobOptions options);
  ~Job();  // ends what still runs
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  const JobOptions& options() const { return options_; }
  // Waits until all but the rank in trouble have ended, then ends that one too, or waits for it where it goes on. False:
  // it took too long, and they were ended.
  bool wait(double seconds);
  // Of the process, as waitpid has it; of a job of MPI, of mpirun.
  int status(int number) const { return statuses_.at(static_cast<size_t>(number)); }
  double seconds() const { return seconds_; }  // that wait() took
  Report report(int number) const;
  std::string output() const;                        // what processes printed, and hung()
  const std::string& hung() const { return hung_; }  // what was left of a job that took too long

 private:
  void spawn(const std::vector<std::string>& words);
  bool collect();  // true: all that were to end have
  void finish();

  JobOptions options_;
  std::filesystem::path folder_;
  std::vector<pid_t> processes_;  // -1: has ended
  std::vector<int> statuses_;
  double seconds_ = 0;
  std::string hung_;
};

}  // namespace shardrec::failures
