// Runs the `shardrec` command as a user does, and a folder for a test's files.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace shardrec::cli::test {

struct Finished {
  int exit_code = -1;  // 128 + signal when a signal ended it
  std::string out;
  std::string err;
  std::string hung{};  // what it was doing when it had run for too long, and was ended

  // The last line of out, which --json makes a JSON object.
  [[nodiscard]] nlohmann::json json() const;
};

// A folder of its own per object, removed at the end.
class Scratch {
 public:
  Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch();
  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }
  void write(const std::string& name, const std::string& content) const;

 private:
  std::filesystem::path folder_;
};

std::string read_file(const std::string& path);

class Running {
 public:
  // input: what the command reads from its standard input. program: instead of the command.
  Running(const Scratch& scratch, const std::vector<std::string>& arguments,
          const std::string& input = "", const std::string& program = SHARDREC_COMMAND);
  void interrupt() const;
  void terminate() const;     // SIGTERM
  void kill_at_once() const;  // SIGKILL, to it alone
  [[nodiscard]] std::string err() const { return read_file(err_path_); }
  [[nodiscard]] bool has_ended() const;
  // After so long it is ended, with all that it started; err says what they were doing.
  Finished wait(double seconds = 300);

 private:
  std::string out_path_;
  std::string err_path_;
  pid_t process_ = 0;
};

Finished run(const std::vector<std::string>& arguments, const std::string& input = "");

// In what two checkpoints differ, as `inspect --diff` says, but for the settings of the runs that saved them.
std::string differences(const std::string& checkpoint, const std::string& other);

// SHARDREC_TEST_DATA with a file's name behind it; empty when it is not set.
std::string test_data(const std::string& name);

}  // namespace shardrec::cli::test
