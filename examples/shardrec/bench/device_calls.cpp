// A reader of three families of Prometheus' text.
#include "bench/device_calls.h"

#include <shardrec/shardrec.hpp>
#include <stdexcept>

#include "command/numbers.h"

namespace shardrec::cli {
namespace {

// The sample of a family without labels: a line "NAME VALUE".
double sample(const std::string& counters, const std::string& family) {
  const std::string begin = "\n" + family + " ";
  const size_t found = counters.find(begin);
  if (found != std::string::npos) {
    const size_t value = found + begin.size();
    const size_t end = counters.find('\n', value);
    if (const auto number = parse_real(counters.substr(value, end - value))) return *number;
  }
  throw std::runtime_error("shardrec_counters_text tells no " + family);
}

}  // namespace

DeviceCalls device_calls_from(const std::string& counters) {
  return {.launches = sample(counters, "shardrec_device_launches_total"),
          .calls = sample(counters, "shardrec_device_calls_total"),
          .waits = sample(counters, "shardrec_device_waits_total")};
}

DeviceCalls device_calls() { return device_calls_from(counters_text()); }

}  // namespace shardrec::cli
