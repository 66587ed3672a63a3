#include "launch/devices.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <shardrec/shardrec.hpp>
#include <utility>

#include "command/user_error.h"
#include "launch/engines.h"

namespace shardrec::cli {
namespace {

constexpr const char* kCpu = "cpu";
constexpr const char* kCuda = "cuda";
constexpr int64_t kMostDevice = 1023;

// N of "cuda:N"; empty: the text is no such one.
std::optional<int64_t> number_of(const std::string& device) {
  const std::string prefix = std::string(kCuda) + ":";
  if (!device.starts_with(prefix)) return std::nullopt;
  const char* const end = device.data() + device.size();
  int64_t number = -1;
  const auto [stop, error] = std::from_chars(device.data() + prefix.size(), end, number);
  if (error != std::errc() || stop != end || number < 0 || number > kMostDevice)
    return std::nullopt;
  return number;
}

std::string check(const std::string& device) {
  if (device == kCpu || device == kCuda || number_of(device)) return {};
  return "'" + device + "' is no device; accepted: cpu, cuda, cuda:0 to cuda:1023";
}

}  // namespace

CLI::Option* add_device_option(CLI::App* command, std::string& device, const std::string& meaning) {
  return command->add_option("--device", device, meaning)
      ->check(CLI::Validator(check, "DEVICE"))
      ->capture_default_str();
}

CLI::Option* add_device_wait_option(CLI::App* command, std::string& wait) {
  return command
      ->add_option(
          "--device-wait", wait,
          "How a rank waits in a step for its device: sleep, or spin: it takes a processor "
          "and goes on earlier")
      ->check(CLI::IsMember({"sleep", "spin"}))
      ->capture_default_str();
}

TablesOn::TablesOn(const std::string& device) {
  if (device == kCpu) return;
  const auto found = nlohmann::json::parse(capabilities_json());
  const auto count = static_cast<int64_t>(found.at("cuda_devices").size());
  if (count == 0) {
    throw UserError("--device " + device +
                    " cannot be used: " + found.at("cuda_missing").get<std::string>() + ".");
  }
  const std::optional<int64_t> number = number_of(device);
  if (number && *number >= count) {
    throw UserError("--device " + device + " does not exist: this process sees " +
                    (count == 1
                         ? "one CUDA device, cuda:0."
                         : "the CUDA devices cuda:0 to cuda:" + std::to_string(count - 1) + "."));
  }
  first_ = number.value_or(0);
  count_ = number ? 1 : count;
}

int64_t TablesOn::device_of(const RankGroup& group, int rank) const {
  if (on_cpu()) return -1;
  // Threads of one process are on one machine, whatever they count as.
  const int on_machine = in_processes(group.engine) ? rank % group.ranks_per_node : rank;
  return first_ + on_machine % count_;
}

int64_t TablesOn::devices_of(const RankGroup& group) const {
  if (on_cpu()) return 0;
  std::set<std::pair<int, int64_t>> devices;
  for (int rank = 0; rank < group.ranks; ++rank) {
    const int machine = in_processes(group.engine) ? rank / group.ranks_per_node : 0;
    devices.emplace(machine, device_of(group, rank));
  }
  return std::ssize(devices);
}

}  // namespace shardrec::cli
