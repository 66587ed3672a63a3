// Every program that this file is linked to makes its collections with the back end that the environment
// names: SHARDREC_TEST_BACKEND=guarded, or cuda, which is the devices of the plug-in (SHARDREC_PLUGIN_PATH)
// in turn.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "compute/device/backend.h"
#include "compute/device/plugin.h"
#include "guarded/backend.h"

namespace shardrec::test {
namespace {

std::unique_ptr<compute::Backend> device_backend(core::Threads& threads, bool peers_in_process) {
  static std::atomic<int32_t> made{0};
  int32_t devices = 0;
  compute::device::require(compute::device::table().count_devices(&devices), "count its devices");
  return compute::device::make_backend(made.fetch_add(1) % std::max(devices, 1), threads,
                                       peers_in_process);
}

// Before main.
const bool chosen = [] {
  const char* name = std::getenv("SHARDREC_TEST_BACKEND");
  if (name == nullptr) return false;
  if (std::strcmp(name, "guarded") == 0) {
    compute::set_backend_factory(guarded_backend);
  } else if (std::strcmp(name, "cuda") == 0) {
    compute::set_backend_factory(device_backend);
  } else {
    std::fprintf(stderr, "SHARDREC_TEST_BACKEND=%s: the back ends for tests are guarded and cuda\n",
                 name);
    std::exit(2);
  }
  return true;
}();

}  // namespace
}  // namespace shardrec::test
