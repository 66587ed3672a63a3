// --device: where the tables of ranks are.
#pragma once

#include <cstdint>
#include <string>

#include "launch/ranks.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace shardrec::cli {

// Adds --device, whose text is checked as far as no device is needed for it.
CLI::Option* add_device_option(CLI::App* command, std::string& device, const std::string& meaning);
// Adds --device-wait: sleep or spin, what SHARDREC_OPTION_DEVICE_WAIT takes as text.
CLI::Option* add_device_wait_option(CLI::App* command, std::string& wait);
// What it means to ranks.
inline constexpr const char* kTablesOnHelp =
    "Where the tables are: cpu, cuda:N, or cuda: the ranks of a machine take its CUDA devices in "
    "turn";

// What a text of --device means in this process.
class TablesOn {
 public:
  TablesOn() = default;  // the host's memory
  // Throws UserError where this process has no such device: why, and what there is.
  explicit TablesOn(const std::string& device);

  // What SHARDREC_OPTION_DEVICE takes for a rank. "cuda" gives the ranks of a machine its devices in turn.
  [[nodiscard]] int64_t device_of(const RankGroup& group, int rank) const;
  [[nodiscard]] bool on_cpu() const { return count_ == 0; }
  // How many different devices the ranks have, those of all machines together; 0 on the CPU.
  [[nodiscard]] int64_t devices_of(const RankGroup& group) const;

 private:
  int64_t first_ = -1;
  int64_t count_ = 0;
};

}  // namespace shardrec::cli
