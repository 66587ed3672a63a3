#include "job.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <utility>

#include "support/eventually.h"
#include "support/process_tree.h"

namespace shardrec::checkpoint_faults {
namespace {

namespace fs = std::filesystem;

constexpr double kDeadline = 60;  // seconds; beyond that a job hangs

int code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

pid_t spawn(const std::vector<std::string>& words, const std::string& output) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t process = -1;
  const int failed =
      posix_spawn(&process, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw std::runtime_error("cannot start " + words[0]);
  return process;
}

std::set<std::string> names_in(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

}  // namespace

std::string JobOptions::text() const {
  return work + " with " + shape.text() + (ranks == Ranks::kThreads ? ", threads" : ", processes") +
         ", " + file_faults::name_of(fault) + " at call " + std::to_string(at) + " of rank " +
         std::to_string(victim);
}

Job::Job(JobOptions options) : options_(std::move(options)) {
  output_ = options_.root + ".output";
  fs::remove(output_);
  std::vector<std::string> words{SHARDREC_CHECKPOINT_HOST,
                                 options_.work,
                                 options_.root,
                                 std::to_string(options_.shape.ranks),
                                 std::to_string(options_.shape.sharding),
                                 std::to_string(options_.keep),
                                 file_faults::name_of(options_.fault),
                                 std::to_string(options_.at),
                                 std::to_string(options_.victim)};
  if (options_.ranks == Ranks::kThreads) {
    words.emplace_back("all");
    processes_.push_back(spawn(words, output_));
  } else {
    meeting_.emplace();
    words.insert(words.end(), {"", meeting_->token()});
    for (int rank = 0; rank < options_.shape.ranks; ++rank) {
      words[words.size() - 2] = std::to_string(rank);
      processes_.push_back(spawn(words, output_));
    }
  }
  codes_.assign(processes_.size(), -1);
}

Job::~Job() {
  for (const pid_t process : processes_) {
    if (process < 0) continue;
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
}

bool Job::wait_until_stopped() {
  int status = 0;
  if (waitpid(processes_[0], &status, WUNTRACED) != processes_[0]) return false;
  if (WIFSTOPPED(status)) return true;
  codes_[0] = code_of(status);
  processes_[0] = -1;
  return false;
}

void Job::go_on() { kill(processes_[0], SIGCONT); }

bool Job::wait() {
  const auto collect = [&] {
    bool over = true;
    for (size_t i = 0; i < processes_.size(); ++i) {
      int status = 0;
      if (processes_[i] > 0 && waitpid(processes_[i], &status, WNOHANG) == processes_[i]) {
        codes_[i] = code_of(status);
        processes_[i] = -1;
      }
      over = over && processes_[i] < 0;
    }
    return over;
  };
  if (test::eventually(collect, kDeadline)) return hung_.empty();
  for (pid_t& process : processes_) {
    if (process < 0) continue;
    hung_ += test::describe_tree(process);
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
    process = -1;
  }
  return false;
}

std::string Job::output() const {
  std::ifstream file(output_, std::ios::binary);
  return std::string{std::istreambuf_iterator<char>(file), {}} + hung_;
}

long Job::number_after(const std::string& word) const {
  const std::string text = output();
  const size_t at = text.find(word + " ");
  return at == std::string::npos ? -1 : std::atol(text.c_str() + at + word.size() + 1);
}

Scratch::Scratch() {
  const fs::path memory = "/dev/shm";
  const fs::path parent = access(memory.c_str(), W_OK) == 0 ? memory : fs::temp_directory_path();
  std::string name = (parent / "shardrec_XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  folder_ = name;
}

Scratch::~Scratch() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void make_root(const std::string& root, const Shape& shape, int64_t keep) {
  const std::string thrown = run_ranks(shape.ranks, [&](Comm& comm, int) {
    Training training(comm, shape, root, keep);
    training.train();
    training.commit();
  });
  if (!thrown.empty()) throw std::runtime_error(thrown);
}

void copy_root(const std::string& from, const std::string& to) {
  fs::remove_all(to);
  if (fs::exists(from)) fs::copy(from, to, fs::copy_options::recursive);
}

Found find_newest(const std::string& root, const Shape& shape, int64_t step) {
  const std::vector<uint64_t>& reference = reference_digests(shape);
  Found found;
  found.trouble = run_ranks(shape.ranks, [&](Comm& comm, int rank) {
    Training training(comm, shape, root, 1);
    bool there = false;
    std::string sentence;
    const shardrec_status status = status_of([&] { there = training.resume(step); }, &sentence);
    if (rank == 0) found.refused = status != SHARDREC_OK;
    if (status != SHARDREC_OK && status != SHARDREC_CORRUPT_DATA && status != SHARDREC_IO_ERROR &&
        status != SHARDREC_NOT_FOUND) {
      throw std::runtime_error("status " + std::to_string(status) + ": " + sentence);
    }
    if (status != SHARDREC_OK || !there) return;
    if (rank == 0) found.step = training.steps();
    if (training.digest() != reference.at(static_cast<size_t>(training.steps()))) {
      throw std::runtime_error("a mixture was loaded as step " + std::to_string(training.steps()));
    }
    training.train();  // wants the optimizer states of the layers
    if (training.digest() != reference.at(static_cast<size_t>(training.steps()))) {
      throw std::runtime_error("training goes on otherwise after step " +
                               std::to_string(training.steps() - 1));
    }
  });
  return found;
}

std::string go_on(const std::string& root, const Shape& shape) {
  int64_t step = 0;
  bool resumed = false;
  std::string trouble = run_ranks(shape.ranks, [&](Comm& comm, int rank) {
    Training training(comm, shape, root, 1);
    const bool found = training.resume();
    if (rank == 0) resumed = found;
    training.train();
    training.commit();
    if (rank == 0) step = training.steps();
  });
  if (!trouble.empty()) return trouble;
  const Found found = find_newest(root, shape);
  if (!found.trouble.empty() || found.refused || found.step != step) {
    return "the checkpoint that was committed then is not there: " + found.trouble;
  }
  const std::string json = Checkpoint::list_json(root);
  std::string left;
  for (const std::string& name : names_in(root)) {
    if (name == "LATEST" || name == "LOCK") continue;
    if (json.find("\"" + name + "\"") == std::string::npos) left += name + " ";
    if (!fs::is_directory(root + "/" + name)) continue;
    for (const std::string& file : names_in(root + "/" + name)) {
      if (file.ends_with(".tmp")) left += file + " ";
    }
  }
  const bool several = json.find("\"commit\"") != json.rfind("\"commit\"");
  if (several && resumed) left += "an older checkpoint, in " + json;
  return left.empty() ? "" : "a later commit has left " + left;
}

}  // namespace shardrec::checkpoint_faults
