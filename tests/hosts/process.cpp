#include "process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "namespaces.h"
#include "support/eventually.h"

namespace shardrec::hosts {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

std::vector<std::string> environment_with(const std::map<std::string, std::string>& variables) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!variables.contains(text.substr(0, text.find('=')))) all.push_back(text);
  }
  for (const auto& [name, value] : variables) {
    all.push_back(name);
    all.back() += '=';
    all.back() += value;
  }
  return all;
}

}  // namespace

Process::Process(const Host& host, std::vector<std::string> command,
                 const std::map<std::string, std::string>& variables, const std::string& files)
    : files_(files) {
  std::vector<std::string> environment = environment_with(variables);
  const std::vector<char*> arguments = pointers(command);
  const std::vector<char*> entries = pointers(environment);
  constexpr int kCreate = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
  const int out = open((files + ".out").c_str(), kCreate, 0644);
  const int err = open((files + ".err").c_str(), kCreate, 0644);
  process_ = host.run([&] {
    if (dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0) return;
    execvpe(arguments[0], arguments.data(), entries.data());
  });
  close(out);
  close(err);
}

Process::~Process() {
  if (process_ == 0) return;
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

Process::Process(Process&& other) noexcept
    : process_(std::exchange(other.process_, 0)), files_(std::move(other.files_)) {}

void Process::signal(int number) const {
  if (process_ > 0) kill(process_, number);
}

std::optional<Finished> Process::wait(Clock::time_point deadline) {
  int status = 0;
  const double seconds = std::chrono::duration<double>(deadline - Clock::now()).count();
  if (!test::eventually([&] { return waitpid(process_, &status, WNOHANG) == process_; }, seconds)) {
    return std::nullopt;
  }
  process_ = 0;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return Finished{code, out(), err()};
}

std::string Process::out() const { return cli::test::read_file(files_ + ".out"); }
std::string Process::err() const { return cli::test::read_file(files_ + ".err"); }

}  // namespace shardrec::hosts
