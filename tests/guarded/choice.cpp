// Every program that this file is linked to makes its collections with the back end that the environment
// names: SHARDREC_TEST_BACKEND=guarded, or cuda, which is device 0 of the plug-in (SHARDREC_PLUGIN_PATH).
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "compute/device/backend.h"
#include "guarded/backend.h"

namespace shardrec::test {
namespace {

std::unique_ptr<compute::Backend> device_backend(core::Threads& threads) {
  return compute::device::make_backend(0, threads);
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
