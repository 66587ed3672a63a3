// How often this process has called the CUDA runtime, as the library counts it: shardrec_device_... in capi/NAMES.md.
#pragma once

#include <string>

namespace shardrec::cli {

struct DeviceCalls {
  double launches = 0;  // of kernels
  double calls = 0;     // launches and waits among them
  double waits = 0;     // calls that return when something is over
};

// So far.
DeviceCalls device_calls();
// From a text of shardrec_counters_text. Throws std::runtime_error where a family is missing.
DeviceCalls device_calls_from(const std::string& counters);

inline DeviceCalls operator-(const DeviceCalls& a, const DeviceCalls& b) {
  return {a.launches - b.launches, a.calls - b.calls, a.waits - b.waits};
}
inline DeviceCalls operator+(const DeviceCalls& a, const DeviceCalls& b) {
  return {a.launches + b.launches, a.calls + b.calls, a.waits + b.waits};
}

}  // namespace shardrec::cli
