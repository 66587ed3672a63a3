// What the kernel and the library say of this machine.
#include "command/machine.h"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <shardrec/shardrec.hpp>
#include <string>

namespace shardrec::cli {
namespace {

// null where the kernel does not name it, as on some machines of the architecture aarch64.
nlohmann::json processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return nullptr;
}

std::string system_name() {
  utsname names{};
  if (uname(&names) != 0) return "unknown";
  return std::string(names.sysname) + " " + names.release + " " + names.machine;
}

}  // namespace

nlohmann::json machine_json() {
  const nlohmann::json found = nlohmann::json::parse(capabilities_json());
  nlohmann::json machine;
  machine["processor"] = processor_name();
  machine["processors"] = found.at("processors");
  machine["memory_bytes"] = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE);
  machine["system"] = system_name();
  machine["cpu_target"] = found.at("cpu_target");
  machine["library_version"] = found.at("library_version");
  machine["engines"] = found.at("engines");
  nlohmann::json& devices = machine["cuda_devices"] = nlohmann::json::array();
  for (const nlohmann::json& device : found.at("cuda_devices")) {
    devices.push_back(device.at("name"));
  }
  return machine;
}

int usable_processors() {
  return nlohmann::json::parse(capabilities_json()).at("processors").get<int>();
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

double peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

}  // namespace shardrec::cli
