#include "failures/job.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include "support/eventually.h"
#include "support/process_tree.h"

namespace shardrec::failures {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string read_all(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

std::string Trouble::text() const {
  std::ostringstream out;
  out << "rank " << rank << ", phase " << phase << " " << step << ", "
      << (signal == SIGSTOP ? "stopped" : "killed") << ", after " << delay_us << " us";
  return out.str();
}

Job::Job(JobOptions options) : options_(std::move(options)) {
  std::string name = (std::filesystem::temp_directory_path() / "shardrec_XXXXXX").string();
  folder_ = mkdtemp(name.data());
  const Trouble& trouble = options_.trouble;
  const auto host = [&](int number) {
    std::vector<std::string> words{SHARDREC_TEST_HOST,
                                   options_.engine,
                                   std::to_string(number),
                                   std::to_string(options_.count),
                                   folder_.string(),
                                   std::to_string(options_.steps),
                                   std::to_string(options_.limit)};
    if (trouble.rank < 0) return words;
    words.insert(words.end(),
                 {std::to_string(trouble.rank), trouble.phase, std::to_string(trouble.step),
                  std::to_string(trouble.signal), std::to_string(trouble.delay_us)});
    if (options_.lonely) words.push_back("lonely");
    return words;
  };
  if (options_.engine != "mpi") {
    for (int number = 0; number < options_.count; ++number) spawn(host(number));
    return;
  }
  // More ranks than processors; root, in a container. Open MPI's own leaks are none of ours.
  std::vector<std::string> words{"mpirun",
                                 "--allow-run-as-root",
                                 "--oversubscribe",
                                 "-x",
                                 "ASAN_OPTIONS=detect_leaks=0",
                                 "-n",
                                 std::to_string(options_.count)};
  const auto more = host(-1);
  words.insert(words.end(), more.begin(), more.end());
  spawn(words);
}

Job::~Job() {
  finish();
  std::filesystem::remove_all(folder_);
}

void Job::spawn(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const std::string output = (folder_ / "output").string();
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  std::vector<char*> variables;
  for (const std::string& variable : options_.environment) {
    variables.push_back(const_cast<char*>(variable.c_str()));
  }
  for (char** variable = environ; *variable != nullptr; ++variable) variables.push_back(*variable);
  variables.push_back(nullptr);
  pid_t process = -1;
  EXPECT_EQ(
      posix_spawnp(&process, arguments[0], &actions, nullptr, arguments.data(), variables.data()),
      0)
      << words[0];
  posix_spawn_file_actions_destroy(&actions);
  processes_.push_back(process);
  statuses_.push_back(-1);
}

bool Job::collect() {
  bool over = true;
  for (size_t i = 0; i < processes_.size(); ++i) {
    if (processes_[i] > 0 && waitpid(processes_[i], &statuses_[i], WNOHANG) == processes_[i]) {
      processes_[i] = -1;
    }
    const bool awaited = options_.engine == "mpi" || static_cast<int>(i) != options_.trouble.rank;
    over = over && (processes_[i] < 0 || !awaited);
  }
  return over;
}

bool Job::wait(double seconds) {
  const auto start = Clock::now();
  const int victim = options_.trouble.rank;
  const auto ends = [&] {
    if (collect()) return true;
    // mpirun waits for a rank that is stopped.
    if (options_.engine == "mpi" && options_.trouble.signal == SIGSTOP) {
      bool ended = true;
      for (int number = 0; number < options_.count; ++number) {
        ended = ended && (number == victim || report(number).ended);
      }
      const pid_t process = ended ? report(victim).process : 0;
      if (process > 0) kill(process, SIGKILL);
    }
    return false;
  };
  bool over = test::eventually(ends, seconds);
  if (over && options_.trouble.goes_on) {
    const pid_t& process = processes_.at(static_cast<size_t>(victim));
    if (process > 0) kill(process, SIGCONT);
    over = test::eventually([&] { return collect() && process < 0; }, seconds);
  }
  seconds_ = seconds_since(start);
  for (const pid_t process : processes_) {
    if (!over && process > 0) hung_ += test::describe_tree(process);
  }
  finish();
  return over;
}

void Job::finish() {
  for (size_t i = 0; i < processes_.size(); ++i) {
    if (processes_[i] < 0) continue;
    test::kill_tree(processes_[i]);  // mpirun with its ranks
    waitpid(processes_[i], &statuses_[i], 0);
    processes_[i] = -1;
  }
}

std::string Job::output() const { return read_all(folder_ / "output") + hung_; }

Report Job::report(int number) const {
  Report report;
  std::istringstream lines(read_all(folder_ / ("report." + std::to_string(number))));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    if (kind == "process") {
      words >> report.process;
    } else if (kind == "struck") {
      int64_t when = 0;
      words >> when;
      report.struck = when;
    } else if (kind == "failed") {
      Failed failed;
      std::string bar;
      words >> failed.caller >> failed.phase >> failed.status >> failed.rank >> failed.when >>
          failed.operation >> bar;
      std::getline(words, failed.sentence);
      report.failed.push_back(failed);
    } else if (kind == "digest") {
      int generation = 0;
      words >> generation;
      words >> report.digests[generation];
    } else if (kind == "destroyed") {
      int generation = 0;
      words >> generation;
      words >> report.destroyed[generation];
    } else if (kind == "left") {
      Left left;
      std::string word;
      words >> left.threads >> word >> left.files >> word >> left.objects;
      report.left.push_back(left);
    } else if (kind == "peers") {
      words >> report.peer_bytes.emplace_back();
    } else if (kind == "end") {
      report.ended = true;
    } else {
      report.others.push_back(line);
    }
  }
  return report;
}

}  // namespace shardrec::failures
