// Measures what the memory of a CUDA device does, by the operations of its back end: copies, and lookups of random
// rows by row size. Takes about a second; worth something only while nothing else uses the device.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "compute/cuda/host/devices.h"
#include "core/control.h"

namespace shardrec::compute::cuda {

enum class CopyPath : uint8_t { kToDevice, kToHost, kOnDevice };

// Rates count 1e9 bytes per second. A copy between host and device counts its bytes once, one on the
// device twice: read and written.
struct DeviceCopyRate {
  CopyPath path = CopyPath::kToDevice;
  double gb_per_second = 0;
};

// Sums of random rows, a bag at a time: 8 bytes of id per row, the rows, and the sums.
struct DeviceGatherRate {
  int64_t row_bytes = 0;
  int64_t bag_length = 0;
  double gb_per_second = 0;
};

struct DeviceProfile {
  host::DeviceDescription device;
  int64_t table_bytes = 0;  // that the rows were spread over
  double seconds = 0;       // that the measurement took
  bool quiet = true;        // false: other work disturbed it too much to rely on it
  std::vector<DeviceCopyRate> copies;
  std::vector<DeviceGatherRate> rows;
};

// Sizes in bytes: far beyond the caches of a device, and so much that an operation takes longer than
// its start.
struct DeviceProbeSizes {
  int64_t table = int64_t{4} << 30;
  int64_t gathered = int64_t{1} << 30;  // rows of one lookup
  int64_t copied = int64_t{256} << 20;
  std::chrono::milliseconds round = std::chrono::milliseconds(5);  // of one measurement, at least
};

// For so much free memory of the device.
DeviceProbeSizes device_probe_sizes(uint64_t free_bytes);

// control may be null. Throws UNSUPPORTED (no plug-in), INVALID_ARGUMENT (no such device),
// OUT_OF_MEMORY, DEVICE_ERROR, CANCELLED; BUSY while another thread of the process is in this call,
// whose measurement it would disturb.
DeviceProfile probe_device(int32_t device, core::Control* control);

// The JSON is documented at shardrec_probe_json (capi/include/shardrec/probe.h).
std::string profile_to_json(const DeviceProfile& profile);

}  // namespace shardrec::compute::cuda
