#include "devices.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "memory.h"
#include "simt/control.h"
#include "stream.h"

namespace simt {
namespace {

struct Settings {
  int devices = 1;
  size_t memory = size_t{8} << 30;
  int order = 0;
  uint64_t seed = 0;
  int64_t processes_share = 1;
  int64_t fail_allocation = 0;  // how many more until then; 0 none
  int64_t fail_operation = 0;
  int operation_error = cudaSuccess;
  int errors[kMostDevices] = {};
};

[[noreturn]] void refuse(const char* name, const char* text, const char* wanted) {
  std::fprintf(stderr, "simt: %s=%s: expected %s\n", name, text, wanted);
  std::abort();
}

int64_t read_number(const char* name, int64_t otherwise, int64_t least, int64_t most) {
  const char* text = std::getenv(name);
  if (text == nullptr) return otherwise;
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text, &end, 10);
  if (end == text || *end != '\0' || errno != 0 || value < least || value > most) {
    refuse(name, text, "a number in its range");
  }
  return value;
}

void read_order(Settings& settings) {
  constexpr char kName[] = "SHARDREC_SIMT_ORDER";
  const char* text = std::getenv(kName);
  if (text == nullptr || std::strcmp(text, "ascending") == 0) return;
  constexpr char kRandom[] = "random:";
  if (std::strcmp(text, "descending") == 0) {
    settings.order = static_cast<int>(Order::kDescending);
  } else if (std::strncmp(text, kRandom, sizeof kRandom - 1) == 0) {
    char* end = nullptr;
    const char* seed = text + sizeof kRandom - 1;
    settings.order = static_cast<int>(Order::kRandom);
    settings.seed = std::strtoull(seed, &end, 10);
    if (end == seed || *end != '\0') refuse(kName, text, "random:SEED, the seed a number");
  } else {
    refuse(kName, text, "ascending, descending or random:SEED");
  }
}

Settings read_settings() {
  Settings settings;
  settings.devices =
      static_cast<int>(read_number("SHARDREC_SIMT_DEVICES", settings.devices, -1, kMostDevices));
  settings.memory = static_cast<size_t>(read_number(
      "SHARDREC_SIMT_MEMORY", static_cast<int64_t>(settings.memory), 0, int64_t{64} << 30));
  settings.fail_allocation = read_number("SHARDREC_SIMT_FAIL_ALLOCATION", 0, 0, INT64_MAX);
  settings.processes_share = read_number("SHARDREC_SIMT_IPC", 1, 0, 1);
  read_order(settings);
  return settings;
}

Settings& settings() {
  static Settings all = read_settings();
  return all;
}

template <class T>
T get(const T& value) {
  return __atomic_load_n(&value, __ATOMIC_SEQ_CST);
}
template <class T>
void set(T& to, T value) {
  __atomic_store_n(&to, value, __ATOMIC_SEQ_CST);
}

// Counts down to zero and stays there; whether it came there now.
bool counts_to_zero(int64_t& left) {
  int64_t old = get(left);
  while (old != 0 && !__atomic_compare_exchange_n(&left, &old, old - 1, false, __ATOMIC_SEQ_CST,
                                                  __ATOMIC_SEQ_CST)) {
  }
  return old == 1;
}

}  // namespace

int device_count() noexcept { return settings().devices; }
size_t memory_of_device() noexcept { return settings().memory; }

bool processes_share() noexcept { return settings().processes_share != 0; }

Schedule schedule() noexcept {
  return {.order = static_cast<Order>(get(settings().order)), .seed = get(settings().seed)};
}

bool next_allocation_fails() noexcept { return counts_to_zero(settings().fail_allocation); }

cudaError_t next_operation_error() noexcept {
  return counts_to_zero(settings().fail_operation)
             ? static_cast<cudaError_t>(get(settings().operation_error))
             : cudaSuccess;
}

cudaError_t error_of_device(int device) noexcept {
  return static_cast<cudaError_t>(get(settings().errors[device]));
}

void break_device(int device, cudaError_t error) noexcept {
  set(settings().errors[device], static_cast<int>(error));
}

}  // namespace simt

void simt_set_order(int order, uint64_t seed) {
  simt::set(simt::settings().seed, seed);
  simt::set(simt::settings().order, order);
}

void simt_fail_allocation(int64_t nth) { simt::set(simt::settings().fail_allocation, nth); }

void simt_fail_operation(int64_t nth, int error) {
  simt::set(simt::settings().operation_error, error);
  simt::set(simt::settings().fail_operation, nth);
}

void simt_repair_devices(void) {
  for (int device = 0; device < simt::kMostDevices; ++device) {
    simt::break_device(device, cudaSuccess);
  }
}

int64_t simt_live_allocations(void) { return simt::live_memory_blocks(); }
int64_t simt_live_handles(void) { return simt::live_handles(); }
