#include "command.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "support/eventually.h"
#include "support/process_tree.h"

namespace shardrec::cli::test {

nlohmann::json Finished::json() const {
  const size_t end = out.find_last_not_of('\n');
  const size_t newline = out.find_last_of('\n', end);
  const size_t start = newline == std::string::npos ? 0 : newline + 1;
  return nlohmann::json::parse(out.substr(start));
}

Scratch::Scratch() {
  std::string name = (std::filesystem::temp_directory_path() / "shardrec_cli_XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  folder_ = name;
}

Scratch::~Scratch() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void Scratch::write(const std::string& name, const std::string& content) const {
  std::ofstream(path(name), std::ios::binary) << content;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

Running::Running(const Scratch& scratch, const std::vector<std::string>& arguments,
                 const std::string& input, const std::string& program)
    : out_path_(scratch.path("stdout")), err_path_(scratch.path("stderr")) {
  std::vector<std::string> words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  constexpr int kCreate = O_WRONLY | O_CREAT | O_TRUNC;
  scratch.write("stdin", input);
  const std::string in_path = scratch.path("stdin");
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, in_path.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out_path_.c_str(), kCreate, 0644);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, err_path_.c_str(), kCreate, 0644);
  const int failed = posix_spawn(&process_, program.c_str(), &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) throw std::runtime_error("cannot start " + program);
}

void Running::interrupt() const { kill(process_, SIGINT); }
void Running::terminate() const { kill(process_, SIGTERM); }
void Running::kill_at_once() const { kill(process_, SIGKILL); }

bool Running::has_ended() const {
  siginfo_t ended{};
  return waitid(P_PID, static_cast<id_t>(process_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         ended.si_pid == process_;
}

Finished Running::wait(double seconds) {
  int status = 0;
  std::string hung;
  if (!shardrec::test::eventually([&] { return waitpid(process_, &status, WNOHANG) == process_; },
                                  seconds)) {
    hung = shardrec::test::describe_tree(process_);
    shardrec::test::kill_tree(process_);
    waitpid(process_, &status, 0);
  }
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  std::string err = read_file(err_path_);
  if (!hung.empty()) err += "\nended after " + std::to_string(seconds) + " s:\n" + hung;
  return {code, read_file(out_path_), std::move(err), std::move(hung)};
}

Finished run(const std::vector<std::string>& arguments, const std::string& input) {
  const Scratch scratch;
  return Running(scratch, arguments, input).wait();
}

std::string differences(const std::string& checkpoint, const std::string& other) {
  const Finished diff = run({"inspect", checkpoint, "--diff", other});
  const size_t begin = diff.out.find("\nA: ");
  if (begin == std::string::npos) return diff.out + diff.err;
  if (diff.out.find("\nthe same: ", begin) != std::string::npos) return {};
  std::istringstream lines(diff.out.substr(begin));
  std::string line, rows;
  while (std::getline(lines, line) && line.rfind("------", 0) != 0) {
  }
  bool has_end = false;
  while (!has_end && std::getline(lines, line)) {
    has_end = line.find(" differences; ") != std::string::npos;
    if (!has_end && line.rfind("tensor  settings  rank 0 ", 0) != 0) rows += line + "\n";
  }
  return has_end ? rows : diff.out + diff.err;
}

std::string test_data(const std::string& name) {
  const char* folder = getenv("SHARDREC_TEST_DATA");
  return folder == nullptr || *folder == '\0' ? std::string() : std::string(folder) + "/" + name;
}

}  // namespace shardrec::cli::test
